"""Loops over arrays of mx.np give arrays of mx.np, also those that the loop makes itself."""

from __future__ import annotations

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import np, npx
from hybridnet.contrib.control_flow import foreach, while_loop


@pytest.fixture(autouse=True)
def numpy_interface():
    npx.set_np()
    yield
    npx.reset_np()


X = onp.arange(6, dtype="float32").reshape(3, 2)


def test_the_index_of_an_iteration() -> None:
    x = np.array(X)
    outs, _ = foreach(lambda t, d, s: (d * t, s), x, x[0], with_index=True)
    assert type(outs) is np.ndarray
    onp.testing.assert_array_equal(outs.asnumpy(), X * [[0], [1], [2]])


def test_padded_outputs_and_the_count() -> None:
    x = np.array(X)
    outs, (_, last), count = while_loop(
        lambda i, v: i < 2, lambda i, v: (v, [i + 1, v * 2]), [0, x], max_iterations=4, return_count=True
    )
    assert type(outs) is type(last) is type(count) is np.ndarray
    onp.testing.assert_array_equal((outs * count).asnumpy(), onp.stack([X, 2 * X, 0 * X, 0 * X]) * 2)


def test_outputs_of_no_iterations() -> None:
    x = np.array(X)
    outs, _ = foreach(lambda d, s: (d * s, s), x[:0], x[0])
    assert type(outs) is np.ndarray
    assert (outs * x[0]).shape == (0, 2)


def test_a_limit_that_is_an_array() -> None:
    x = np.array(X)
    outs, _ = while_loop(
        lambda i, v: i < 9, lambda i, v: (v, [i + 1, v + 1]), [0, x], max_iterations=np.array(3, dtype="int64")
    )
    assert outs.shape == (3, 3, 2)


def test_iterations_without_gradient_return_constants() -> None:
    x = mx.np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with mx.autograd.record():
        outs, _ = foreach(lambda d, s: (x, s), np.zeros((4, 1)), x * 2, truncate_gradient=1)
        loss = (outs**2).sum()
    loss.backward()
    onp.testing.assert_array_equal(x.grad.asnumpy(), [2, 4, 6])
