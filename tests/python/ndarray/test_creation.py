"""Creation of arrays, conversions, contexts, pickles."""

from __future__ import annotations

import copy
import gc
import pickle
import struct
import weakref

import hybridnet as mx
import ml_dtypes
import numpy as np
import pytest

DTYPES = ["float16", "bfloat16", "float32", "float64", "bool", "int8", "uint8", "int32", "int64"]


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3), (2, 3, 4)], ids=repr)
def test_values_come_back(dtype, shape, rng):
    values = (rng.normal(size=shape) * 3).astype(numpy_dtype(dtype))
    x = mx.nd.array(values, dtype=dtype)
    assert x.shape == shape
    assert x.dtype == numpy_dtype(dtype)
    assert x.size == values.size
    assert x.ndim == len(shape)
    np.testing.assert_array_equal(x.asnumpy().astype("float64"), values.astype("float64"))
    assert x.asnumpy().dtype == numpy_dtype(dtype)


@pytest.mark.parametrize("source", [[1, 2], np.arange(2), np.ones(2), [1.5], 3, range(3)], ids=repr)
def test_float32_is_the_default(source):
    assert mx.nd.array(source).dtype == np.float32


def test_an_array_keeps_its_dtype_and_is_copied():
    x = mx.nd.ones((2,), dtype="int32")
    y = mx.nd.array(x)
    y[:] = 5
    assert y.dtype == np.int32
    np.testing.assert_array_equal(x.asnumpy(), [1, 1])


@pytest.mark.parametrize(
    "source", [["a"], [[1], [2, 3]], object(), None, {"a": 1}], ids=["str", "ragged", "object", "None", "dict"]
)
def test_objects_that_are_not_arrays_are_refused(source):
    with pytest.raises(TypeError, match="array"):
        mx.nd.array(source)


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_ones_full_empty(dtype):
    for made, value in (
        (mx.nd.zeros((2, 3), dtype=dtype), 0),
        (mx.nd.ones((2, 3), dtype=dtype), 1),
        (mx.nd.full((2, 3), 1, dtype=dtype), 1),
    ):
        assert made.dtype == numpy_dtype(dtype)
        np.testing.assert_array_equal(made.asnumpy().astype(float), np.full((2, 3), float(value)))
    assert mx.nd.empty((2, 3), dtype=dtype).shape == (2, 3)
    assert mx.nd.zeros(4).shape == (4,)


def test_arange_linspace_eye():
    np.testing.assert_array_equal(mx.nd.arange(5).asnumpy(), np.arange(5.0))
    np.testing.assert_array_equal(mx.nd.arange(2, 8, 2, dtype="int32").asnumpy(), [2, 4, 6])
    np.testing.assert_array_equal(mx.nd.arange(0, 2, repeat=2).asnumpy(), [0, 0, 1, 1])
    np.testing.assert_allclose(mx.nd.linspace(0, 1, 5).asnumpy(), np.linspace(0, 1, 5))
    np.testing.assert_array_equal(mx.nd.eye(3, 4, 1).asnumpy(), np.eye(3, 4, 1))


def test_concatenate_moveaxis_split(rng):
    a = rng.normal(size=(2, 3, 4)).astype("float32")
    x = mx.nd.array(a)
    np.testing.assert_array_equal(mx.nd.concatenate([x, x], axis=1).asnumpy(), np.concatenate([a, a], 1))
    assert mx.nd.concatenate([x], always_copy=False) is x
    np.testing.assert_array_equal(mx.nd.moveaxis(x, 0, 2).asnumpy(), np.moveaxis(a, 0, 2))
    np.testing.assert_array_equal(mx.nd.moveaxis(x, [0, 1], [-1, -2]).asnumpy(), np.moveaxis(a, [0, 1], [-1, -2]))
    with pytest.raises(ValueError, match="moveaxis"):
        mx.nd.moveaxis(x, 3, 0)
    parts = mx.nd.split_v2(x, (1, 3), axis=2)
    assert [part.shape for part in parts] == [(2, 3, 1), (2, 3, 2), (2, 3, 1)]
    assert [part.shape for part in x.split_v2(2, axis=2)] == [(2, 3, 2), (2, 3, 2)]


