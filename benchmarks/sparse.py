"""Sparse storage compared with its peers: python benchmarks/sparse.py [--rows N] [--repeats N]

A training step of an embedding table (lazy SGD and Adam) compared with torch.nn.Embedding(sparse=True) with SGD and
SparseAdam, and products of csr matrices compared with SciPy. Every line is the median of several runs in microseconds;
both sides take turns, so that they run under the same conditions. Ten million rows with Adam need 16 GB. Peers that are
not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import operator
import statistics
import time
from collections.abc import Callable
from functools import partial

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.gluon import nn

LOOKED_UP, WIDTH = 1000, 64
PRODUCTS = [  # rows, columns, width of the dense factor, share of stored values
    (4096, 10_000, 64, 0.01),
    (4096, 10_000, 1, 0.01),
    (512, 100_000, 128, 0.001),
    (64, 1_000_000, 16, 0.0001),
]


def microseconds(sides: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median time of each side; the sides take turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats + 3):
        for name, call in sides.items():
            begin = time.perf_counter()
            call()
            if turn >= 3:
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) * 1e6 for name, values in times.items()}


def our_step(rows: int, optimizer: str, ids: np.ndarray, hybridize: bool) -> Callable[[], object]:
    net = nn.Embedding(rows, WIDTH, sparse_grad=True)
    net.initialize(mx.init.Zero())
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01})
    data = mx.nd.array(ids, dtype="int64")

    def step() -> None:
        with autograd.record():
            loss = (net(data) ** 2).sum()
        loss.backward()
        trainer.step(1)
        mx.nd.waitall()

    return step


def their_step(rows: int, optimizer: str, ids: np.ndarray) -> Callable[[], object]:
    import torch

    table = torch.nn.Embedding(rows, WIDTH, sparse=True)
    make = {"sgd": torch.optim.SGD, "adam": torch.optim.SparseAdam}[optimizer]
    update = make(list(table.parameters()), lr=0.01)
    data = torch.from_numpy(ids)

    def step() -> None:
        update.zero_grad()
        (table(data) ** 2).sum().backward()
        update.step()

    return step


def print_line(what: str, found: dict[str, float]) -> None:
    ours, *others = found.values()
    line = "   ".join(f"{name} {value:10.0f}" for name, value in found.items())
    ratios = "   ".join(f"{ours / other:.2f}" for other in others)
    print(f"{what:44} {line}   ours / theirs: {ratios or '-'}")


def embeddings(rows: int, repeats: int) -> None:
    ids = np.random.default_rng(0).integers(0, rows, LOOKED_UP)
    for optimizer in ("sgd", "adam"):
        for hybridize in (False, True):
            sides = {"hybridnet": our_step(rows, optimizer, ids, hybridize)}
            if importlib.util.find_spec("torch"):
                sides["torch"] = their_step(rows, optimizer, ids)
            form = "hybridized" if hybridize else "imperative"
            print_line(f"step of {rows} x {WIDTH}, {optimizer}, {form}", microseconds(sides, repeats))


def our_product(matrix: mx.nd.NDArray, factor: mx.nd.NDArray, transposed: bool) -> None:
    mx.nd.dot(matrix, factor, transpose_a=transposed).wait_to_read()


def products(repeats: int) -> None:
    rng = np.random.default_rng(0)
    for rows, columns, width, share in PRODUCTS:
        stored = int(rows * columns * share)
        places = (rng.integers(0, rows, stored), rng.integers(0, columns, stored))
        ours = mx.nd.sparse.csr_matrix((rng.random(stored, dtype="float32"), places), shape=(rows, columns))
        for transposed in (False, True):
            factor = rng.random((rows if transposed else columns, width), dtype="float32")
            dense = mx.nd.array(factor)
            sides = {"hybridnet": partial(our_product, ours, dense, transposed)}
            if importlib.util.find_spec("scipy"):
                theirs = ours.asscipy().T if transposed else ours.asscipy()
                sides["scipy"] = partial(operator.matmul, theirs, factor)
            name = f"dot({rows} x {columns}{'.T' if transposed else ''}, width {width}), {stored} stored"
            print_line(name, microseconds(sides, repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the table")
    parser.add_argument("--repeats", type=int, default=30)
    arguments = parser.parse_args()
    embeddings(arguments.rows, arguments.repeats)
    products(arguments.repeats)


if __name__ == "__main__":
    main()
