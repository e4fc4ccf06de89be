"""Operators between arrays, numbers and NumPy arrays."""

from __future__ import annotations

import operator

import hybridnet as mx
import numpy as np
import pytest

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.mod, operator.pow, operator.floordiv]
COMPARE = [operator.eq, operator.ne, operator.gt, operator.ge, operator.lt, operator.le]
FUNCTIONS = ["maximum", "minimum", "hypot"]


def pair(rng, dtype="float32"):
    a, b = rng.uniform(1, 4, (2, 3)), rng.uniform(1, 4, (2, 3))
    return a.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("op", BINARY + COMPARE, ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
def test_arrays(op, dtype, rng):
    a, b = pair(rng, dtype)
    result = op(mx.nd.array(a, dtype=dtype), mx.nd.array(b, dtype=dtype))
    assert result.dtype == np.dtype(dtype)
    expected = op(a, b)
    if op is operator.truediv and dtype.startswith("int"):
        expected = np.trunc(expected)
    np.testing.assert_allclose(
        result.asnumpy().astype("float64"), expected.astype("float64"), rtol=2e-3 if dtype == "float16" else 1e-5
    )


@pytest.mark.parametrize("op", BINARY + COMPARE, ids=lambda op: op.__name__)
@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.int64(2), True], ids=repr)
def test_numbers_on_either_side_keep_the_dtype(op, number, rng):
    a, _ = pair(rng)
    x = mx.nd.array(a)
    for result, expected in ((op(x, number), op(a, np.float32(number))), (op(number, x), op(np.float32(number), a))):
        assert isinstance(result, mx.nd.NDArray)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result.asnumpy(), expected.astype("float32"), rtol=1e-5)


@pytest.mark.parametrize("op", BINARY + COMPARE, ids=lambda op: op.__name__)
def test_numpy_arrays_on_either_side(op, rng):
    a, b = pair(rng)
    for result in (op(mx.nd.array(a), b), op(a, mx.nd.array(b))):
        assert isinstance(result, mx.nd.NDArray)
        np.testing.assert_allclose(result.asnumpy(), op(a, b).astype("float32"), rtol=1e-5)


@pytest.mark.parametrize(
    "shapes", [((2, 3), (3,)), ((2, 1), (1, 3)), ((4, 1, 3), (2, 1)), ((1,), (5,)), ((0, 3), (1, 3))], ids=repr
)
def test_broadcasting(shapes, rng):
    a, b = (rng.normal(size=shape).astype("float32") for shape in shapes)
    np.testing.assert_allclose((mx.nd.array(a) + mx.nd.array(b)).asnumpy(), a + b, rtol=1e-6)