def test_copies_and_moves():
    x = mx.nd.array([[1.0, 2.0]])
    for made in (x.copy(), copy.copy(x), copy.deepcopy(x), x.copyto(mx.cpu()), pickle.loads(pickle.dumps(x))):
        made[:] = 9
        np.testing.assert_array_equal(x.asnumpy(), [[1, 2]])
    target = mx.nd.zeros((1, 2), dtype="int64")
    assert x.copyto(target) is target
    np.testing.assert_array_equal(target.asnumpy(), [[1, 2]])
    assert x.as_in_context(mx.cpu(0)) is x
    assert x.as_in_ctx(mx.cpu(0)) is x
    with pytest.raises(TypeError, match="copyto"):
        x.copyto("cpu")
    with pytest.raises(mx.errors.ShapeError):
        x.copyto(mx.nd.zeros((3, 2)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_astype(dtype):
    x = mx.nd.array([0.0, 1.0, 2.5])
    np.testing.assert_array_equal(
        x.astype(dtype).asnumpy().astype(float), np.array([0, 1, 2.5]).astype(numpy_dtype(dtype)).astype(float)
    )
    assert x.astype("float32", copy=False) is x
    assert x.astype(np.float32) is not x


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickling_keeps_dtype_and_shape(dtype):
    x = mx.nd.ones((2, 0, 1), dtype=dtype)
    y = pickle.loads(pickle.dumps(x))
    assert (y.shape, y.dtype) == (x.shape, x.dtype)


def test_numbers_from_arrays():
    x = mx.nd.array([2.5])
    assert x.asscalar() == np.float32(2.5)
    assert isinstance(x.asscalar(), np.float32)
    assert (float(x), int(x), bool(x), x.item()) == (2.5, 2, True, 2.5)
    assert [10, 20, 30][mx.nd.array([1], dtype="int32")] == 20
    with pytest.raises(TypeError):
        [10, 20][x]
    assert f"{x:.2f}" == "2.50"
    with pytest.raises(ValueError, match="asscalar"):
        mx.nd.ones((2,)).asscalar()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(mx.nd.ones((2,)))
    assert not mx.nd.zeros((0,))


def test_how_arrays_look():
    assert repr(mx.nd.array([[1, 2, 3], [4, 5, 6]])) == "\n[[1. 2. 3.]\n [4. 5. 6.]]\n<NDArray 2x3 @cpu(0)>"
    assert "cpu(0)" in str(mx.nd.ones((1,)))


@pytest.mark.parametrize(
    ("shape", "codes", "reverse", "expected"),
    [
        ((2, 3, 4), (4, 0, 2), False, (4, 3, 2)),
        ((2, 3, 4), (6, 1, -1), False, (6, 1, 4)),
        ((2, 3, 4), (2, -2), False, (2, 3, 4)),
        ((2, 3, 4), (-3, 4), False, (6, 4)),
        ((2, 3, 4), (-4, 1, 2, -2), False, (1, 2, 3, 4)),
        ((2, 3, 4), (2, -4, -1, 3, -2), False, (2, 1, 3, 4)),
        ((10, 5, 4), (-1, 0), False, (40, 5)),
        ((10, 5, 4), (-1, 0), True, (50, 4)),
    ],
)
def test_reshape_codes(shape, codes, reverse, expected):
    x = mx.nd.arange(np.prod(shape)).reshape(shape)
    y = x.reshape(codes, reverse=reverse)
    assert y.shape == expected
    assert x.reshape(shape=codes, reverse=reverse).shape == expected
    assert mx.nd.reshape(x, shape=codes, reverse=reverse).shape == expected
    y[:] = -1
    assert (x.asnumpy() == -1).all()


def test_reshape_errors():
    x = mx.nd.ones((2, 3))
    with pytest.raises(ValueError, match=r"reshape|Reshape"):
        x.reshape((4, 2))
    with pytest.raises(TypeError, match="reshape"):
        x.reshape()
    with pytest.raises(TypeError, match="size"):
        x.reshape((2, 3), size=3)
    assert x.reshape(3, 2).shape == (3, 2)
    assert x.reshape(-1).shape == (6,)


def test_fluent_methods_are_the_operators(rng):
    a = rng.uniform(0.1, 0.9, (2, 3)).astype("float32")
    x = mx.nd.array(a)
    np.testing.assert_allclose(x.sum(axis=1).asnumpy(), a.sum(1), rtol=1e-6)
    np.testing.assert_allclose(x.exp().asnumpy(), np.exp(a), rtol=1e-6)
    np.testing.assert_allclose(x.clip(0.2, 0.5).asnumpy(), a.clip(0.2, 0.5))
    np.testing.assert_array_equal(x.T.asnumpy(), a.T)
    np.testing.assert_array_equal(x.transpose((1, 0)).asnumpy(), a.T)
    assert x.expand_dims(0).shape == (1, 2, 3)
    assert x.flatten().shape == (2, 3)
    assert x.broadcast_to((4, 2, 3)).shape == (4, 2, 3)
    assert mx.nd.NDArray.exp is mx.nd.NDArray.exp


def test_broadcast_like_adds_leading_axes(rng):
    a = rng.normal(size=(3,)).astype("float32")
    x = mx.nd.array(a)
    x.attach_grad()
    with mx.autograd.record():
        y = x.broadcast_like(mx.nd.zeros((4, 2, 3)))
    y.backward()
    np.testing.assert_array_equal(y.asnumpy(), np.broadcast_to(a, (4, 2, 3)))
    np.testing.assert_array_equal(x.grad.asnumpy(), [8, 8, 8])
    column = mx.nd.array(a.reshape(3, 1)).broadcast_like(mx.nd.zeros((5, 2)), lhs_axes=(1,), rhs_axes=(0,))
    np.testing.assert_array_equal(column.asnumpy(), np.broadcast_to(a.reshape(3, 1), (3, 5)))


def test_dlpack_shares_memory_both_ways():
    x = mx.nd.array([1.0, 2.0])
    view = np.from_dlpack(x)
    np.testing.assert_array_equal(view, [1, 2])
    y = mx.nd.from_dlpack(x.to_dlpack_for_write())
    y[:] = 5
    np.testing.assert_array_equal(view, [5, 5])
    z = mx.nd.from_dlpack(np.arange(6, dtype="int64").reshape(2, 3))
    assert z.shape == (2, 3) and z.dtype == np.int64
    capsule = x.to_dlpack_for_read()
    mx.nd.from_dlpack(capsule)
    with pytest.raises(ValueError, match="not used before"):
        mx.nd.from_dlpack(capsule)
    with pytest.raises(ValueError, match="contiguous"):
        mx.nd.from_dlpack(np.zeros((3, 2), dtype="float32").T)


def test_from_numpy_shares_memory_and_keeps_it_alive():
    values = np.arange(4, dtype="float32")
    x = mx.nd.from_numpy(values)
    assert not values.flags.writeable
    alive = weakref.ref(values)
    del values
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(x.asnumpy(), [0, 1, 2, 3])
    del x
    mx.nd.waitall()
    gc.collect()
    assert alive() is None


def test_saving_and_loading(tmp_path):
    path = str(tmp_path / "arrays.params")
    x, y = mx.nd.array([[1.0, 2.0]]), mx.nd.array([3], dtype="int64")
    mx.nd.save(path, {"x": x, "y": y})
    loaded = mx.nd.load(path)
    assert set(loaded) == {"x", "y"}
    np.testing.assert_array_equal(loaded["y"].asnumpy(), [3])
    mx.nd.save(path, [x, y])
    assert [a.shape for a in mx.nd.load(path)] == [(1, 2), (1,)]
    mx.nd.save(path, x)
    with open(path, "rb") as file:
        assert mx.nd.load_frombuffer(file.read())[0].shape == (1, 2)
    with pytest.raises(TypeError, match="save"):
        mx.nd.save(path, "text")
    with pytest.raises(mx.errors.FileError):
        mx.nd.load(str(tmp_path / "missing.params"))
    with open(path, "r+b") as file:
        file.truncate(30)
    with pytest.raises(mx.errors.FormatError, match=r"arrays\.params"):
        mx.nd.load(path)


def test_arrays_cannot_be_made_by_calling_the_class():
    with pytest.raises(TypeError, match=r"nd\.array"):
        mx.nd.NDArray()


def test_weak_references_and_subclasses():
    x = mx.nd.ones((2,))
    alive = weakref.ref(x)
    del x
    assert alive() is None

    class Mine(mx.nd.NDArray):
        pass

    made = mx._core.retyped(mx.nd.ones((2,)), Mine)
    made.note = "mine"
    assert made.note == "mine"
    assert type(made + 1) is mx.nd.NDArray
    del made
    gc.collect()


def test_objects_do_not_leak():
    x = mx.nd.ones((4, 4))
    for _ in range(1000):
        x = x + 1 - 1
    mx.nd.waitall()
    before = mx._core.memory_statistics(1, 0)["in_use"]
    for _ in range(2000):
        y = (x * 2)[1]
        del y
    mx.nd.waitall()
    assert mx._core.memory_statistics(1, 0)["in_use"] == before


def test_gpu_is_an_unsupported_error():
    with pytest.raises(mx.errors.UnsupportedError, match="gpu"):
        mx.nd.ones((2,), ctx=mx.gpu(0))
    with pytest.raises(mx.errors.UnsupportedError):
        mx.nd.ones((2,)).as_in_context(mx.gpu(0))


def test_contexts():
    assert mx.cpu() == mx.cpu(0)
    assert mx.cpu() != mx.gpu()
    assert str(mx.gpu(1)) == "gpu(1)"
    assert mx.Context("gpu", 2).device_type == "gpu"
    assert mx.num_gpus() == 0
    with mx.Context("cpu", 3):
        assert mx.current_context() == mx.cpu(3)
    assert mx.current_context() == mx.cpu(0)
    assert mx.nd.ones((1,)).context == mx.cpu()
    with pytest.raises(ValueError, match="device type"):
        mx.Context("tpu")


def mxnet_record(values, device_type=1):
    """Returns the bytes of a float32 vector in MXNet's pickles: one record of a .params file."""
    return struct.pack("<IiIqiii", 0xF993FAC9, 0, 1, len(values), device_type, 0, 0) + np.array(values, "f").tobytes()


@pytest.mark.parametrize("device_type", [1, 2], ids=["cpu", "gpu"])
def test_states_of_arrays_that_mxnet_pickled_load(device_type):
    array = mx.nd.NDArray(None)
    array.__setstate__({"handle": bytearray(mxnet_record([3, 1, 4], device_type))})
    np.testing.assert_array_equal(array.asnumpy(), [3, 1, 4])


def test_broken_states_raise_and_leave_the_array_alone():
    array = mx.nd.array([5, 6])
    for broken in (mxnet_record([1, 2])[:-3], b"", None):
        with pytest.raises(mx.MXNetError, match="pickled NDArray"):
            array.__setstate__({"handle": broken})
    np.testing.assert_array_equal(array.asnumpy(), [5, 6])


def test_the_class_makes_arrays_of_handles_only():
    array = mx.nd.array([5, 6])
    same = mx.nd.NDArray(array.handle)
    same[0] = 9
    np.testing.assert_array_equal(array.asnumpy(), [9, 6])
    for wrong in ([1, 2], 3):
        with pytest.raises(TypeError, match=r"nd\.array"):
            mx.nd.NDArray(wrong)


def test_ranges_of_integers_step_by_integers():
    np.testing.assert_array_equal(mx.nd.arange(1.5, 9, 1.5, dtype="int32").asnumpy(), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(mx.nd.arange(2.9, 7, 2.2, repeat=2, dtype="int64").asnumpy(), [2, 2, 4, 4])


@pytest.mark.parametrize("stype", ["default", "csr", "row_sparse"])
def test_other_storage_is_a_new_array(stype):
    array = mx.nd.array([[1, 0], [0, 2]])
    other = array.tostype(stype)
    assert other.stype == stype
    other.tostype("default")[:] = 7
    array[:] = 5
    np.testing.assert_array_equal(other.asnumpy(), [[1, 0], [0, 2]])


def test_gradients_pass_through_a_change_of_storage():
    x = mx.nd.array([[1, 0], [0, 2]])
    x.attach_grad()
    with mx.autograd.record():
        y = (x.tostype("csr").tostype("default") * 3).sum()
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), np.full((2, 2), 3))


@pytest.mark.parametrize("shape", [(), (3,), (0, 2)])
def test_full_holds_integers_exactly(shape):
    with mx.util.np_shape(True):
        made = mx.nd.full(shape, 2**60 + 1, dtype="int64")
        assert made.shape == shape
        np.testing.assert_array_equal(made.asnumpy(), np.full(shape, 2**60 + 1))
        kept = mx.nd.zeros(shape, dtype="int64")
        assert mx.nd.full(shape, 2**61 + 1, out=kept) is kept
        np.testing.assert_array_equal(kept.asnumpy(), np.full(shape, 2**61 + 1))


@pytest.mark.parametrize("axis", [3, -4])
def test_expand_dims_in_place_checks_its_axis(axis):
    with pytest.raises(ValueError, match=rf"expected an axis in \[-3, 3\), got {axis}"):
        mx.nd.zeros((2, 3)).expand_dims(axis, inplace=True)


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2])
def test_expand_dims_in_place_is_a_view(axis):
    array = mx.nd.zeros((2, 3))
    wider = array.expand_dims(axis, inplace=True)
    assert wider.shape == np.expand_dims(np.zeros((2, 3)), axis).shape
    wider[:] = 1
    assert (array.asnumpy() == 1).all()


def test_axes_and_sections_may_be_numpy_integers():
    array = mx.nd.arange(6).reshape((2, 3))
    assert mx.nd.moveaxis(array, np.int64(0), np.int64(1)).shape == (3, 2)
    assert [part.shape for part in mx.nd.split_v2(array, np.int64(3), axis=1)] == [(2, 1)] * 3
