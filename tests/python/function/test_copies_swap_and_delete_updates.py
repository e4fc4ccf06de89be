"""Function.copy with swap and delete_updates: an evaluation copy leaves parameters unchanged."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.errors import DTypeError, ShapeError
from hybridnet.errors import ValueError as HybridNetValueError
from hybridnet.gluon import nn


def regression():
    """A function that takes a gradient descent step, and its parts."""
    x, y = mx.sym.var("x", shape=(0, 3)), mx.sym.var("y", shape=(0, 1))
    w = mx.shared(mx.nd.zeros((3, 1)), name="w")
    error = mx.sym.dot(x, w) - y
    loss = mx.sym.mean(error * error)
    gradient = mx.sym.dot(x, error, transpose_a=True) / 4
    return w, mx.function([x, y], loss, updates={w: w - gradient * 0.1}, name="train")


def data():
    rng = np.random.RandomState(2)
    x = rng.rand(8, 3).astype("float32")
    return mx.nd.array(x), mx.nd.array(x @ np.array([[1.0], [-2.0], [3.0]]))


def test_an_evaluation_copy_leaves_parameters_unchanged():
    w, train = regression()
    evaluate = train.copy(delete_updates=True, name="evaluate")
    x, y = data()
    losses = []
    for _ in range(5):
        before = evaluate(x, y).asnumpy()
        value = w.get_value().asnumpy()
        np.testing.assert_array_equal(evaluate(x, y).asnumpy(), before)
        np.testing.assert_array_equal(w.get_value().asnumpy(), value)
        np.testing.assert_allclose(train(x, y).asnumpy(), before, rtol=1e-5)
        losses.append(before.item())
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]
    assert evaluate.name == "evaluate"


def test_work_for_updates_only_is_removed():
    _, train = regression()
    evaluate = train.copy(delete_updates=True)
    x, y = data()
    train(x, y), evaluate(x, y)
    products = [len(re.findall(r"\] (?:dot|_scaled_product) ", f.plan_text())) for f in (train, evaluate)]
    assert products == [2, 1]
    assert "] copy (" not in evaluate.plan_text()


def test_running_statistics_are_not_updated_by_such_a_copy():
    net, x = nn.BatchNorm(in_channels=2), mx.sym.var("x")
    net.initialize()
    f = mx.function([x], net(x))
    g = f.copy(delete_updates=True)
    values = mx.nd.array([[1, 2], [3, 5]])
    with mx.autograd.train_mode():
        np.testing.assert_allclose(g(values).asnumpy(), f.copy(delete_updates=True)(values).asnumpy())
        assert (net.running_mean.data().asnumpy() == 0).all()
        f(values)
    assert (net.running_mean.data().asnumpy() != 0).all()


def test_equal_instructions_of_both_copies_are_linked_once():
    x = mx.sym.var("x")
    w = mx.shared(np.full((32, 32), 0.1), name="w")
    y = mx.sym.softmax(mx.sym.FullyConnected(x, w, no_bias=True, num_hidden=32))
    calls = mx.shared(np.zeros(1), name="calls")
    f = mx.function([x], y, updates={calls: calls + 1})
    value = mx.nd.ones((4, 32))
    f(value)
    linked = f._op.num_kernels
    assert linked > 0
    g = f.copy(delete_updates=True)
    g(value)
    assert g._op.num_kernels == linked
    mx.function([x], y, updates={calls: calls + 1})(value)
    assert f._op.num_kernels == linked


def test_swap_reads_and_updates_the_other_variable():
    w, train = regression()
    v = mx.shared(np.ones((3, 1)), name="v")
    other = train.copy(swap={w: v})
    x, y = data()
    alone = regression()
    alone[0].set_value(np.ones((3, 1)))
    np.testing.assert_allclose(other(x, y).asnumpy(), alone[1](x, y).asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(v.get_value().asnumpy(), alone[0].get_value().asnumpy(), rtol=1e-6)
    assert (w.get_value().asnumpy() == 0).all()
    third = other.copy(swap={v: w})  # the swaps of a copy name the variables that the copy reads
    third(x, y)
    assert (w.get_value().asnumpy() != 0).any()


def test_swap_of_parameters():
    net, other, x = nn.Dense(2, in_units=3), nn.Dense(2, in_units=3), mx.sym.var("x")
    net.initialize(mx.init.One())
    other.initialize(mx.init.Constant(3.0))
    f = mx.function([x], net(x))
    g = f.copy(swap={net.weight: other.weight})
    value = mx.nd.ones((1, 3))
    assert g(value).asnumpy().tolist() == [[9, 9]]
    h = f.copy(swap={net.weight: mx.shared(np.full((2, 3), 5.0))})
    assert h(value).asnumpy().tolist() == [[15, 15]]


@pytest.mark.parametrize(
    ("new", "error", "text"),
    [
        (lambda: mx.shared(np.ones((1, 3)), name="v"), ShapeError, r"'w' for 'v'.*\(3, 1\), got \(1, 3\)"),
        (lambda: mx.shared(np.ones((3, 1)), name="v", dtype="float64"), DTypeError, r"float32, got float64"),
        (lambda: mx.shared(np.ones((3, 1)), name="v", ctx=mx.cpu(1)), HybridNetValueError, r"cpu\(0\).*cpu\(1\)"),
    ],
)
def test_swap_checks_shape_dtype_and_device(new, error, text):
    w, train = regression()
    with pytest.raises(error, match=text):
        train.copy(swap={w: new()})
    with pytest.raises(HybridNetValueError, match="swap of 'v', which it does not read"):
        train.copy(swap={mx.shared(1.0, name="v"): w})
