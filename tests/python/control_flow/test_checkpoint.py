"""checkpoint: fewer values are kept for the gradient, the gradient stays the same."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, gluon
from hybridnet.contrib import foreach, while_loop

nd = mx.nd


class Block(gluon.HybridBlock):
    def __init__(self, function, *children) -> None:
        super().__init__()
        self.function = function
        for i, child in enumerate(children):
            setattr(self, f"child{i}", child)
        self.initialize()

    def forward(self, *args):
        return self.function(*args)


def gradients(function, arrays, order=1):
    block = Block(function)
    block.hybridize()
    arrays = [nd.array(a, dtype="float64") for a in arrays]
    for a in arrays:
        a.attach_grad()
    with mx.autograd.record():
        loss = (block(*arrays) ** 2).sum()
        if order == 2:
            loss = sum((g * g).sum() for g in mx.autograd.grad(loss, arrays, create_graph=True, retain_graph=True))
    loss.backward()
    return [loss.asnumpy()] + [a.grad.asnumpy() for a in arrays], block


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("checkpoint", ["sqrt", 1, 2, 3, 7, 100])
@pytest.mark.parametrize("count", [1, 2, 7, 9])
def test_loops_over_data(count, checkpoint, reverse, order):
    def function(x, w, s, checkpoint=None):
        def body(d, h):
            return (h * w + d).sin() * d, ((h * w).tanh() + d)

        outs, last = foreach(body, x, s, reverse=reverse, checkpoint=checkpoint)
        return outs.sum(axis=0) + last

    r = np.random.default_rng(count)
    arrays = r.normal(size=(count, 3)), r.normal(size=3), r.normal(size=3)
    want, _ = gradients(function, arrays, order)
    got, _ = gradients(lambda *a: function(*a, checkpoint=checkpoint), arrays, order)
    for one, two in zip(want, got, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_loops_with_a_condition(order):
    def function(x, w, checkpoint=None):
        outs, (_, last) = while_loop(
            lambda i, v: i < 4,
            lambda i, v: (v * w, (i + 1, (v * w).sin() + x)),
            (x[:1] * 0, x),
            6,
            checkpoint=checkpoint,
        )
        return outs.sum(axis=0) + last

    r = np.random.default_rng(3)
    arrays = r.normal(size=3), r.normal(size=3)
    want, _ = gradients(function, arrays, order)
    got, _ = gradients(lambda *a: function(*a, checkpoint="sqrt"), arrays, order)
    for one, two in zip(want, got, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-12)


def kept_bytes(count, checkpoint):
    def function(x, s):
        return foreach(lambda d, h: ([], ((h * 2 + d).sin() * h).tanh()), x, s, checkpoint=checkpoint)[1]

    _, block = gradients(function, [np.ones((count, 50)), np.ones(50)])
    return int(block._cached_op.summary().split("kept for backward ")[1].split(" bytes")[0])


def test_memory():
    row = 50 * 8
    assert kept_bytes(1000, None) >= 1000 * row
    assert kept_bytes(1000, "sqrt") <= 3 * 32 * row + 1000
    assert kept_bytes(1000, 100) <= 2 * 10 * row + 1000


@pytest.mark.parametrize("checkpoint", ["sqrt", 1, 3])
def test_what_is_computed_again_draws_the_same(checkpoint):
    drop = gluon.nn.Dropout(0.5)
    block = Block(lambda x: foreach(lambda d, s: (drop(d) * s, s), x, nd.ones((200,)), checkpoint=checkpoint)[0], drop)
    block.hybridize()
    x = nd.ones((8, 200))
    x.attach_grad()
    with mx.autograd.record():
        out = block(x)
    out.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), out.asnumpy())
    assert 0.3 < (out.asnumpy() > 0).mean() < 0.7
    assert (out.asnumpy()[0] != out.asnumpy()[1]).any()
    assert (out.asnumpy()[0] != out.asnumpy()[7]).any()


@pytest.mark.parametrize("checkpoint", ["sqrt", 2])
def test_running_statistics_advance_once(checkpoint):
    found = []
    for option in (None, checkpoint):
        norm = gluon.nn.BatchNorm(in_channels=3)
        block = Block(lambda x, n=norm, o=option: foreach(lambda d, s: (n(d), s), x, [], checkpoint=o)[0], norm)
        block.hybridize()
        x = nd.array(np.random.default_rng(1).normal(size=(5, 8, 3)).astype("float32"))
        x.attach_grad()
        with mx.autograd.record():
            (block(x) ** 3).sum().backward()
        found.append((norm.running_mean.data().asnumpy(), norm.running_var.data().asnumpy(), x.grad.asnumpy()))
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("checkpoint", ["all", 0, True, -3, 2.5])
def test_wrong_values(checkpoint):
    with pytest.raises(errors.ParamError, match="checkpoint"):
        foreach(lambda d, s: (d, s), nd.ones((2, 1)), [], checkpoint=checkpoint)
