"""Graphs read captured arrays after the work that computes them, and before later writes."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd

SIZE = 600


def slow(w):
    """Returns an array whose computation is still queued."""
    return nd.dot(w, w).mean()


def in_block(w, x, **flags):
    class Block(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.w = w

        def forward(self, x):
            return x * slow(self.w)

    net = Block()
    net.hybridize(**flags)
    return net


def in_function(w, x):
    symbol = mx.sym.var("x")
    return mx.function([symbol], mx.sym.broadcast_mul(symbol, slow(w)))


def in_body(w, x):
    class Block(gluon.HybridBlock):
        def forward(self, x):
            k = slow(w)
            return nd.contrib.foreach(lambda a, state: (a * k, [state[0] + k]), x, [nd.zeros((1,))])[0]

    net = Block()
    net.hybridize()
    return net


USES = {
    "block": in_block,
    "static block": lambda w, x: in_block(w, x, static_alloc=True, static_shape=True),
    "block without rewrites": lambda w, x: in_block(w, x, passes="none"),
    "function": in_function,
    "body of a loop": in_body,
}


@pytest.mark.parametrize("use", USES)
def test_a_constant_is_computed_before_it_is_read(use):
    for _ in range(4):
        w, x = nd.ones((SIZE, SIZE)), nd.ones((3,))
        w.wait_to_read()
        np.testing.assert_allclose(USES[use](w, x)(x).asnumpy(), SIZE)


def test_a_gradient_reads_constants_when_they_are_computed():
    for _ in range(4):
        w, x = nd.ones((SIZE, SIZE)), nd.ones((3,))
        x.attach_grad()
        net = in_block(w, x)
        with autograd.record():
            y = net(x)
        y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), SIZE)


def test_a_write_that_is_still_going_on_is_read_by_the_next_call():
    w, x = nd.ones((SIZE, SIZE)), nd.ones((3,))
    net = in_block(w, x)
    for value in range(1, 6):
        w[:] = nd.dot(nd.ones((SIZE, SIZE)), nd.ones((SIZE, SIZE))) * (value / SIZE)
        np.testing.assert_allclose(net(x).asnumpy(), SIZE * value**2, rtol=1e-4)


def test_a_later_write_waits_for_the_runs_before_it():
    constant, x = nd.ones((SIZE, SIZE)), nd.ones((SIZE, SIZE))

    class Block(gluon.HybridBlock):
        def forward(self, x):
            for _ in range(8):
                x = nd.dot(x, constant) / SIZE
            return x + constant

    net = Block()
    net.hybridize()
    net(x).wait_to_read()
    for _ in range(10):
        constant[:] = 1
        before = net(x)
        constant[:] = 100
        np.testing.assert_allclose(before.asnumpy(), 2, rtol=1e-4)


def test_a_constant_that_could_not_be_computed_is_the_error_of_the_call():
    def fail():
        raise RuntimeError("no value")

    class Failing(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            fail()

    @mx.operator.register("fails_to_make_a_constant")
    class FailingProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Failing()

    class Block(gluon.HybridBlock):
        def forward(self, x):
            return x + nd.Custom(nd.ones((3,)), op_type="fails_to_make_a_constant")

    net = Block()
    net.hybridize()
    with pytest.raises(Exception, match="no value"):
        net(nd.ones((3,))).wait_to_read()
