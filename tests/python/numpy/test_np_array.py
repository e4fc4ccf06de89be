"""The array class of mx.np: creation, promotion, indexing, conversion, gradients, and refused uses."""

from __future__ import annotations

import copy
import pickle

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import np

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")


def promoted(a: str, b: str) -> str:
    floats = [d for d in (a, b) if d.startswith("float")]
    if floats:
        return onp.result_type(*floats).name
    return "int32" if {a, b} == {"int8", "uint8"} else onp.result_type(a, b).name


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_arrays_of_two_dtypes_meet_in_their_common_dtype(a: str, b: str):
    x, y = np.ones((2, 3), dtype=a), np.ones((3,), dtype=b)
    common = onp.dtype(promoted(a, b))
    assert onp.dtype((x + y).dtype) == onp.dtype((x * y).dtype) == common
    assert onp.dtype(np.concatenate([x[0], y]).dtype) == common
    divided = common if common.kind == "f" else onp.dtype("float32")
    assert onp.dtype((x / y).dtype) == divided
    assert (x == y).dtype == onp.bool_


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_do_not_widen_arrays(dtype: str):
    x = np.ones((2,), dtype=dtype)
    whole = "int64" if dtype == "bool" else dtype
    assert onp.dtype((x + 1).dtype).name == onp.dtype((2 - x).dtype).name == whole
    real = dtype if dtype.startswith("float") else "float32"
    for result in (x + 1.5, x / 2, 2 / x, 1.5 * x, x**1.5):
        assert onp.dtype(result.dtype).name == real


def test_arithmetic_in_place_keeps_the_array():
    x = np.array([1.0, 2.0])
    alias = x
    x += 1
    x *= np.array([2, 3], dtype="int32")
    x -= onp.array([1.0, 1.0], dtype="float64")
    assert alias is x and x.dtype == onp.float32
    assert x.tolist() == [3.0, 8.0]
    whole = np.array([1, 2], dtype="int32")
    with pytest.raises(mx.errors.DTypeError, match="float32"):
        whole += 1.5


@pytest.mark.parametrize(
    "made, shape, dtype",
    [
        (lambda: np.zeros((2, 0)), (2, 0), "float32"),
        (lambda: np.zeros(()), (), "float32"),
        (lambda: np.ones(3, dtype="int8"), (3,), "int8"),
        (lambda: np.full((2,), 3), (2,), "float32"),
        (lambda: np.full((2,), True), (2,), "bool"),
        (lambda: np.full((2, 2), [1, 2]), (2, 2), "float32"),
        (lambda: np.empty((2, 3), dtype="float64"), (2, 3), "float64"),
        (lambda: np.arange(3), (3,), "float32"),
        (lambda: np.arange(1, 7, 2, dtype="int64"), (3,), "int64"),
        (lambda: np.array([1, 2]), (2,), "float32"),
        (lambda: np.array([True]), (1,), "bool"),
        (lambda: np.array(onp.ones(2, dtype="int64")), (2,), "int64"),
        (lambda: np.array(onp.float64(1)), (), "float64"),
        (lambda: np.array([onp.int32(1)]), (1,), "float32"),
        (lambda: np.array([[np.array(1.0), np.array(2.0)]]), (1, 2), "float32"),
        (lambda: np.array(np.ones(2, dtype="int8")), (2,), "int8"),
        (lambda: np.ones_like(np.zeros((2,), dtype="int32")), (2,), "int32"),
        (lambda: np.empty_like(np.zeros((2,), dtype="int32"), dtype="float64"), (2,), "float64"),
        (lambda: np.array([]), (0,), "float32"),
    ],
)
def test_made_arrays_have_these_shapes_and_dtypes(made, shape, dtype):
    array = made()
    assert type(array) is np.ndarray
    assert array.shape == shape and onp.dtype(array.dtype).name == dtype


def test_values_that_are_no_numbers_are_refused():
    with pytest.raises(TypeError, match=r"np\.array: expected numbers"):
        np.array(["a"])
    with pytest.raises(TypeError, match=r"np\.array: expected numbers"):
        np.array([[1, 2], [3]])


