"""nd.load reads files of NumPy and safetensors, and refuses damaged ones."""

from __future__ import annotations

import json
import struct

import hybridnet as mx
import ml_dtypes
import numpy as np
import pytest

TYPES = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool", "bfloat16"]
NAMES = {
    "float16": "F16", "float32": "F32", "float64": "F64", "int8": "I8", "uint8": "U8", "int32": "I32", "int64": "I64",
    "bool": "BOOL", "bfloat16": "BF16",
}  # fmt: skip


def _value(dtype, shape=(2, 3)):
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    return (np.arange(np.prod(shape)).reshape(shape) % 2).astype(kind)


def _write(path, tensors, metadata=None, header=None):
    """Writes a safetensors file by the definition of the format; `header` replaces the header."""
    described, body = {}, b""
    for name, (kind, value) in tensors.items():
        described[name] = {
            "dtype": kind,
            "shape": list(value.shape),
            "data_offsets": [len(body), len(body) + value.nbytes],
        }
        body += value.tobytes()
    if metadata:
        described["__metadata__"] = metadata
    text = json.dumps(described).encode() if header is None else header
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


@pytest.mark.parametrize("dtype", [name for name in TYPES if name != "bfloat16"])
def test_npz_files_give_arrays_by_name(tmp_path, dtype):
    expected = {"a": _value(dtype), "b.c": _value(dtype, (4,)), "none": _value(dtype, (0, 2))}
    np.savez(tmp_path / "arrays.npz", **expected)
    found = mx.nd.load(str(tmp_path / "arrays.npz"))
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name].dtype == np.dtype(dtype) and found[name].shape == value.shape
        np.testing.assert_array_equal(found[name].asnumpy(), value)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_files_are_known_by_their_content(tmp_path, save):
    with open(tmp_path / "weights.params", "wb") as file:
        save(file, weight=np.ones((2, 2), "float32"))
    found = mx.nd.load(tmp_path / "weights.params")
    assert found["weight"].asnumpy().tolist() == [[1, 1], [1, 1]]
    assert mx.nd.load_frombuffer((tmp_path / "weights.params").read_bytes())["weight"].shape == (2, 2)


def test_npy_files_give_a_list_of_one(tmp_path):
    np.save(tmp_path / "array.npy", np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)))
    (found,) = mx.nd.load(str(tmp_path / "array.npy"))
    assert found.dtype == np.int32 and found.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_parameters_load_from_npz(tmp_path):
    net = mx.gluon.nn.Dense(2, in_units=3)
    np.savez(tmp_path / "dense.npz", weight=np.ones((2, 3), "float32"), bias=np.zeros(2, "float32"))
    net.load_parameters(str(tmp_path / "dense.npz"))
    assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[3, 3]]


@pytest.mark.parametrize("dtype", TYPES)
def test_safetensors_give_arrays_by_name(tmp_path, dtype):
    value = _value(dtype)
    tensors = {
        "layer.weight": (NAMES[dtype], value),
        "empty": (NAMES[dtype], value[:0]),
        "scalar": (NAMES[dtype], value[0, 1]),
    }
    found = mx.nd.load(str(_write(tmp_path / "model.safetensors", tensors, {"format": "pt"})))
    assert set(found) == set(tensors)
    np.testing.assert_array_equal(found["layer.weight"].asnumpy().astype("float64"), value.astype("float64"))
    assert found["layer.weight"].dtype == value.dtype
    assert found["empty"].shape == (0, 3) and found["scalar"].shape == () and found["scalar"].asscalar() == 1


def test_an_empty_safetensors_file_gives_no_arrays(tmp_path):
    assert mx.nd.load(str(_write(tmp_path / "none.safetensors", {}))) == {}


def _described(**parts):
    return json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **parts}}).encode()


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"{not json", "its header is no JSON"),
        (_described(shape=[3]), r"of shape \(3,\) and type F32 has bytes 0 to 8 of 8"),
        (_described(data_offsets=[0, 4096]), "bytes 0 to 4096 of 8"),
        (_described(data_offsets=[8, 0]), "bytes 8 to 0"),
        (_described(shape=[-2]), "is described as"),
        (_described(shape=[2.0]), "is described as"),
        (_described(data_offsets=[0]), "is described as"),
        (b'{"x": 3}', "is described as 3"),
        (_described(dtype="F8_E4M3"), "element type F8_E4M3"),
    ],
)
def test_damaged_safetensors_are_refused(tmp_path, header, text):
    file = _write(tmp_path / "bad.safetensors", {"x": ("F32", np.ones(2, "float32"))}, header=header)
    with pytest.raises(mx.errors.FormatError, match=text):
        mx.nd.load(str(file))


