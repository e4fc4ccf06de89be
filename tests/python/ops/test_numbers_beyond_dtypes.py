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
