"""The values that the branches of a cond keep for their gradients share memory: only one of them runs."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block

nd = mx.nd
WIDTH = 50
ROW = WIDTH * 8


def gradient(function, *arrays, order=1, hybridize=True):
    block = Block(function)
    if hybridize:
        block.hybridize()
    arrays = [nd.array(a, dtype="float64") for a in arrays]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        loss = block(*arrays).sum()
        if order == 2:
            loss = sum((g * g).sum() for g in mx.autograd.grad(loss, arrays, create_graph=True, retain_graph=True))
    loss.backward()
    return [a.grad.asnumpy() for a in arrays], block


def kept_bytes(block):
    return int(block._cached_op.summary().split("kept for backward ")[1].split(" bytes")[0])


def sines(x, count):
    for _ in range(count):
        x = x.sin() * 1.5
    return x


def cosines(x, count):
    for _ in range(count):
        x = x.cos() * 0.5
    return x


@pytest.mark.parametrize(("then", "other"), [(4, 4), (6, 2), (1, 5)])
def test_a_cond_keeps_as_much_as_its_larger_branch(then, other):
    def function(c, x):
        return cond(c > 0, lambda: sines(x, then), lambda: cosines(x, other))

    def alone(count):
        _, block = gradient(lambda c, x: cond(c > 0, lambda: sines(x, count), lambda: x * 2), [1.0], np.ones(WIDTH))
        return kept_bytes(block)

    for c in (1.0, -1.0):
        x = np.linspace(-1, 1, WIDTH)
        got, block = gradient(function, [c], x)
        want, _ = gradient(function, [c], x, hybridize=False)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-12)
        assert kept_bytes(block) <= alone(max(then, other)) + 64
    assert kept_bytes(block) >= (max(then, other) - 1) * ROW


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("bound", [-5.0, 0.1, 5.0])
@pytest.mark.parametrize("loop", ["foreach", "while_loop", "nested"])
def test_branches_within_loops(loop, bound, order):
    def step(d, h):
        return cond(h.sum() + d.sum() > bound, lambda: sines(h * d, 3), lambda: cosines(h * d, 3))

    def function(x, h):
        if loop == "foreach":
            return foreach(lambda d, s: (step(d, s), step(d, s) + d), x, h)[0]
        if loop == "while_loop":
            return while_loop(lambda i, s: i < 3, lambda i, s: (s * x[0], (i + 1, step(h, s))), (h[:1] * 0, h), 5)[0]
        return foreach(lambda d, s: foreach(lambda e, t: (e * t, step(d, t)), x, s), x, h)[0]

    r = np.random.default_rng(1)
    arrays = r.normal(size=(4, 3)), r.normal(size=3)
    got, _ = gradient(function, *arrays, order=order)
    want, _ = gradient(function, *arrays, order=order, hybridize=False)
    for one, two in zip(got, want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_rows_of_both_branches_are_the_same_memory():
    count = 20

    def function(x, h, then=sines, other=cosines):
        return foreach(lambda d, s: ([], cond(d.sum() > 0, lambda: then(s, 4), lambda: other(s, 4)) + d), x, h)[1]

    x = np.random.default_rng(0).normal(size=(count, WIDTH))
    _, both = gradient(function, x, np.ones(WIDTH))
    _, one = gradient(lambda x, h: function(x, h, other=lambda s, n: s * 2), x, np.ones(WIDTH))
    assert 3 * count * ROW < kept_bytes(one)
    assert kept_bytes(both) <= kept_bytes(one) + count * ROW


@pytest.mark.parametrize("train", [True, False])
def test_loops_in_loops_of_untraced_graphs(train):
    start, factor = mx.sym.var("start"), mx.sym.var("factor")
    loop = mx.sym.contrib.while_loop

    def inner(j, value):
        front, back = mx.sym.split(value, num_outputs=2, axis=0)
        return (front, back), (j + 1, value * factor)

    def outer(i, j, value):
        rows, (_, value) = loop(lambda j, value: j < 3, inner, (j, value), max_iterations=3)
        return rows, (i + 1, j, value)

    zeros = mx.sym.zeros((1,)), mx.sym.zeros((1,))
    (front, back), (_, _, last) = loop(lambda i, j, value: i < 2, outer, (*zeros, start), max_iterations=2)
    executor = mx.sym.Group([front, back, last]).simple_bind(mx.cpu(), start=(4,), factor=(4,))
    values = np.arange(4.0)
    results = [array.asnumpy() for array in executor.forward(is_train=train, start=values, factor=np.full(4, 2))]
    powers = values * 2.0 ** np.arange(6).reshape(2, 3, 1)
    np.testing.assert_allclose(results[0], powers[..., :2])
    np.testing.assert_allclose(results[1], powers[..., 2:])
    np.testing.assert_allclose(results[2], 64 * values)
    executor.backward([mx.nd.zeros((2, 3, 2)), mx.nd.zeros((2, 3, 2)), mx.nd.ones((4,))])
    np.testing.assert_allclose(executor.grad_dict["start"].asnumpy(), np.full(4, 64))
    np.testing.assert_allclose(executor.grad_dict["factor"].asnumpy(), 6 * 32 * values)


def test_deeply_nested_loops_of_many_outputs_are_compiled_at_once():
    """Comparing each pair of outputs anew in each of the nested loops would take days."""
    depth, count = 8, 12

    def nested(x, depth):
        if depth == 0:
            return [x.reshape((1,)) * k for k in range(count)]
        return foreach(lambda row, states: (nested(row, depth - 1), states), x, [])[0]

    block = Block(lambda x: nested(x, depth))
    block.hybridize()
    x = np.arange(2.0**depth).reshape((2,) * depth)
    for k, out in enumerate(block(nd.array(x))):
        np.testing.assert_array_equal(out.asnumpy(), x[..., None] * k)
