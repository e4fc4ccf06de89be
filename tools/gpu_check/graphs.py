"""CUDA graphs against single launches: the same bits, and the times: of many small kernels, and of loops.

Each side is a process of its own, because graphs are chosen when it starts.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import gluon
from hybridnet.gluon import nn

from .outcome import Options, Outcome
from .runner import last_lines
from .speed import seconds_of

__all__ = ["check_graphs"]

GPU = mx.gpu(0)
SECONDS = 23


def check_graphs(options: Options) -> Outcome:
    """Both sides must have the same bits for small layers and for loops and branches; the times are figures."""
    outcome = Outcome()
    sides = {graphs: _side(graphs, options, outcome) for graphs in ("0", "1")}
    if outcome.wrong:
        return outcome
    alone, graph = sides["0"], sides["1"]
    for program in PROGRAMS:
        mine, its = graph[program]["bits"], alone[program]["bits"]
        outcome.expect(mine == its, f"graphs change bits of {program}: {mine}, not {its}")
    outcome.rows = {"single launches": alone, "graphs": graph}
    outcome.line = "same bits"
    if not options.stand_in:
        for program in PROGRAMS:
            times = [f"{side[program]['us']:.4g} us" for side in (alone, graph)]
            outcome.line += f"; {program}: {times[0]} a run by single launches, {times[1]} by graphs"
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


class Layers(nn.HybridSequential):
    """Many small dense layers."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.add(*(nn.Dense(16, in_units=16, activation="tanh") for _ in range(depth)))


class Loops(gluon.HybridBlock):
    """A recurrent network by foreach, a while_loop that ends early, with a cond in it, and a cond."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Dense(16, in_units=32, activation="tanh")

    def hybrid_forward(self, F: Any, x: mx.nd.NDArray) -> tuple:
        def step(row: Any, state: Any) -> tuple:
            new = self.cell(F.concat(row, state, dim=1))
            return new, new

        rows, state = F.contrib.foreach(step, x, x[0])

        def grow(state: Any, total: Any) -> tuple:
            state = F.contrib.cond(state.sum() > 0, lambda: F.sin(state) * 2, lambda: state + 0.125)
            return state.sum(axis=1), [state, total + F.abs(state).sum()]

        total = F.abs(state).sum()
        sums, (state, _) = F.contrib.while_loop(lambda _, total: total < 900, grow, [state, total], max_iterations=40)
        return rows, sums, F.contrib.cond(state.mean() > 0, lambda: state, lambda: F.tanh(state))


PROGRAMS = ("layers", "loops")


def _run(program: str, measures: bool) -> dict:
    """Returns the hash of the results of six runs and, if asked, the time of a run."""
    net = Loops() if program == "loops" else Layers(50 if measures else 6)
    shape = (4, 16) if program == "layers" else (50 if measures else 9, 4, 16)
    mx.random.seed(1)
    np.random.seed(1)
    net.initialize(mx.init.Xavier(), ctx=GPU)
    net.hybridize(static_alloc=True, static_shape=True)
    hashed = hashlib.sha256()
    random = np.random.default_rng(1)
    for _ in range(6):
        outputs = net(mx.nd.array(random.standard_normal(shape), ctx=GPU))
        for one in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
            hashed.update(one.asnumpy().tobytes())
    found: dict = {"bits": hashed.hexdigest()[:16]}
    if measures:
        x = mx.nd.ones(shape, ctx=GPU)
        found["us"] = float(f"{seconds_of(lambda: net(x), 100) * 1e6:.4g}")
    return found


def main() -> None:
    """Prints the figures of each program."""
    print(json.dumps({program: _run(program, sys.argv[1] == "measure") for program in PROGRAMS}))


if __name__ == "__main__":
    main()
