"""Parameters and shared variables are implicit inputs of a function, which sees set_data at once."""

from __future__ import annotations

import gc

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.errors import DTypeError, ShapeError
from hybridnet.errors import TypeError as HybridNetTypeError
from hybridnet.gluon import nn


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3, activation="relu"), nn.BatchNorm(in_channels=4), nn.Dense(2, in_units=4))
    net.initialize(mx.init.Xavier())
    return net


def test_parameters_of_a_block_are_found_and_seen_at_once():
    net, x = network(), mx.sym.var("x", shape=(0, 3))
    f = mx.function([x], net(x))
    data = mx.nd.array(np.random.RandomState(0).rand(5, 3))
    np.testing.assert_allclose(f(data).asnumpy(), net(data).asnumpy(), rtol=1e-6)
    net[0].weight.set_data(mx.nd.array(np.random.RandomState(1).rand(4, 3)))
    np.testing.assert_allclose(f(data).asnumpy(), net(data).asnumpy(), rtol=1e-6)
    net.initialize(mx.init.One(), force_reinit=True)  # replaces the arrays of the parameters
    np.testing.assert_allclose(f(data).asnumpy(), net(data).asnumpy(), rtol=1e-6)
    assert {param.name for param in f.shared} == {param.name for param in net.collect_params().values()}


def test_parameters_whose_shape_is_not_known_yet():
    net, x = nn.Dense(4), mx.sym.var("x")
    net.initialize()
    f = mx.function([x], net(x))
    with pytest.raises(mx.MXNetError, match="dense"):
        f(mx.nd.ones((2, 3)))
    net(mx.nd.ones((2, 3)))
    assert f(mx.nd.ones((2, 3))).shape == (2, 4)


def test_a_parameter_as_variable_and_key_of_updates():
    net, x = nn.Dense(2, in_units=3, use_bias=False), mx.sym.var("x")
    net.initialize(mx.init.One())
    halve = mx.function([x], net(x), updates={net.weight: net.weight.var() / 2})
    data = mx.nd.ones((1, 3))
    assert halve(data).asnumpy().tolist() == [[3, 3]]
    assert net(data).asnumpy().tolist() == [[1.5, 1.5]]


def test_values_of_shared_variables():
    w = mx.shared(np.array([[1, 2]]), name="w", dtype="int32")
    f = mx.function([], w + 1)
    copy = w.get_value()
    w.set_value([[5, 6]])
    assert f().asnumpy().tolist() == [[6, 7]]
    assert copy.asnumpy().tolist() == [[1, 2]]
    w.value[0, 0] = 9
    assert f().asnumpy().tolist() == [[10, 7]]
    with pytest.raises(ShapeError, match=r"'w'.*\(1, 2\).*\(3,\)"):
        w.set_value(mx.nd.ones(3, dtype="int32"))
    with pytest.raises(DTypeError, match=r"'w'.*int32.*float32"):
        w.set_value(mx.nd.ones((1, 2)))
    with pytest.raises(HybridNetTypeError, match="'x', which has no value"):
        mx.shared(mx.sym.var("x"))


def test_the_array_that_a_shared_variable_is_made_of_stays_apart():
    array = mx.nd.array([1.0, 2.0])
    w = mx.shared(array)
    mx.function([], None, updates={w: w * 2})()
    assert array.asnumpy().tolist() == [1, 2]
    assert w.get_value().asnumpy().tolist() == [2, 4]


def test_a_graph_keeps_its_shared_values():
    def layer(x):
        return x * mx.shared([2.0, 3.0])

    x = mx.sym.var("x")
    f = mx.function([x], layer(x))
    gc.collect()
    assert f(mx.nd.ones(2)).asnumpy().tolist() == [2, 3]


def test_shared_variables_in_bodies_of_loops_and_branches():
    w, x = mx.shared([1.0, 2.0], name="w"), mx.sym.var("x")
    looped, total = mx.sym.contrib.foreach(lambda row, s: (row * w, s + w), x, mx.sym.zeros((2,)))
    chosen = mx.sym.contrib.cond(mx.sym.sum(x) > 3, lambda: w * 10, lambda: w)
    f = mx.function([x], [looped, total, chosen], updates={w: w + total})
    rows = np.ones((3, 2))
    for scale in (1.0, 4.0):
        out, summed, picked = f(mx.nd.array(rows))
        w_before = np.array([1, 2]) * scale
        np.testing.assert_array_equal(out.asnumpy(), rows * w_before)
        np.testing.assert_array_equal(summed.asnumpy(), 3 * w_before)
        np.testing.assert_array_equal(picked.asnumpy(), 10 * w_before)


def test_gradients_reach_inputs_parameters_and_shared_variables():
    net, x = nn.Dense(1, in_units=2, use_bias=False), mx.sym.var("x")
    net.initialize(mx.init.One())
    scale = mx.shared([3.0], name="scale")
    scale.value.attach_grad()
    f = mx.function([x], mx.sym.broadcast_mul(net(x), scale))
    data = mx.nd.array([[1.0, 4.0]])
    data.attach_grad()
    with mx.autograd.record():
        out = f(data)
    out.backward()
    assert data.grad.asnumpy().tolist() == [[3, 3]]
    assert net.weight.grad().asnumpy().tolist() == [[3, 12]]
    assert scale.value.grad.asnumpy().tolist() == [5]


def test_a_parameter_on_several_contexts_is_read_but_not_updated():
    net, x = nn.Dense(1, in_units=2, use_bias=False), mx.sym.var("x")
    net.initialize(mx.init.One(), ctx=[mx.cpu(0), mx.cpu(1)])
    assert mx.function([x], net(x))(mx.nd.ones((1, 2))).asnumpy() == 2
    f = mx.function([x], net(x), updates={net.weight: net.weight.var() * 2})
    with pytest.raises(mx.errors.ValueError, match=r"weight'.*one context, got one on 2"):
        f(mx.nd.ones((1, 2)))
    assert net(mx.nd.ones((1, 2), ctx=mx.cpu(1))).asnumpy() == 2
