"""Decoders that append to their state: time of T steps, beside the same decoder with a preallocated buffer and PyTorch.

    python benchmarks/growing_decoder.py [--only PART,PART] [--limit 30]

Two decoders of width 64: one attends to all keys so far, whose work per step grows with T; one only appends, whose work
per step does not. Each is written in these ways, in float32 and without gradients:

- grown: a while loop of plain Python, cache = concat(cache, key) with mx.autograph.shape_invariants
- written: a for loop of plain Python over range(steps), cache[t] = key, with a mask over the rows not written yet
- listed: a list filled in a for loop, for the decoder that only appends
- explicit: contrib.foreach with a preallocated buffer, index_copy, and the same mask
- torch cat: PyTorch eager, cache = torch.cat([cache, key])
- torch buffer: PyTorch eager, cache[t] = key, attention over cache[:t + 1]

Every point runs in a separate process: milliseconds per call, the minimum of several. The slope is the exponent b of
time ~ T^b between the two largest T. A series ends at the first point that takes longer than --limit seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
WIDTH = 64
STEPS = (100, 1000, 10_000)
Call = Callable[[], Any]


def _weights() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(0)
    return tuple(random.normal(0, 0.15, size).astype("float32") for size in ((3 * WIDTH, WIDTH), (WIDTH, WIDTH)))


# ----------------------------------------------------------------------------------------------------------- HybridNet
def _block(attends: bool, way: str) -> Any:
    import hybridnet as mx
    from hybridnet import gluon, nd

    class Decoder(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            project, out = _weights()
            self.project = gluon.Parameter("project", shape=project.shape, init=mx.init.Constant(nd.array(project)))
            self.out = gluon.Parameter("out", shape=out.shape, init=mx.init.Constant(nd.array(out)))

        def split(self, x: Any) -> list[Any]:
            made = nd.FullyConnected(x, self.project.data(), num_hidden=3 * WIDTH, no_bias=True)
            return nd.split(made, num_outputs=3, axis=1)

        def next(self, x: Any) -> Any:
            return nd.FullyConnected(x, self.out.data(), num_hidden=WIDTH, no_bias=True).tanh()

        def attend(self, query: Any, keys: Any, values: Any) -> Any:
            weights = nd.softmax(nd.dot(query, keys, transpose_b=True) * WIDTH**-0.5, axis=1)
            return self.next(nd.dot(weights, values))

        def attend_below(self, query: Any, keys: Any, values: Any, places: Any, length: Any) -> Any:
            scores = nd.dot(query, keys, transpose_b=True) * WIDTH**-0.5
            scores = nd.where(places < length, scores, nd.ones_like(scores) * -1e30)
            return self.next(nd.dot(nd.softmax(scores, axis=1), values))

    class Grown(Decoder):
        def forward(self, x: Any, steps: Any) -> Any:
            count = 1
            query, keys, values = self.split(x)
            mx.autograph.shape_invariants(keys=(None, WIDTH), values=(None, WIDTH))
            while count < steps:
                x = self.attend(query, keys, values)
                query, key, value = self.split(x)
                keys = nd.concat(keys, key, dim=0)
                values = nd.concat(values, value, dim=0)
                count += 1
            return x, keys

    class GrownOnly(Decoder):
        def forward(self, x: Any, steps: Any) -> Any:
            count, cache = 1, x
            mx.autograph.shape_invariants(cache=(None, WIDTH))
            while count < steps:
                x = self.next(x)
                cache = nd.concat(cache, x, dim=0)
                count += 1
            return cache

    class Written(Decoder):
        def forward(self, x: Any, rows: Any) -> Any:
            keys, values = nd.zeros_like(rows), nd.zeros_like(rows)
            places = nd.contrib.arange_like(rows, axis=0).reshape((1, -1))
            for t in mx.autograph.range(rows.shape[0]):
                query, key, value = self.split(x)
                keys[t] = key[0]
                values[t] = value[0]
                x = self.attend_below(query, keys, values, places, t + 1)
            return x, keys

    class WrittenOnly(Decoder):
        def forward(self, x: Any, rows: Any) -> Any:
            cache = nd.zeros_like(rows)
            for t in mx.autograph.range(rows.shape[0]):
                x = self.next(x)
                cache[t] = x[0]
            return cache

    class ListedOnly(Decoder):
        def forward(self, x: Any, rows: Any) -> Any:
            cache = []
            for _ in rows:
                x = self.next(x)
                cache.append(x[0])
            return nd.stack(*cache)

    class Explicit(Decoder):
        def forward(self, x: Any, rows: Any) -> Any:
            places = nd.contrib.arange_like(rows, axis=0).reshape((1, -1))

            def step(t: Any, _: Any, states: Any) -> Any:
                x, keys, values = states
                query, key, value = self.split(x)
                keys = nd.contrib.index_copy(keys, t.reshape((1,)), key)
                values = nd.contrib.index_copy(values, t.reshape((1,)), value)
                length = (t + 1).astype("float32").reshape((1, 1))
                scores = nd.dot(query, keys, transpose_b=True) * WIDTH**-0.5
                scores = nd.where(nd.broadcast_lesser(places, length), scores, nd.ones_like(scores) * -1e30)
                return [], [self.next(nd.dot(nd.softmax(scores, axis=1), values)), keys, values]

            start = [x, nd.zeros_like(rows), nd.zeros_like(rows)]
            return mx.contrib.foreach(step, rows, start, with_index=True)[1][:2]

    class ExplicitOnly(Decoder):
        def forward(self, x: Any, rows: Any) -> Any:
            def step(t: Any, _: Any, states: Any) -> Any:
                x = self.next(states[0])
                return [], [x, nd.contrib.index_copy(states[1], t.reshape((1,)), x)]

            return mx.contrib.foreach(step, rows, [x, nd.zeros_like(rows)], with_index=True)[1][1]

    kinds = {
        "grown": (GrownOnly, Grown), "written": (WrittenOnly, Written), "listed": (ListedOnly, None),
        "explicit": (ExplicitOnly, Explicit),
    }  # fmt: skip
    block = kinds[way][attends]()
    block.initialize()
    block.hybridize(static_alloc=True, strict=True)
    return block


def _hybridnet(attends: bool, way: str, steps: int) -> tuple[Call, Callable[[Any], np.ndarray]]:
    import hybridnet as mx

    block = _block(attends, way)
    x = mx.nd.ones((1, WIDTH))
    rows = mx.nd.array([steps], dtype="int64") if way == "grown" else mx.nd.zeros((steps, WIDTH))

    def call() -> Any:
        found = block(x, rows)
        mx.nd.waitall()
        return found

    return call, lambda found: (found[1] if attends else found).asnumpy()


# ------------------------------------------------------------------------------------------------------------- PyTorch
def _torch(attends: bool, way: str, steps: int) -> tuple[Call, Callable[[Any], np.ndarray]]:
    import torch

    project, out = map(torch.from_numpy, _weights())
    start = torch.ones(1, WIDTH)

    def attend(query: Any, keys: Any, values: Any) -> Any:
        weights = torch.softmax(query @ keys.T * WIDTH**-0.5, dim=1)
        return torch.tanh(weights @ values @ out.T)

    def cat() -> Any:
        x = start
        query, keys, values = (x @ project.T).chunk(3, dim=1)
        for _ in range(steps - 1):
            x = attend(query, keys, values)
            query, key, value = (x @ project.T).chunk(3, dim=1)
            keys, values = torch.cat([keys, key]), torch.cat([values, value])
        return keys

    def buffer() -> Any:
        x, keys, values = start, torch.zeros(steps, WIDTH), torch.zeros(steps, WIDTH)
        for t in range(steps):
            query, key, value = (x @ project.T).chunk(3, dim=1)
            keys[t], values[t] = key[0], value[0]
            x = attend(query, keys[: t + 1], values[: t + 1])
        return keys

    def cat_only() -> Any:
        x = cache = start
        for _ in range(steps - 1):
            x = torch.tanh(x @ out.T)
            cache = torch.cat([cache, x])
        return cache

    def buffer_only() -> Any:
        x, cache = start, torch.zeros(steps, WIDTH)
        for t in range(steps):
            x = torch.tanh(x @ out.T)
            cache[t] = x[0]
        return cache

    run = {"torch cat": (cat_only, cat), "torch buffer": (buffer_only, buffer)}[way][attends]

    def call() -> Any:
        with torch.no_grad():
            return run()

    return call, lambda found: found.numpy()


WAYS = ("explicit", "grown", "written", "listed", "torch buffer", "torch cat")


def measure(decoder: str, way: str, steps: int) -> dict[str, Any]:
    """Measures one point, in this process."""
    make = _torch if way.startswith("torch") else _hybridnet
    call, cache = make(decoder == "attends", way, steps)
    begin = time.perf_counter()
    found = call()
    first = time.perf_counter() - begin
    best, spent, calls = math.inf, 0.0, 0
    while calls < 3 or (spent < 1 and calls < 100):
        begin = time.perf_counter()
        call()
        taken = time.perf_counter() - begin
        best, spent, calls = min(best, taken), spent + taken, calls + 1
        if spent > 20:
            break
    return {"steps": steps, "call": best, "first": first, "check": float(np.abs(cache(found)[1:30]).sum())}


def points(decoder: str, way: str, limit: float) -> list[dict[str, Any]]:
    found = []
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(HERE.parent / "python"), os.environ.get("PYTHONPATH", "")]))
    for steps in STEPS:
        begin = time.perf_counter()
        command = [sys.executable, __file__, "--point", decoder, way, str(steps)]
        run = subprocess.run(command, env=env, capture_output=True, text=True)
        if run.returncode != 0:
            raise SystemExit(f"{decoder} {way} {steps}: {run.stderr.strip()[-2000:]}")
        found.append(json.loads(run.stdout))
        if time.perf_counter() - begin > limit:
            break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="series whose name holds one of these (comma between)")
    parser.add_argument("--limit", type=float, default=30, help="seconds of a point after which a series ends")
    parser.add_argument("--point", nargs=3, metavar=("DECODER", "WAY", "STEPS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.point:
        decoder, way, steps = arguments.point
        print(json.dumps(measure(decoder, way, int(steps))))
        return
    columns = ("decoder", "way", *(f"{steps:,} steps" for steps in STEPS), "slope", "first call")
    print(f"| {' | '.join(columns)} |\n|" + "---|" * len(columns))
    for decoder in ("attends", "appends only"):
        for way in WAYS:
            name = f"{decoder}, {way}"
            if (decoder, way) == ("attends", "listed") or not any(part in name for part in arguments.only.split(",")):
                continue
            found = points(decoder, way, arguments.limit)
            cells = [f"{one['call'] * 1e3:,.3g} ms" for one in found] + ["-"] * (len(STEPS) - len(found))
            slope = math.nan
            if len(found) > 1:
                slope = math.log(found[-1]["call"] / found[-2]["call"], found[-1]["steps"] / found[-2]["steps"])
            print(
                f"| {decoder} | {way} | {' | '.join(cells)} | {slope:.2f} | {found[-1]['first'] * 1e3:,.3g} ms |"
                + (f" {found[-1]['check']:.6g}" if os.environ.get("SHOW_SUMS") else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
