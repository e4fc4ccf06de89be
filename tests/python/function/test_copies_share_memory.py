"""Function.copy(share_memory=True) shares the arena: bytes of intermediate values are not doubled, and two threads get
right results."""

from __future__ import annotations

import threading

import hybridnet as mx
import numpy as np
import pytest

N = 128


def make(name="f"):
    x = mx.sym.var("x")
    w, y = mx.shared(np.full((N, N), 1.0 / N), name="w"), x
    for _ in range(4):
        y = mx.sym.tanh(mx.sym.dot(y, w) + x)
    return w, mx.function([x], y, updates={w: w * 1.0}, name=name, static_alloc=True)


def in_use():
    mx.nd.waitall()
    return mx._core.memory_statistics(1, 0)["in_use"]


def test_bytes_between_operators_are_not_doubled():
    w, f = make()
    value = mx.nd.ones((N, N))
    f(value).wait_to_read()
    both = {}
    for shared in (True, False):
        g = f.copy(share_memory=shared, swap={w: mx.shared(np.ones((N, N)), name="v")})
        before = in_use()
        g(value).wait_to_read()
        both[shared] = in_use() - before
    arena = N * N * 4
    assert both[False] >= arena
    assert both[True] < arena / 4


def test_two_threads_get_right_results():
    w, f = make()
    g = f.copy(swap={w: mx.shared(np.full((N, N), 2.0 / N), name="v")})
    inputs = [mx.nd.array(np.full((N, N), k / 10)) for k in range(8)]
    wanted = [[h(value).asnumpy() for value in inputs] for h in (f, g)]
    failures = []
    together = threading.Barrier(4)

    def run(function, results):
        together.wait()
        for _ in range(20):
            for value, result in zip(inputs, results, strict=True):
                if not np.array_equal(function(value).asnumpy(), result):
                    failures.append(function)

    threads = [
        threading.Thread(target=run, args=(h, results)) for h, results in zip((f, g) * 2, wanted * 2, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("outer_first", [True, False])
def test_a_copy_called_in_the_middle_of_the_other(outer_first):
    """A custom operator of f calls a function that shares f's memory."""
    x = mx.sym.var("x")
    inner = {}

    class Calls(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], inner["f"](in_data[0]))

    @mx.operator.register(f"row22_calls_{outer_first}")
    class CallsProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Calls()

    flag = mx.sym.var("flag")
    body = mx.sym.Custom(mx.sym.exp(mx.sym.tanh(x)).sum(axis=0), op_type=f"row22_calls_{outer_first}") + mx.sym.exp(
        x
    ).sum(axis=0)
    f = mx.function([x], body, name="outer", static_alloc=True)
    g = f.copy(name="copy")
    plain = mx.function([flag], flag * 2)
    inner["f"] = lambda value: plain(value)
    data = mx.nd.ones((3, 2))
    wanted = f(data).asnumpy()
    inner["f"] = lambda value: (inner.update(f=lambda v: plain(v)), g(data), plain(value))[2]
    np.testing.assert_allclose(f(data).asnumpy(), wanted, rtol=1e-6)