def test_a_header_longer_than_the_file_is_refused(tmp_path):
    file = tmp_path / "bad.safetensors"
    file.write_bytes(struct.pack("<Q", 1 << 40) + b"{}")
    with pytest.raises(mx.errors.FormatError, match="its header has 1099511627776 bytes, the file 10"):
        mx.nd.load(str(file))


@pytest.mark.parametrize("value", [np.ones(2, "complex64"), np.ones(2, "uint16"), np.array(["text"])])
def test_element_types_that_arrays_do_not_have_are_named(tmp_path, value):
    np.savez(tmp_path / "bad.npz", x=value)
    with pytest.raises(mx.errors.FormatError, match=r"bad.npz': 'x' has element type .*float32"):
        mx.nd.load(str(tmp_path / "bad.npz"))


def test_pickles_in_files_of_numpy_are_not_executed(tmp_path):
    np.savez(tmp_path / "bad.npz", x=np.array([object()], dtype=object))
    with pytest.raises(mx.errors.FormatError, match="no readable file of NumPy"):
        mx.nd.load(str(tmp_path / "bad.npz"))


def test_cut_off_files_of_numpy_are_refused(tmp_path):
    np.savez(tmp_path / "good.npz", x=np.ones(100))
    (tmp_path / "bad.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:200])
    with pytest.raises(mx.errors.FormatError, match="no readable file of NumPy"):
        mx.nd.load(str(tmp_path / "bad.npz"))


def test_files_of_mxnet_load_as_before(tmp_path):
    mx.nd.save(str(tmp_path / "own.npz"), {"x": mx.nd.ones((2,))})
    assert mx.nd.load(str(tmp_path / "own.npz"))["x"].asnumpy().tolist() == [1, 1]
    with pytest.raises(mx.errors.FileError):
        mx.nd.load(str(tmp_path / "absent.npz"))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ending", ["npz", "safetensors", "npy"])
def test_load_reads_every_format_that_save_chooses_by_file_ending(tmp_path, dtype, ending):
    path = str(tmp_path / f"x.{ending}")
    arrays = {
        name: mx.nd.array(np.arange(size).reshape(shape), dtype=dtype)
        for name, size, shape in [("odd", 3, (3,)), ("file", 6, (2, 3)), ("wide/é", 4, (2, 1, 2)), ("none", 0, (0, 2))]
    }
    data = arrays["file"] if ending == "npy" else arrays
    if dtype == "bfloat16" and ending != "safetensors":
        with pytest.raises(mx.errors.ValueError, match=r"no bfloat16.*\n.*safetensors"):
            mx.nd.save(path, data)
        assert not (tmp_path / f"x.{ending}").exists()
        return
    mx.nd.save(path, data)
    found = mx.nd.load(path)
    found = {"file": found[0]} if ending == "npy" else found
    assert set(found) == ({"file"} if ending == "npy" else set(arrays))
    for name, array in found.items():
        assert array.shape == arrays[name].shape
        assert array.dtype == arrays[name].dtype
        np.testing.assert_array_equal(array.asnumpy(), arrays[name].asnumpy())


def test_numpy_reads_files_of_save(tmp_path):
    x = mx.nd.array([[1, 2], [3, 4]], dtype="int32")
    mx.nd.save(str(tmp_path / "x.npz"), [x, x + 1])
    with np.load(tmp_path / "x.npz") as found:
        assert sorted(found) == ["arr_0", "arr_1"]
        np.testing.assert_array_equal(found["arr_1"], [[2, 3], [4, 5]])
    mx.nd.save(str(tmp_path / "x.npy"), x)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), [[1, 2], [3, 4]])


def test_tensors_of_a_safetensors_file_are_aligned(tmp_path):
    arrays = {"a": mx.nd.ones((3,), dtype="int8"), "b": mx.nd.ones((2,), dtype="float64")}
    mx.nd.save(str(tmp_path / "x.safetensors"), arrays)
    content = (tmp_path / "x.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert length % 8 == 0
    assert header["b"] == {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    assert header["a"]["data_offsets"] == [16, 19]


def test_save_refuses_arrays_that_a_format_cannot_hold(tmp_path):
    x = mx.nd.ones((2,))
    with pytest.raises(mx.errors.ValueError, match="names"):
        mx.nd.save(str(tmp_path / "x.safetensors"), [x])
    with pytest.raises(mx.errors.ValueError, match="holds one array"):
        mx.nd.save(str(tmp_path / "x.npy"), [x, x])
