"""Values are bound in each call: swapping a parameter links no instruction again."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
from hybridnet.gluon import nn


def test_swapping_a_parameter_links_nothing_anew():
    net, other, x = nn.Dense(4, in_units=3), nn.Dense(4, in_units=3), mx.sym.var("x")
    for block, init in ((net, mx.init.One()), (other, mx.init.Constant(2.0))):
        block.initialize(init)
    f = mx.function([x], mx.sym.relu(net(x)))
    data = mx.nd.ones((2, 3))
    f(data)
    linked = f._op.num_kernels
    assert linked > 0
    g = f.copy(swap={net.weight: other.weight, net.bias: other.bias})
    np.testing.assert_array_equal(g(data).asnumpy(), 6)
    np.testing.assert_array_equal(f(data).asnumpy(), 3)
    assert g._op.num_kernels == f._op.num_kernels == linked


def test_new_arrays_of_a_parameter_link_nothing_anew():
    net, x = nn.Dense(4, in_units=3), mx.sym.var("x")
    net.initialize(mx.init.One())
    f = mx.function([x], net(x))
    data = mx.nd.ones((2, 3))
    f(data)
    linked = f._op.num_linked
    net.initialize(mx.init.Constant(2.0), force_reinit=True)
    np.testing.assert_array_equal(f(data).asnumpy(), 6)
    assert f._op.num_linked == linked == 1
