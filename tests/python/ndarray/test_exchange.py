"""Arrays exchanged with other libraries: NumPy's protocols, DLPack, PyTorch."""

from __future__ import annotations

import gc

import hybridnet as mx
import numpy as np
import pytest

DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_reads_without_being_asked(dtype):
    x = mx.nd.array([[1, 2], [3, 4]], dtype=dtype)
    a = np.asarray(x)
    assert a.dtype == dtype
    np.testing.assert_array_equal(a, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(np.asarray(x, dtype="float64"), a)
    assert isinstance(np.from_dlpack(x), np.ndarray)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_from_numpy(dtype):
    a = np.arange(6).astype(dtype).reshape(2, 3)
    x = mx.nd.from_dlpack(a)
    assert np.dtype(x.dtype) == dtype
    np.testing.assert_array_equal(x.asnumpy(), a)
    a[0, 0] = 7
    assert x[0, 0].asscalar() == 7  # shares the memory
    del a
    gc.collect()
    assert x[0, 0].asscalar() == 7


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16", "bool"])
def test_torch_both_ways(dtype):
    torch = pytest.importorskip("torch")
    t = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    x = mx.nd.from_dlpack(t)
    assert x.shape == (2, 3)
    assert str(np.dtype(x.dtype)) == dtype
    back = torch.from_dlpack(x)
    assert back.dtype == t.dtype
    assert torch.equal(back, t)
    if dtype == "float32":
        t[0, 0] = 5
        assert x[0, 0].asscalar() == 5
        back[0, 1] = 9
        assert t[0, 1] == 9


def test_torch_waits_for_pending_values():
    torch = pytest.importorskip("torch")
    x = mx.nd.ones((500, 500))
    for _ in range(20):
        x = mx.nd.dot(x, x) * 0 + 1
    assert torch.equal(torch.from_dlpack(x), torch.ones(500, 500))


def test_memory_that_is_not_contiguous_is_copied_or_refused():
    torch = pytest.importorskip("torch")
    t = torch.arange(6.0).reshape(2, 3).T
    try:
        x = mx.nd.from_dlpack(t)
    except mx.MXNetError as problem:
        assert "contiguous" in str(problem)
    else:
        np.testing.assert_array_equal(x.asnumpy(), t.numpy())


def test_a_capsule_is_taken_once():
    capsule = mx.nd.ones((2,)).to_dlpack_for_read()
    mx.nd.from_dlpack(capsule)
    with pytest.raises(mx.MXNetError, match=r"(?i)capsule"):
        mx.nd.from_dlpack(capsule)
    with pytest.raises(TypeError):
        mx.nd.from_dlpack(object())


@pytest.mark.parametrize("function", [np.sin, np.exp, np.sqrt, np.add.reduce, np.mean, np.max, np.sum])
def test_numpy_functions(function):
    x = mx.nd.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(function(x), function(x.asnumpy()), rtol=1e-6)


@pytest.mark.parametrize(
    "function", [np.add, np.subtract, np.multiply, np.divide, np.power, np.floor_divide, np.less, np.equal]
)
def test_ufuncs_of_both_kinds_give_our_arrays(function):
    a, b = np.array([[5.0, 2.0], [3.0, 4.0]], "float32"), np.array([2.0, 3.0], "float32")
    for result in (function(a, mx.nd.array(b)), function(mx.nd.array(a), b), function(mx.nd.array(a), mx.nd.array(b))):
        assert isinstance(result, mx.nd.NDArray)
        np.testing.assert_allclose(result.asnumpy(), function(a, b))


# ------------------------------------------------------------------------------------------ conversions between dtypes
@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_one_dtype_for_both_sides(left, right):
    x, y = mx.nd.ones((2,), dtype=left), mx.nd.ones((2,), dtype=right)
    if left != right:
        with pytest.raises(mx.errors.DTypeError, match="astype"):
            x + y
        y = y.astype(left)
    assert np.dtype((x + y).dtype) == left


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_numbers_take_the_dtype_of_the_array(dtype):
    x = mx.nd.array([2, 4, 6], dtype=dtype)
    for result, expected in ((x + 1, [3, 5, 7]), (x * 2, [4, 8, 12]), (8 - x, [6, 4, 2]), (x / 2, [1, 2, 3])):
        assert str(np.dtype(result.dtype)) == dtype
        np.testing.assert_array_equal(result.asnumpy().astype("float64"), expected)


@pytest.mark.parametrize("source", [*DTYPES, "bfloat16", "bool"])
@pytest.mark.parametrize("target", [*DTYPES, "bfloat16", "bool"])
def test_every_dtype_becomes_every_other(source, target):
    x = mx.nd.array([0, 1, 3], dtype="float32").astype(source)
    y = x.astype(target)
    assert str(np.dtype(y.dtype)) == target
    expected = [0, 1, 1] if "bool" in (source, target) else [0, 1, 3]
    np.testing.assert_array_equal(y.asnumpy().astype("float64"), expected)
