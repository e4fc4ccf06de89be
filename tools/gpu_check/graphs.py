"""CUDA graphs against single launches: the same bits, and the time of a run of many small kernels.

Each side is a process of its own, because graphs are chosen when it starts.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import hybridnet as mx
import numpy as np
from hybridnet.gluon import nn

from .outcome import Options, Outcome
from .runner import last_lines
from .speed import seconds_of

__all__ = ["check_graphs"]

GPU = mx.gpu(0)
SECONDS = 23


def check_graphs(options: Options) -> Outcome:
    """Both sides must have the same bits; the times are figures."""
    outcome = Outcome()
    sides = {graphs: _side(graphs, options, outcome) for graphs in ("0", "1")}
    if outcome.wrong:
        return outcome
    alone, graph = sides["0"], sides["1"]
    outcome.expect(alone["bits"] == graph["bits"], f"graphs change bits: {graph['bits']}, not {alone['bits']}")
    outcome.rows = {"single launches": alone, "graphs": graph}
    outcome.line = "same bits"
    if not options.stand_in:
        outcome.line += f"; {alone['us']:.4g} us a run by single launches, {graph['us']:.4g} us by graphs"
    return outcome


def _side(graphs: str, options: Options, outcome: Outcome) -> dict:
    command = [sys.executable, "-m", f"{__package__}.graphs", "measure" if not options.stand_in else "compute"]
    environment = {**os.environ, "HYBRIDNET_CUDA_GRAPHS": graphs}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        outcome.expect(False, f"HYBRIDNET_CUDA_GRAPHS={graphs} ran longer than {SECONDS} s")
        return {}
    outcome.expect(done.returncode == 0, f"HYBRIDNET_CUDA_GRAPHS={graphs}: {last_lines(done.stderr)}")
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}


def main() -> None:
    """Prints the hash of the results of six runs and, if asked, the time of a run."""
    depth = 50 if sys.argv[1] == "measure" else 6
    net = nn.HybridSequential()
    net.add(*(nn.Dense(16, in_units=16, activation="tanh") for _ in range(depth)))
    mx.random.seed(1)
    np.random.seed(1)
    net.initialize(mx.init.Xavier(), ctx=GPU)
    net.hybridize(static_alloc=True, static_shape=True)
    hashed = hashlib.sha256()
    random = np.random.default_rng(1)
    for _ in range(6):
        hashed.update(net(mx.nd.array(random.standard_normal((4, 16)), ctx=GPU)).asnumpy().tobytes())
    found = {"bits": hashed.hexdigest()[:16]}
    if sys.argv[1] == "measure":
        x = mx.nd.ones((4, 16), ctx=GPU)
        found["us"] = float(f"{seconds_of(lambda: net(x), 200) * 1e6:.4g}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
