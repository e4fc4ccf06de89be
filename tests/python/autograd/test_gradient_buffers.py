"""Compiled blocks write gradients directly into the gradient buffers; visible values are the same as without that."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon


class Scale(gluon.HybridBlock):
    """x * w, elementwise."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.w = self.params.get("w", shape=(4,), init=mx.init.Constant(3.0))

    def hybrid_forward(self, F, x, w):
        return F.broadcast_mul(x, w)


def hybrid_scale() -> Scale:
    net = Scale()
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    return net


def test_a_handle_to_the_buffer_sees_every_backward() -> None:
    net, x = hybrid_scale(), mx.nd.array([1.0, 2.0, 3.0, 4.0])
    net(x)
    handle = net.w.grad()
    for factor in (1.0, 2.0, 5.0):
        with autograd.record():
            loss = (net(x) * factor).sum()
        loss.backward()
        np.testing.assert_array_equal(handle.asnumpy(), factor * x.asnumpy())


def test_updates_that_are_still_queued_read_their_own_gradients() -> None:
    net, x = hybrid_scale(), mx.nd.ones((4,))
    net(x)
    total = mx.nd.zeros((4,))
    for step in range(50):
        with autograd.record():
            loss = (net(x) * step).sum()
        loss.backward()
        total += net.w.grad()  # queued: must read before the next backward writes
    np.testing.assert_array_equal(total.asnumpy(), np.full(4, sum(range(50)), "float32"))


def test_gradients_from_other_operators_are_added() -> None:
    net, x = hybrid_scale(), mx.nd.array([1.0, 2.0, 3.0, 4.0])
    net(x)
    for later in (False, True):
        with autograd.record():
            first = net(x) if not later else net.w.data() * 10
            second = net.w.data() * 10 if not later else net(x)
            loss = (first + second).sum()
        loss.backward()
        np.testing.assert_array_equal(net.w.grad().asnumpy(), x.asnumpy() + 10)


def test_a_block_called_twice_adds_both_gradients() -> None:
    net, x = hybrid_scale(), mx.nd.array([1.0, 2.0, 3.0, 4.0])
    net(x)
    with autograd.record():
        loss = net(net(x)).sum()
    loss.backward()
    np.testing.assert_allclose(net.w.grad().asnumpy(), 2 * 3 * x.asnumpy())


def test_one_parameter_given_twice_adds_both_gradients() -> None:
    w = mx.nd.array([1.0, 2.0])
    w.attach_grad()
    a = mx.sym.var("a")
    b = mx.sym.var("b")
    net = gluon.SymbolBlock(a * a * b, [a, b])
    net.initialize()
    net.hybridize()
    with autograd.record():
        loss = net(w, w).sum()
    loss.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), 3 * w.asnumpy() ** 2)


def test_a_buffer_read_by_the_graph_keeps_its_value_until_then() -> None:
    net, x = hybrid_scale(), mx.nd.array([1.0, 2.0, 3.0, 4.0])
    net(x)
    with autograd.record():
        loss = net(x).sum()
    loss.backward()
    x.attach_grad()
    with autograd.record():
        loss = (net(x) * net.w.grad()).sum()
    loss.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), 3 * np.array([1.0, 2.0, 3.0, 4.0], "float32"))


def test_gradients_added_over_calls() -> None:
    net, x = hybrid_scale(), mx.nd.array([1.0, 2.0, 3.0, 4.0])
    net.w.grad_req = "add"
    net(x)
    for _ in range(3):
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
    np.testing.assert_array_equal(net.w.grad().asnumpy(), 3 * x.asnumpy())
