"""Edge cases of mx.np's statistics: infinite data, decreasing bins, narrow integers, norms of negative order."""

import hybridnet as mx
import numpy as onp
import pytest

INF = float("inf")
np = mx.np


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [3, 2, 2, 0]])
def test_digitize_puts_equal_values_on_numpys_side(bins, right):
    x = [0.5, 1.0, 2.0, 2.5, 3.0, 4.0]
    found = np.digitize(np.array(x), np.array(bins), right=right)
    onp.testing.assert_array_equal(found.asnumpy(), onp.digitize(x, bins, right=right))


@pytest.mark.parametrize("function", [np.percentile, np.nanpercentile])
@pytest.mark.parametrize(
    ("data", "q", "method", "expected"),
    [
        ([-INF, 1.0, 2.0], 30, "linear", -INF),
        ([-INF, 1.0, 2.0], 20, "linear", -INF),
        ([-INF, 1.0, 2.0], 0, "linear", -INF),
        ([-INF, 1.0, 2.0], 50, "linear", 1.0),
        ([-INF, 1.0, 2.0], 30, "midpoint", -INF),
        ([-INF, 1.0, 2.0], 0, "midpoint", -INF),
        ([-INF, 1.0, 2.0], 20, "nearest", -INF),
        ([-INF, 1.0, 2.0], 20, "higher", 1.0),
        ([-INF, 1.0, 2.0], 20, "lower", -INF),
        ([1.0, 2.0, INF], 50, "linear", 2.0),
        ([1.0, 2.0, INF], 60, "linear", INF),
        ([1.0, 2.0, INF], 100, "linear", INF),
        ([INF, INF], 40, "linear", INF),
        ([INF], 50, "midpoint", INF),
        ([-INF, INF], 50, "linear", float("nan")),
        ([-3e38, 3e38], 75, "linear", 1.5e38),
    ],
)
def test_percentiles_beside_infinities(function, data, q, method, expected):
    found = function(np.array(data), q, interpolation=method)
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)


def test_medians_of_infinities_are_infinite():
    assert np.median(np.array([-INF, 1.0])).item() == -INF
    assert np.nanmedian(np.array([INF])).item() == INF
    assert np.nanmedian(np.array([INF, float("nan"), 1.0, INF])).item() == INF
    assert onp.isnan(np.median(np.array([INF, float("nan")])).item())


@pytest.mark.parametrize("name", ["nansum", "nanprod", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_functions_that_numpy_alone_has_accumulate_integers_in_int64(name, dtype):
    values = onp.array([100, 120, 121, 90, 119], dtype)
    found = getattr(np, name)(np.array(values, dtype=dtype))
    assert found.dtype == onp.int64
    onp.testing.assert_array_equal(found.asnumpy(), getattr(onp, name)(values.astype("int64")))
    assert getattr(np, name)(np.array(values, dtype=dtype), dtype="int32").dtype == onp.int32


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum"])
def test_functions_of_mxnet_accumulate_bytes_in_bytes(name):
    values = onp.array([200, 200, 3], "uint8")
    found = getattr(np, name)(np.array(values, dtype="uint8"))
    onp.testing.assert_array_equal(found.asnumpy(), getattr(onp, name)(values, dtype="uint8"))
    assert found.dtype == onp.uint8


@pytest.mark.parametrize("order", [-1, -2, -0.5, 3])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_infinite_vectors_are_numpys(order, keepdims):
    values = onp.array([[-3.0, INF, 0.0], [4.0, -INF, 2.0]], "float32")
    with onp.errstate(divide="ignore"):
        expected = onp.linalg.norm(values, ord=order, axis=0, keepdims=keepdims)
    found = np.linalg.norm(np.array(values), ord=order, axis=0, keepdims=keepdims)
    onp.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)


def test_gradients_of_norms_below_order_0_are_finite_beside_zeros_and_infinities():
    x = np.array([[3.0, INF], [4.0, INF]])
    x.attach_grad()
    with mx.autograd.record():
        norm = np.linalg.norm(x, ord=-1, axis=0)
    norm.backward()
    onp.testing.assert_allclose(x.grad.asnumpy()[:, 0], (12 / 7) ** 2 / onp.array([9.0, 16.0]), rtol=1e-5)
    assert not onp.isnan(x.grad.asnumpy()).any()
