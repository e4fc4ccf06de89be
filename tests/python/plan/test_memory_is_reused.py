"""A call takes its memory from one arena or from the pool and reuses it: a chain of 50 layers peaks at two buffers."""

from __future__ import annotations

import re

import hybridnet as mx
import pytest


def chain(layers, n=64):
    x = mx.sym.var("x")
    y = x
    for _ in range(layers):
        y = mx.sym.dot(y, mx.shared(mx.nd.ones((n, n)) / n))
    return x, y


@pytest.mark.parametrize("layers", [3, 50])
def test_the_peak_of_a_chain_is_two_buffers(layers):
    n = 64
    x, y = chain(layers, n)
    f = mx.function([x], y)
    f(mx.nd.ones((n, n)))
    [arena] = re.findall(r"arena (\d+) bytes", f.pass_report())
    assert 0 <= int(arena) - 2 * n * n * 4 < 1024  # two buffers and the workspace of a product


@pytest.mark.parametrize("static_alloc", [False, True])
def test_memory_between_calls(static_alloc):
    n = 256
    x, y = chain(5, n)
    f = mx.function([x], y, static_alloc=static_alloc)
    value = mx.nd.ones((n, n))
    mx.nd.waitall()
    before = mx._core.memory_statistics(1, 0)["in_use"]
    for _ in range(3):
        f(value).wait_to_read()
        mx.nd.waitall()
    held = mx._core.memory_statistics(1, 0)["in_use"] - before
    assert held >= 2 * n * n * 4 if static_alloc else held < n * n * 4


def test_a_failed_call_holds_no_memory():
    n = 256
    x, i = mx.sym.var("x"), mx.sym.var("i", dtype="int32")
    f = mx.function([x, i], mx.sym.take(mx.sym.dot(mx.sym.dot(x, x), x), i, mode="raise"))
    value, bad = mx.nd.ones((n, n)), mx.nd.array([n], dtype="int32")
    mx.nd.waitall()
    before = mx._core.memory_statistics(1, 0)["in_use"]
    for _ in range(3):
        with pytest.raises(mx.MXNetError, match="indices"):
            f(value, bad).wait_to_read()
    mx.nd.waitall()
    assert mx._core.memory_statistics(1, 0)["in_use"] - before < n * n * 4