@pytest.mark.parametrize(
    "op",
    [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.imod, operator.ipow, operator.ifloordiv],
    ids=lambda op: op.__name__,
)
@pytest.mark.parametrize("other", ["number", "array", "numpy"])
def test_in_place_writes_into_the_same_memory(op, other, rng):
    a, b = pair(rng)
    x = mx.nd.array(a)
    view = x[0:1]
    value = {"number": 2.0, "array": mx.nd.array(b), "numpy": b}[other]
    before = x
    x = op(x, value)
    assert x is before
    expected = op(a.copy(), 2.0 if other == "number" else b)
    np.testing.assert_allclose(x.asnumpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(view.asnumpy(), expected[0:1], rtol=1e-5)


def test_in_place_with_a_wrong_shape_is_an_error():
    x = mx.nd.zeros((2, 3))
    with pytest.raises(mx.errors.ShapeError):
        x += mx.nd.zeros((4, 2, 3))


def test_unary(rng):
    a = rng.normal(size=(2, 3)).astype("float32")
    x = mx.nd.array(a)
    np.testing.assert_array_equal((-x).asnumpy(), -a)
    np.testing.assert_array_equal((+x).asnumpy(), a)
    np.testing.assert_array_equal(abs(x).asnumpy(), abs(a))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_arrays_and_numbers(name, rng):
    a, b = pair(rng)
    reference, function = getattr(np, name), getattr(mx.nd, name)
    np.testing.assert_allclose(function(mx.nd.array(a), mx.nd.array(b)).asnumpy(), reference(a, b), rtol=1e-5)
    np.testing.assert_allclose(function(mx.nd.array(a), 2.0).asnumpy(), reference(a, 2.0), rtol=1e-5)
    np.testing.assert_allclose(function(2.0, mx.nd.array(a)).asnumpy(), reference(2.0, a), rtol=1e-5)
    assert function(2.0, 3.0) == pytest.approx(reference(2.0, 3.0))


def test_different_dtypes_are_an_error():
    with pytest.raises(mx.errors.DTypeError, match="float32"):
        mx.nd.ones((2,)) + mx.nd.ones((2,), dtype="float64")


def test_shapes_that_do_not_broadcast_are_an_error():
    with pytest.raises(mx.errors.ShapeError) as caught:
        mx.nd.ones((2, 3)) + mx.nd.ones((4, 3))
    assert "test_arithmetic.py" in str(caught.value)
    assert caught.value.op == "broadcast_add"


@pytest.mark.parametrize("other", [None, "text", object(), [1, 2]], ids=["None", "str", "object", "list"])
def test_other_partners_are_refused(other):
    x = mx.nd.ones((2,))
    with pytest.raises(TypeError):
        x + other
    with pytest.raises(TypeError):
        other * x if not isinstance(other, (str, list)) else x - other
    assert (x == other) is False
    assert (x != other) is True


def test_pow_with_a_modulus_is_refused():
    with pytest.raises(TypeError):
        pow(mx.nd.ones((2,)), 2, 3)


def test_matrix_product(rng):
    a, b = rng.normal(size=(2, 3)).astype("float32"), rng.normal(size=(3, 4)).astype("float32")
    np.testing.assert_allclose((mx.nd.array(a) @ mx.nd.array(b)).asnumpy(), a @ b, rtol=1e-5)
    s, t = rng.normal(size=(5, 2, 3)).astype("float32"), rng.normal(size=(5, 3, 4)).astype("float32")
    np.testing.assert_allclose((mx.nd.array(s) @ mx.nd.array(t)).asnumpy(), s @ t, rtol=1e-4)


def test_numpy_functions_see_the_values():
    x = mx.nd.array([0.0, 1.0])
    np.testing.assert_allclose(np.exp(x), np.exp([0.0, 1.0]))
    assert np.sum(x) == 1.0
    assert isinstance(np.multiply(np.ones(2, dtype="float32"), x), mx.nd.NDArray)
    target = np.zeros(2)
    np.add(target, x, out=target)
    np.testing.assert_array_equal(target, [0, 1])


@pytest.mark.parametrize(
    "function",
    [
        lambda np, x: np.sum(x),
        lambda np, x: np.sum(x, axis=1),
        lambda np, x: np.max(x, 0),
        lambda np, x: np.amin(x),
        lambda np, x: np.prod(x, axis=1, keepdims=True),
        lambda np, x: np.argmax(x, axis=1),
        lambda np, x: np.squeeze(x),
        lambda np, x: np.repeat(x, 2, axis=1),
        lambda np, x: np.swapaxes(x, 0, 1),
        lambda np, x: np.clip(x, 1.5, 3),
        lambda np, x: np.around(x),
    ],
)
def test_functions_of_numpy_that_arrays_have_as_methods_give_arrays(function):
    values = np.array([[1.0, 2.25], [3.5, 1.0]], dtype="float32")
    found = function(np, mx.nd.array(values))
    assert isinstance(found, mx.nd.NDArray)
    np.testing.assert_allclose(found.asnumpy().reshape(np.shape(function(np, values))), function(np, values))


def test_functions_of_numpy_that_arrays_have_as_methods_are_recorded():
    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        np.sum(x * x).backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [2, 4])


def test_arrays_are_hashable_by_identity():
    x, y = mx.nd.ones((1,)), mx.nd.ones((1,))
    assert {x: 1}[x] == 1
    assert len({x, y}) == 2
