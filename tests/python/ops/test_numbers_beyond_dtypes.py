"""Numbers beyond the range of a dtype give a defined result, the same in each run, and are out of bounds as indices."""

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


class Function(mx.gluon.HybridBlock):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, x):
        return self.function(x)


NARROW = ["uint8", "int8", "int32"]
FLOATS = ["float32", "float64", "float16", "bfloat16"]


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("given", FLOATS)
def test_casts_of_floats_wrap_around_in_narrow_integers(given, dtype):
    values = [-3.0, -3.9, 300.0, 1e4, -1e4, 0.0, -1.0, 255.0, 127.9] * 300
    if given in ("float32", "float64"):
        values += [-(2.0**31), 2.0**31, 3e9, -3e9, 2.0**40, -(2.0**62) - 2.0**40]
    x = mx.nd.array(values, dtype=given)
    expected = x.astype("float64").asnumpy().astype("int64").astype(dtype)
    np.testing.assert_array_equal(x.astype(dtype).asnumpy(), expected)
    target = mx.nd.zeros(x.shape, dtype=dtype)
    target[:] = x
    np.testing.assert_array_equal(target.asnumpy(), expected)
    net = Function(lambda x: x.astype(dtype))
    net.hybridize()
    np.testing.assert_array_equal(net(x).asnumpy(), expected)


@pytest.mark.parametrize(("value", "whole"), [(np.inf, -1), (-np.inf, 0), (np.nan, 0), (1e30, -1), (-1e30, 0)])
@pytest.mark.parametrize("dtype", NARROW)
def test_casts_of_numbers_beyond_int64_saturate_at_int64_first(value, whole, dtype):
    expected = np.array([whole, 1]).astype(dtype)
    np.testing.assert_array_equal(mx.nd.array([value, 1.0]).astype(dtype).asnumpy(), expected)


NUMBERS = [-1, -3, -129, -128, 127, 128, 200, 255, 256, 300, -300, 70000, 3_000_000_000, -3_000_000_000]
CALLS = {
    "add": lambda x, n: x + n,
    "radd": lambda x, n: n + x,
    "subtract": lambda x, n: x - n,
    "rsubtract": lambda x, n: n - x,
    "multiply": lambda x, n: x * n,
    "mod": lambda x, n: x % n,
    "rmod": lambda x, n: n % x,
}


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", NARROW)
def test_numbers_beyond_the_dtype_count_in_full_and_the_result_wraps_around(dtype, call, hybrid):
    values = np.array([1, 3, 100, 127], dtype)
    x = mx.nd.array(values, dtype=dtype)
    for number in NUMBERS:
        expected = CALLS[call](values.astype("int64"), number).astype(dtype)
        net = Function(lambda x, number=number: CALLS[call](x, number))
        if hybrid:
            net.hybridize()
        found = net(x)
        assert found.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(found.asnumpy(), expected, err_msg=str(number))


@pytest.mark.parametrize("interface", [mx.nd, mx.np])
def test_limits_and_truth_of_numbers_beyond_the_dtype_are_those_of_the_numbers(interface):
    x = interface.array([3, 200], dtype="uint8")
    assert interface.maximum(x, -1).asnumpy().tolist() == [3, 200]
    assert interface.minimum(x, 300).asnumpy().tolist() == [3, 200]
    assert interface.minimum(x, -1).asnumpy().tolist() == [255, 255]
    assert mx.nd.logical_and(mx.nd.array([3, 0], dtype="uint8"), 256).asnumpy().tolist() == [1, 0]


def test_writes_in_place_of_numbers_beyond_the_dtype_wrap_around():
    x = mx.nd.array([3, 200], dtype="uint8")
    x += -1
    assert x.asnumpy().tolist() == [2, 199]
    x *= -1
    assert x.asnumpy().tolist() == [254, 57]
    x[0:1] = mx.nd.array([-1.0])
    assert x.asnumpy().tolist() == [255, 57]
    x[:] = -2
    assert x.asnumpy().tolist() == [254, 254]
