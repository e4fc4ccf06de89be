"""Numbers that a dtype does not hold: a defined result, the same in each run, and indices that are out of bounds."""

import hybridnet as mx
import numpy as np
import pytest

INT64 = np.iinfo(np.int64)


@pytest.mark.parametrize(
    ("value", "whole"), [(np.inf, INT64.max), (-np.inf, INT64.min), (1e300, INT64.max), (np.nan, 0)]
)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8"])
def test_filling_saturates_at_int64_and_wraps_in_narrower_dtypes(value, whole, dtype):
    expected = np.array([whole, whole]).astype(dtype)
    np.testing.assert_array_equal(mx.nd.full((2,), value, dtype=dtype).asnumpy(), expected)


def test_ranges_beyond_int64_saturate():
    found = mx.nd.arange(0, 4e19, 1e19, dtype="int64").asnumpy()
    np.testing.assert_array_equal(found, [0, INT64.max, INT64.max, INT64.max])


@pytest.mark.parametrize("index", [np.nan, np.inf, -np.inf, -4e32])
def test_indices_that_are_no_numbers_of_rows_are_out_of_bounds(index):
    rows = mx.nd.array([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(IndexError):
        mx.nd.take(rows, mx.nd.array([index]), mode="raise").asnumpy()
    assert mx.nd.one_hot(mx.nd.array([index]), 3).asnumpy().tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sums_of_products_of_large_integers_wrap_around(dtype):
    most = np.iinfo(dtype).max
    values = np.array([[most, 1], [most, 2], [3, most]], dtype)
    with np.errstate(over="ignore"):
        expected = values.T @ values
    dense, csr = mx.nd.array(values, dtype=dtype), mx.nd.sparse.csr_matrix(values, dtype=dtype)
    np.testing.assert_array_equal(mx.nd.dot(dense, dense, transpose_a=True).asnumpy(), expected)
    np.testing.assert_array_equal(mx.nd.sparse.dot(csr, dense, transpose_a=True).asnumpy(), expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_khatri_rao_of_integers_wraps_around(dtype):
    least = np.iinfo(dtype).min
    product = mx.nd.khatri_rao(mx.nd.array([[least]], dtype=dtype), mx.nd.array([[-1], [2]], dtype=dtype))
    np.testing.assert_array_equal(product.asnumpy(), np.array([[least], [0]], dtype))


def test_norms_of_integers_whose_sum_wraps_are_defined():
    x = mx.nd.array([2**31, 2**31, 2**31], dtype="int64")  # 3 * 2^62 is beyond int64: the sum wraps below 0
    assert mx.nd.norm(x).asscalar() == 0


def test_edges_of_histograms_of_bytes_wrap_as_in_numpy():
    _, edges = mx.nd.histogram(mx.nd.array([1, 2], dtype="uint8"), bins=4, range=(-2, 2))
    np.testing.assert_array_equal(edges.asnumpy(), np.array([254, 255, 0, 1, 2], "uint8"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e30])
def test_regions_that_are_no_numbers_hold_no_pixels_and_classes_that_are_none_stay_apart(value):
    data = mx.nd.ones((1, 4, 3, 3))
    pooled = mx.nd.contrib.PSROIPooling(
        data, mx.nd.array([[0, value, value, 2, value]]), spatial_scale=1.0, output_dim=1, pooled_size=2
    )
    np.testing.assert_array_equal(pooled.asnumpy(), np.zeros((1, 1, 2, 2)))
    kept = mx.nd.contrib.box_nms(mx.nd.array([[[value, 0.9, 0, 0, 1, 1], [1, 0.8, 0, 0, 1, 1]]]), id_index=0)
    np.testing.assert_allclose(kept.asnumpy()[0, :, 1], [0.9, 0.8], rtol=1e-6)


@pytest.mark.parametrize("shape", [(2**62, 4, -1), (-4, 2**33, 2**33, -2), (2**63 - 1, 2**20, -1)])
def test_reshapes_whose_sizes_multiply_beyond_int64_are_errors(shape):
    with pytest.raises(mx.base.MXNetError, match="shape"):
        mx.nd.reshape(mx.nd.zeros((4, 3)), shape=shape).wait_to_read()
