# ruff: noqa: E501
"""The number of iterations changes neither the tracing time of a loop nor its file nor its memory."""

from __future__ import annotations

import gc
import json
import pathlib
import re
import statistics
import time

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, gluon
from hybridnet.contrib import foreach, while_loop

nd = mx.nd
FEW, MANY = 10, 10_000
CPU = (1, 0)


class Loop(gluon.HybridBlock):
    """build(net, x, n) is a loop of n iterations over x (n, 16) around a dense layer, which returns the last state."""

    def __init__(self, build, count: int) -> None:
        super().__init__(prefix="loop_")  # the same names in every file
        with self.name_scope():
            self.dense = gluon.nn.Dense(16, in_units=16, activation="tanh", prefix="dense_")
        self.build, self.count = build, count
        self.initialize()
        self.hybridize()

    def forward(self, x):
        return self.build(self, x.reshape((-1, 1, 16)), self.count)


BUILD = {
    "foreach": lambda net, x, n: foreach(lambda d, s: ([], net.dense(s) + d), x, x[0])[1],
    "while_loop": lambda net, x, n: while_loop(lambda i, s: i < n, lambda i, s: (i + 1, net.dense(s)), (0, x[0]), n, has_outputs=False)[1],
    "nested": lambda net, x, n: foreach(lambda d, s: ([], foreach(lambda e, t: ([], net.dense(t) + e), d.expand_dims(0), s)[1]), x, x[0])[1],
}  # fmt: skip


def data(count: int) -> mx.nd.NDArray:
    return nd.array(np.random.default_rng(0).normal(size=(count, 16)).astype("float32"))


def traced(build, count: int, x: mx.nd.NDArray) -> tuple[Loop, float]:
    """Returns a block that has run once, and the thread's seconds from the call until the graph was ready to run."""
    net = Loop(build, count)
    gc.collect()
    start = time.thread_time()
    net(x)  # returns before the loop has ended
    seconds = time.thread_time() - start
    nd.waitall()
    return net, seconds


ROUNDS = 100


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILD)
def test_time_to_trace(name):
    """The median ratio of adjacent pairs of measurements is within 10 % of one.

    Other work of the machine slows down both measurements of a pair alike. Their order alternates.
    """
    arrays = {count: data(count) for count in (FEW, MANY)}
    ratios = []
    gc.collect()
    gc.freeze()  # collections between measurements need not visit the objects of earlier tests
    for number in range(ROUNDS):
        seconds = {}
        for count in (FEW, MANY) if number % 2 else (MANY, FEW):
            seconds[count] = traced(BUILD[name], count, arrays[count])[1]
        ratios.append(seconds[MANY] / seconds[FEW])
    gc.unfreeze()
    assert abs(statistics.median(ratios) - 1) <= 0.1, sorted(ratios)


@pytest.mark.parametrize("name", BUILD)
def test_size_of_the_exported_files(name, tmp_path):
    """The sizes are equal, except for the digits of the number of iterations in a program that contains it."""
    found = []
    for count in (FEW, MANY):
        net = traced(BUILD[name], count, data(count))[0]
        symbol, params = (pathlib.Path(file).read_bytes() for file in net.export(str(tmp_path / f"m{count}")))
        graph = json.loads(symbol)
        for key in ("hybridnet_traced_with", "hybridnet_inputs"):  # contain the traced sizes as text
            graph["attrs"].pop(key, None)
        symbol = json.dumps(graph).encode()
        digits = len(re.findall(rb'"%d(?:\.0)?"' % count, symbol)) * len(str(count))
        found.append((len(symbol) - digits, len(params)))
        assert (digits > 0) == (name == "while_loop")
    assert found[0] == found[1]


def arena(net: Loop) -> int:
    summary = net._cached_op.summary()
    assert "kept for backward 0 bytes" in summary
    return int(re.search(r"arena (\d+) bytes", summary)[1])


@pytest.mark.parametrize("name", BUILD)
def test_memory_of_the_plan(name):
    """The sizes are equal to the byte."""
    few, many = (arena(traced(BUILD[name], count, data(count))[0]) for count in (FEW, MANY))
    assert few == many


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILD)
def test_memory_while_running(name):
    """Peak memory of a block without its inputs, as the allocator counts it, is equal to the byte.

    The minimum of five runs counts, because arrays of earlier tests may be freed meanwhile.
    """

    def peak(count):
        x = data(count)
        nd.waitall()
        gc.collect()
        before = _core.memory_statistics(*CPU)["in_use"]
        _core.reset_peak_memory(*CPU)
        net, _ = traced(BUILD[name], count, x)
        net(x).wait_to_read()
        nd.waitall()
        return _core.memory_statistics(*CPU)["peak_in_use"] - before

    few, many = (min(peak(count) for _ in range(5)) for count in (FEW, MANY))
    assert few == many
    assert few >= 16 * 17 * 4  # the parameters alone


def test_stacked_outputs_are_all_that_grows():
    arenas = []
    for count in (FEW, MANY):
        net = Loop(lambda net, x, n: foreach(lambda d, s: (s, net.dense(s) + d), x, x[0])[0], count)
        net(data(count)).wait_to_read()
        arenas.append(arena(net))
    assert arenas[0] == arenas[1] > 0
