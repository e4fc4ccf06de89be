"""A scan finds its non-sequences: a closure gives the same values, gradients and work as an explicit argument."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import scan

from .scans import Function, check_same, counts, normal, operators, run


def closure(x, h, w):
    F = operators(x)
    return scan(lambda a, h: (F.dot(h, w) + a).tanh(), x, h)


def explicit(x, h, w):
    F = operators(x)
    return scan(lambda a, h, w: (F.dot(h, w) + a).tanh(), x, h, w, strict=True)


ARRAYS = normal(5, 2, 3), normal(2, 3, seed=1), normal(3, 3, seed=2)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_same_values_gradients_and_work(order):
    for one, other in zip(*(run(Function(f), ARRAYS, order) for f in (closure, explicit)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert counts(closure, *ARRAYS, gradients=order) == counts(explicit, *ARRAYS, gradients=order)
    check_same(closure, *ARRAYS)


def test_parameters_are_found_and_trained():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = gluon.nn.Dense(3, use_bias=False)  # its shape is inferred in the body

        def forward(self, x):
            return scan(lambda a, h: self.dense(h) + a, x, mx.nd.ones((2, 3)))

    net = Net()
    net.initialize()
    net.hybridize(strict=True)
    with mx.autograd.record():
        loss = net(mx.nd.ones((4, 2, 3))).sum()
    loss.backward()
    assert net.dense.weight.shape == (3, 3)
    assert abs(net.dense.weight.grad()).sum().asscalar() > 0