KEYS = [
    0, -1, slice(1, None), (1, 2), (0, slice(None, None, 2)), Ellipsis, None, (Ellipsis, 1), (slice(None), None, 0),
    [0, 1], ([0, 1], [2, 0]), slice(2, 0, -1), (slice(0, 0),),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading_follows_numpy(key):
    values = onp.arange(12, dtype="float32").reshape(3, 4)
    array = np.array(values)
    assert type(array[key]) is np.ndarray
    onp.testing.assert_array_equal(array[key].asnumpy(), values[key])
    array.attach_grad()
    with mx.autograd.record():
        (array[key] * 2).sum().backward()
    expected = onp.zeros_like(values)
    onp.add.at(expected, key, 2)
    onp.testing.assert_array_equal(array.grad.asnumpy(), expected)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_writing_follows_numpy(key):
    values = onp.arange(12, dtype="float32").reshape(3, 4)
    array = np.array(values)
    array[key] = 7
    values[key] = 7
    onp.testing.assert_array_equal(array.asnumpy(), values)
    array[key] = np.array(values[key] * 2)
    values[key] = values[key] * 2
    onp.testing.assert_array_equal(array.asnumpy(), values)


def test_masks_read_and_write():
    array = np.arange(6).reshape(2, 3)
    assert array[array > 2].tolist() == [3.0, 4.0, 5.0]
    array[array > 2] = 0
    assert array.tolist() == [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]


def test_one_element_is_a_scalar_array():
    array = np.array([1.5, 2.5])
    element = array[1]
    assert element.shape == () and float(element) == 2.5 and f"{element:.1f}" == "2.5" and element.item() == 2.5
    assert [float(x) for x in array] == [1.5, 2.5]
    with pytest.raises(TypeError, match="only integer scalar arrays"):
        [10, 20][array[0]]
    assert [10, 20][np.array(1, dtype="int32")] == 20


def test_truth_of_many_elements_is_an_error():
    assert np.array([1.0]) and not np.array(0.0)
    with pytest.raises(ValueError, match=r"a.any\(\) or a.all\(\)"):
        bool(np.ones(2))


@pytest.mark.parametrize(
    "array, text",
    [
        (lambda: np.array([1, 2.5]), "array([1. , 2.5])"),
        (lambda: np.array([1, 2], dtype="int32"), "array([1, 2], dtype=int32)"),
        (lambda: np.array([1.0], dtype="float64"), "array([1.], dtype=float64)"),
        (lambda: np.array(3), "array(3.)"),
        (lambda: np.zeros((2, 0)), "array([], shape=(2, 0))"),
    ],
)
def test_arrays_print_like_numpys(array, text):
    assert repr(array()) == text


def test_arrays_pickle_and_copy():
    array = np.array([[1, 2], [3, 4]], dtype="int32")
    for other in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array), array.copy()):
        assert type(other) is np.ndarray and other is not array
        assert other.tolist() == array.tolist() and other.dtype == array.dtype
    assert pickle.loads(pickle.dumps(np.add)) is np.add and pickle.loads(pickle.dumps(np.exp)) is np.exp


def test_the_two_classes_share_memory_and_do_not_mix():
    classic = mx.nd.array([1, 2])
    array = classic.as_np_ndarray()
    assert type(array) is np.ndarray and type(array.as_nd_ndarray()) is mx.nd.NDArray
    assert isinstance(array, mx.nd.NDArray) and array.as_np_ndarray() is array
    array[0] = 5
    assert classic.asnumpy().tolist() == [5.0, 2.0]
    for mixed in (
        lambda: array + classic,
        lambda: classic * array,
        lambda: np.add(array, classic),
        lambda: np.concatenate([array, classic]),
        lambda: mx.nd.dot(classic, array),
    ):
        with pytest.raises(TypeError, match=r"as_np_ndarray\(\) or as_nd_ndarray\(\)"):
            mixed()


def test_functions_take_numpy_arrays_lists_and_numbers():
    array = np.array([1.0, 2.0])
    assert np.add(onp.array([1.0, 1.0], dtype="float32"), array).tolist() == [2.0, 3.0]
    assert np.add([1, 1], array).tolist() == [2.0, 3.0]
    assert np.exp(0.0) == 1.0 and not isinstance(np.exp(0.0), np.ndarray)
    assert np.maximum(2, 3) == 3
    assert (onp.array([1.0, 1.0]) + array).dtype == onp.float64
    assert type(onp.float32(2) * array) is np.ndarray
    assert type(np.sqrt(onp.ones(2))) is np.ndarray
    with pytest.raises(TypeError, match=r"expected arrays of mx\.np"):
        np.add("a", array)
    with pytest.raises(mx.errors.UnsupportedError, match="where"):
        np.add(array, array, where=array > 1)
    assert np.add(array, array, where=True).tolist() == [2.0, 4.0]


def test_results_are_written_into_out():
    x, out = np.array([1.0, 4.0]), np.zeros(2)
    assert np.sqrt(x, out=out) is out and out.tolist() == [1.0, 2.0]
    assert np.add(x, 1, out=out) is out and out.tolist() == [2.0, 5.0]
    total = np.zeros(())
    assert np.sum(x, out=total) is total and float(total) == 5.0
    with pytest.raises(mx.errors.ShapeError, match="out"):
        np.add(x, x, out=np.zeros(3))


def test_views_share_memory_and_copies_do_not():
    array = np.arange(6)
    array.reshape(2, 3)[1] = 0
    assert array.tolist() == [0.0, 1.0, 2.0, 0.0, 0.0, 0.0]
    fresh = np.reshape(array, (2, 3))
    fresh[0] = 9
    assert array.tolist() == [0.0, 1.0, 2.0, 0.0, 0.0, 0.0]
    flat = array.flatten()
    flat[0] = 9
    same = array.astype("float32", copy=False)
    assert same is array and float(array[0]) == 0.0


def test_gradients_are_arrays_of_mx_np():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = (x**3).sum()
    y.backward()
    assert type(x.grad) is np.ndarray and x.grad.tolist() == [3.0, 12.0]
    with mx.autograd.record():
        y = (x**3).sum()
        (first,) = mx.autograd.grad(y, [x], create_graph=True)
        assert type(first) is np.ndarray
        first.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_errors_name_the_operator_and_the_argument():
    with pytest.raises(mx.errors.ShapeError, match=r"(?s)_npi_add|broadcast_add.*rhs"):
        np.ones((2, 3)) + np.ones((2,))
    with pytest.raises(mx.errors.ShapeError, match="newshape"):
        np.ones((2, 3)).reshape(4, 2)
    with pytest.raises(mx.errors.ParamError, match="axis"):
        np.sum(np.ones((2, 3)), axis=2)
    with pytest.raises(mx.errors.ShapeError, match="initial"):
        np.max(np.zeros((0,)))
