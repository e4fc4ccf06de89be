"""Functions of mx.np whose usual calls go directly to operators: all other calls follow the Python function."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as onp
import pytest
from hybridnet import autograd, errors, np

A = onp.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]], "float32")


def check(actual, expected):
    onp.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-6)
    assert actual.shape == onp.shape(expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda np, a: np.take(a, np.array([1, 0]), axis=1),
        lambda np, a: np.take(a, np.array([1, 5])),
        lambda np, a: np.take(a, np.array([4, -5]), mode="wrap"),
        lambda np, a: np.take(a, np.array([4, -5]), axis=1, mode="clip"),
        lambda np, a: np.take(a, indices=[0], axis=0),
        lambda np, a: np.take(a, 2, None),
        lambda np, a: np.clip(a, 0, 2),
        lambda np, a: np.clip(a, None, 2),
        lambda np, a: np.clip(a, a_min=1, a_max=None),
        lambda np, a: np.clip(a, np.zeros((3,)), 2),
        lambda np, a: np.where(a > 0, a, -a),
        lambda np, a: np.where(a > 0, a, 0),
        lambda np, a: np.where(a > 0, 1.5, a),
        lambda np, a: np.where(a > 0)[0],
        lambda np, a: np.sort(a),
        lambda np, a: np.sort(a, 0),
        lambda np, a: np.sort(a, axis=None),
        lambda np, a: np.sort(a, kind="stable"),
        lambda np, a: np.argsort(a, axis=0),
        lambda np, a: np.flip(a),
        lambda np, a: np.flip(a, (0, 1)),
        lambda np, a: np.flip(m=a, axis=1),
        lambda np, a: np.tile(a, 2),
        lambda np, a: np.tile(a, (2, 0)),
        lambda np, a: np.tile(a, reps=(2, 1, 3)),
        lambda np, a: np.repeat(a, 2),
        lambda np, a: np.repeat(a, [1, 2], axis=0),
        lambda np, a: np.repeat(a, np.array([0, 1, 2]), 1),
        lambda np, a: np.broadcast_to(a, (2, 2, 3)),
        lambda np, a: np.broadcast_to(3.0, (2,)),
        lambda np, a: np.swapaxes(a, 0, 1),
        lambda np, a: np.swapaxes(a, axis1=0, axis2=-1),
        lambda np, a: np.cumsum(a),
        lambda np, a: np.cumsum(a, 1, "float64"),
        lambda np, a: np.cumsum(a, axis=0, dtype="int32"),
        lambda np, a: np.diag(a, k=1),
        lambda np, a: np.diag(a[0]),
        lambda np, a: np.ones_like(a),
        lambda np, a: np.zeros_like(a, dtype="int32"),
        lambda np, a: np.ones_like(a > 0),
    ],
)
def test_every_way_to_call_gives_numpys_result(call):
    x, given = np.array(A), A.copy()
    for _ in range(2):
        result = call(np, x)
        check(result, call(onp, given))


def test_dtypes_are_those_of_the_function():
    x = np.array(A)
    assert np.argsort(x).dtype == onp.int64
    assert np.zeros_like(x, "int8").dtype == onp.int8
    assert np.ones_like(x > 0).dtype == onp.bool_
    assert np.cumsum(x, dtype=onp.float64).dtype == onp.float64


def test_results_go_into_out():
    x, out = np.array(A), np.zeros((2, 3))
    assert np.clip(x, 0, 1, out=out) is out
    check(out, onp.clip(A, 0, 1))


def test_gradients_flow():
    x = np.array(A)
    x.attach_grad()
    with autograd.record():
        y = np.where(x > 0, x, x * 2) + np.take(x, np.array([1, 0]), axis=0) + np.flip(x, 1)
    y.backward()
    check(x.grad, onp.where(A > 0, 1, 2) + 2.0)


def test_errors_are_those_of_the_function():
    x = np.array(A)
    with pytest.raises(IndexError):
        np.take(x, np.array([7]), axis=0)
    with pytest.raises(errors.ShapeError, match="at least one axis"):
        np.sort(np.array(1.0))
    with pytest.raises(TypeError, match="keyword"):
        np.where(x, x, x, z=1)


def test_they_look_like_functions():
    assert str(inspect.signature(np.where)) == "(condition: 'Any', x: 'Any' = None, y: 'Any' = None) -> 'Any'"
    assert np.where.__name__ == "where" and "condition" in np.where.__doc__
    assert pickle.loads(pickle.dumps(np.take)) is np.take
    assert copy.deepcopy(np.take) is np.take


@pytest.mark.parametrize("make", [np.array, lambda a: np.array(a).as_nd_ndarray()])
def test_slices_of_rows_are_views(make):
    x, expected = make(A), A.copy()
    x[0:1] = 5
    expected[0:1] = 5
    check(x, expected)
    rows = x[1:]
    rows[:] = make(A[:1])
    expected[1:] = A[:1]
    check(x, expected)
    x[:] = 1.5
    check(rows, onp.full((1, 3), 1.5))
    check(x[-1:5], onp.full((1, 3), 1.5))
    check(x[None:None:1], onp.full((2, 3), 1.5))
    for key in (slice(0, 2), slice(1, 2)):
        x[key] = onp.arange(3)  # broadcasts
        expected[key] = onp.arange(3)
    check(x, onp.broadcast_to(onp.arange(3), (2, 3)))


def test_slices_of_rows_are_recorded():
    x = np.array(A)
    x.attach_grad()
    with autograd.record():
        y = x[1:2] * 3
    y.backward()
    check(x.grad, [[0, 0, 0], [3, 3, 3]])
