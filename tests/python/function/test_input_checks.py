"""mx.function checks its inputs: errors about number, name, dtype and dimensions name the input."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.errors import DTypeError, ShapeError
from hybridnet.errors import TypeError as HybridNetTypeError
from hybridnet.errors import ValueError as HybridNetValueError


def make():
    x = mx.sym.var("x", shape=(0, 3), dtype="float32")
    y = mx.sym.var("y", shape=(0, 3), dtype="float32")
    return mx.function([x, mx.In(y, name="other")], x - y, name="difference")


def test_values_by_position_and_by_name():
    f = make()
    a, b = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    for out in (f(mx.nd.array(a), mx.nd.array(b)), f(mx.nd.array(a), other=mx.nd.array(b)), f(other=b, x=a)):
        np.testing.assert_array_equal(out.asnumpy(), a - b)


def test_any_size_where_none_is_declared():
    f = make()
    for rows in (1, 4, 7):
        assert f(mx.nd.ones((rows, 3)), mx.nd.ones((rows, 3))).shape == (rows, 3)


def test_a_list_for_a_list_and_an_array_for_one():
    x = mx.sym.var("x")
    value = mx.nd.array([1, 2])
    assert isinstance(mx.function([x], x + 1)(value), mx.nd.NDArray)
    [out] = mx.function([x], [x + 1])(value)
    np.testing.assert_array_equal(out.asnumpy(), [2, 3])
    assert mx.function([x], [x + 1, x])(value)[1].asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (lambda: mx.nd.ones(3), ShapeError, r"'x'.*2 dimensions.*\(\?, 3\).*got 1, \(3,\)"),
        (lambda: mx.nd.ones((2, 4)), ShapeError, r"'x'.*\(\?, 3\), got \(2, 4\)"),
        (lambda: mx.nd.ones((2, 3), dtype="float64"), DTypeError, r"'x'.*float32, got float64"),
        (lambda: np.ones((2, 3), dtype=complex), DTypeError, r"'x'.*float32, got complex128"),
        (lambda: "text", HybridNetTypeError, r"'x'.*an array.*got a str"),
        (lambda: None, HybridNetTypeError, r"'x'.*an array.*got None"),
        (lambda: [[1, 2], [3]], HybridNetTypeError, r"'x'.*an array"),
        (lambda: mx.nd.ones((2, 3), ctx=mx.cpu(1)), HybridNetValueError, r"cpu\(1\).*cpu\(0\)|cpu\(0\).*cpu\(1\)"),
    ],
)
def test_errors_name_the_input(given, error, text):
    f = make()
    fine = mx.nd.ones((2, 3))
    f(fine, fine)
    with pytest.raises(error, match=text) as caught:
        f(given(), fine)
    assert "Fix: " in str(caught.value)
    np.testing.assert_array_equal(f(fine, fine).asnumpy(), np.zeros((2, 3)))  # the function still works


def test_wrong_numbers_and_names_of_inputs():
    f = make()
    value = mx.nd.ones((2, 3))
    with pytest.raises(HybridNetTypeError, match=r"'other' is missing"):
        f(value)
    with pytest.raises(HybridNetTypeError, match=r"at most 2 inputs.*got 3"):
        f(value, value, value)
    with pytest.raises(HybridNetTypeError, match=r"'x' is given by position and by name"):
        f(value, x=value)
    with pytest.raises(HybridNetTypeError, match=r"unknown input 'othr'.*\n.*'other'"):
        f(value, othr=value)


def test_every_variable_of_the_graph_needs_a_value():
    x, y = mx.sym.var("x"), mx.sym.var("y")
    with pytest.raises(HybridNetValueError, match=r"'y', which has no value"):
        mx.function([x], x + y)
    with pytest.raises(HybridNetTypeError, match=r"variables.*got the result of an operator"):
        mx.function([x + 1], x)
    with pytest.raises(HybridNetTypeError, match=r"one output.*got 2"):
        mx.function([x], [mx.sym.Group([x, x + 1])])
    with pytest.warns(UserWarning, match=r"reads the input 'y'"):
        mx.function([x, y], x + 1)


def test_no_inputs_and_no_outputs():
    count = mx.shared(0.0, name="count")
    tick = mx.function(updates={count: count + 1}, outputs=None)
    assert tick() is None
    assert tick() is None
    assert count.get_value().asnumpy() == 2
    assert mx.function([], count * 2)().asnumpy() == 4
