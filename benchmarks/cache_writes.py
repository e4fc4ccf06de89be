"""Time of writing one row per token into the key and value caches of a decoder: it does not depend on their rows.

    python benchmarks/cache_writes.py [--only PART,PART] [--layers 12]

24 caches of shape (batch, 12, rows, 64) in float32, as in GPT-2-small, and 128 tokens, without attention:

- loop: the whole decode as one while_loop that begins with caches of zeros, index_copy along axis 2
- assigned: the same with cache[:, :, i] = row
- given: the loop gets its caches as arguments, which it must not change: one copy for all tokens
- donated: the loop gets them as donated arguments
- step: one hybridized step per token with donated caches in and out
- kept: the same step without donation, which copies all caches in each step

Every point runs in a separate process: milliseconds per token, the minimum of several.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Any

TOKENS = 128
WAYS = ("loop", "assigned", "given", "donated", "step", "kept")
BATCHES, ROWS = (1, 8), (144, 1024, 4096)


def _block(way: str) -> Any:
    import hybridnet as mx
    from hybridnet import nd

    def written(cache: Any, i: Any, row: Any) -> Any:
        if way != "assigned":
            return nd.contrib.index_copy(cache, i, row, axis=2)
        cache[:, :, i] = row
        return cache

    class Loop(mx.gluon.HybridBlock):
        def forward(self, row: Any, *caches: Any) -> Any:
            if way in ("loop", "assigned"):
                caches = tuple(nd.zeros_like(cache) for cache in caches)

            def body(i: Any, *caches: Any) -> Any:
                return [], (i + 1, *[written(cache, i, row) for cache in caches])

            start = (nd.zeros((1,), dtype="int64"), *caches)
            return mx.contrib.while_loop(lambda i, *_: i < TOKENS, body, start, TOKENS)[1][1:]

    class Step(mx.gluon.HybridBlock):
        def forward(self, i: Any, row: Any, *caches: Any) -> Any:
            return [written(cache, i, row) for cache in caches]

    block = Step() if way in ("step", "kept") else Loop()
    block.hybridize(static_alloc=True, strict=True, donate=["caches"] if way in ("donated", "step") else [])
    return block


def measure(way: str, batch: int, rows: int, layers: int) -> float:
    """Measures one point, in this process: milliseconds per token."""
    import hybridnet as mx

    block, row = _block(way), mx.nd.ones((batch, 12, 1, 64))
    caches = [mx.nd.zeros((batch, 12, rows, 64)) for _ in range(2 * layers)]
    best, begun = float("inf"), time.perf_counter()
    for call in range(100):
        start = time.perf_counter()
        if way in ("step", "kept"):
            for i in range(TOKENS):
                caches = block(mx.nd.array([i], dtype="int64"), row, *caches)
        else:
            made = block(row, *caches)
            caches = made if way == "donated" else caches
            del made
        mx.nd.waitall()
        if call > 0:
            best = min(best, time.perf_counter() - start)
        if call > 0 and time.perf_counter() - begun > 3:
            break
    return best / TOKENS * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="ways whose name holds one of these (comma between)")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--point", nargs=3, metavar=("WAY", "BATCH", "ROWS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.point:
        way, batch, rows = arguments.point
        print(measure(way, int(batch), int(rows), arguments.layers))
        return
    points: list[tuple[int, int]] = [(batch, rows) for batch in BATCHES for rows in ROWS]

    def table(cells: list[str]) -> None:
        print(f"| {' | '.join(cells)} |", flush=True)

    table(["way", *[f"batch {batch}, {rows:,} rows" for batch, rows in points]])
    table(["---"] * (len(points) + 1))
    for way in WAYS:
        if not any(part in way for part in arguments.only.split(",")):
            continue
        cells = []
        for batch, rows in points:
            command = [
                sys.executable,
                __file__,
                "--layers",
                str(arguments.layers),
                "--point",
                way,
                str(batch),
                str(rows),
            ]
            cells.append(f"{float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout):.3f}")
        table([way, *cells])


if __name__ == "__main__":
    main()
