"""Repeated calls of composed operators reuse the operators that the first call emitted; other calls do not."""

from __future__ import annotations

import json

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import autograd, np

A = onp.arange(12, dtype="float32").reshape(3, 4)
B = A[::-1] * 2 - 3


def check(actual, expected):
    onp.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-5)
    assert actual.shape == onp.shape(expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda np, x, y: np.dot(x, y.T),
        lambda np, x, y: np.stack([x, y], axis=1),
        lambda np, x, y: np.concatenate([y, x]),
        lambda np, x, y: np.dot(x[0], y[0]),
        lambda np, x, y: np.squeeze(x.reshape(1, 12)) + np.squeeze(y.reshape(12, 1)),
        lambda np, x, y: np.vstack([x[0], y[1]]),
        lambda np, x, y: np.prod(x + y * y),
        lambda np, x, y: np.std(x, axis=0) - np.var(y),
    ],
)
def test_a_repeated_call_computes_from_its_own_arrays(call):
    x, y = np.array(A), np.array(B)
    for _ in range(3):
        check(call(np, x, y), call(onp, A, B))
        check(call(np, y, x), call(onp, B, A))


def test_an_array_given_twice_says_nothing_about_two_arrays():
    x, y = np.array(A), np.array(B)
    for a, b, numpy_a, numpy_b in ((x, x, A, A), (x, y, A, B), (y, y, B, B), (y, x, B, A)):
        check(np.concatenate([a, b]), onp.concatenate([numpy_a, numpy_b]))
        check(np.dot(a.reshape(-1), b.reshape(-1)), onp.dot(numpy_a.reshape(-1), numpy_b.reshape(-1)))


def test_parameters_shapes_and_dtypes_tell_calls_apart():
    x, y = np.array(A), np.array(B)
    for _ in range(2):
        for axis in (0, 1, -1):
            check(np.stack([x, y], axis=axis), onp.stack([A, B], axis=axis))
        check(np.stack([x[0], y[0]], axis=0), onp.stack([A[0], B[0]], axis=0))
        mixed = np.stack([x.astype("int32"), y], axis=0)
        check(mixed, onp.stack([A, B], axis=0))
        assert mixed.dtype == onp.float32
        assert np.stack([x.astype("int32")] * 2).dtype == onp.int32


def test_semantics_of_the_thread_tell_calls_apart():
    x = np.array(A[0])
    for on in (False, True, False):
        with mx.util.np_shape(on):
            check(np.dot(x, x * 2), onp.dot(A[0], A[0] * 2))


def test_results_do_not_share_memory_with_inputs():
    x = np.array(A.reshape(1, 12))
    for _ in range(3):
        y = np.squeeze(x)
        y[0] = 100
        assert x[0, 0] == 0


def test_repeated_calls_write_into_out_in_its_dtype():
    x, y, out = np.array(A), np.array(B.T), np.zeros((3, 3), dtype="float64")
    for _ in range(3):
        np.dot(x, y, out=out)
        check(out, A @ B.T)
        check(np.dot(x, y), A @ B.T)


def test_repeated_calls_are_recorded():
    x, y = np.array(A), np.array(B.T)
    for _ in range(3):
        x.attach_grad()
        with autograd.record():
            z = np.dot(x, y)
        z.backward()
        check(x.grad, onp.ones((3, 3)) @ B)


def test_errors_come_in_every_call_and_leave_other_calls_alone():
    x, y = np.array(A), np.array(B)
    for _ in range(2):
        with pytest.raises(mx.errors.ShapeError, match="rhs"):
            np.dot(x, y)
        check(np.dot(x, y.T), A @ B.T)


@pytest.mark.parametrize(
    ("call", "operator"),
    [
        (lambda np, x: np.nansum(x, axis=1), "_npi_nansum"),
        (lambda np, x: np.nanprod(x), "_npi_nanprod"),
        (lambda np, x: np.unravel_index(x, (3, 4))[1], "_npi_unravel_index"),
        (lambda np, x: np.concat([x], axis=0), "_npi_concatenate"),
    ],
)
def test_a_call_is_one_operator(call, operator):
    symbol = call(mx.sym.np, mx.sym.var("x").as_np_ndarray())
    ops = [node["op"] for node in json.loads(symbol.tojson())["nodes"] if node["op"] != "null"]
    assert ops == [operator]


@pytest.mark.parametrize(("ours", "theirs"), [(np.nansum, onp.nansum), (np.nanprod, onp.nanprod), (np.prod, onp.prod)])
def test_reductions_without_nan_are_those_of_numpy_with_gradients(ours, theirs):
    values = onp.array([[1.5, 0.0, 2.0], [-1.0, 3.0, 0.5]], "float32")
    if ours is not np.prod:
        values[0, 2] = onp.nan
    x = np.array(values)
    x.attach_grad()
    with autograd.record():
        total = ours(x, axis=1)
    total.backward()
    check(total, theirs(values, axis=1))
    step = onp.float32(0.25)  # a difference is exact, because the functions are linear in each element
    expected = onp.zeros_like(values)
    for place in onp.ndindex(values.shape):
        moved = values.copy()
        moved[place] += step
        expected[place] = (theirs(moved, axis=1) - theirs(values, axis=1))[place[0]] / step
    check(x.grad, expected)
    check(ours(x, axis=(0, 1), keepdims=True), theirs(values, axis=(0, 1), keepdims=True))
    check(ours(x, axis=0, dtype="float64"), theirs(values, axis=0, dtype="float64"))
    check(ours(np.array([1, 2, 3], "int32")), theirs(onp.array([1, 2, 3])))


def test_floats_lose_their_nan_before_they_become_integers():
    x = np.array([1.5, float("nan"), 4.0])
    assert int(np.nansum(x, dtype="int32")) == 5
    assert int(np.nanprod(x, dtype="int32")) == 4


def test_exchanged_axes_must_be_named():
    with pytest.raises(TypeError):
        np.swapaxes(np.ones((2, 3)))
