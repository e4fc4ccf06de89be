"""Composed operators in calls like one before: what the first call emitted serves the later ones, and no others."""

from __future__ import annotations

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
