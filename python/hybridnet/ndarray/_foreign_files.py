"""Array files in foreign formats: NumPy's .npy and .npz, and safetensors."""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from typing import IO, Any

import ml_dtypes
import numpy as np

from .._files import replacing
from ..errors import FormatError
from ..errors import ValueError as HybridNetValueError
from .ndarray import NDArray

__all__ = ["FOREIGN_ENDINGS", "is_foreign", "numpy_arrays", "read_foreign", "write_foreign", "write_numpy"]

FOREIGN_ENDINGS = (".npy", ".npz", ".safetensors")

_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
# Names of the element types in safetensors; NumPy's formats use the dtypes of the arrays.
_SAFETENSORS = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I64": np.int64,
    "I32": np.int32, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
_NAMES = {np.dtype(dtype): name for name, dtype in _SAFETENSORS.items()}
_TYPES = {np.dtype(dtype) for dtype in _SAFETENSORS.values()}
_MAX_HEADER = 100_000_000  # the format's own limit


def is_foreign(start: bytes) -> bool:
    """Whether a file with these first 16 bytes is in such a format. No file of MXNet starts with any of them."""
    return start.startswith((_NPY, _ZIP, _EMPTY_ZIP)) or start[8:9] == b"{"


def read_foreign(content: bytes | memoryview, name: str) -> list[NDArray] | dict[str, NDArray]:
    """Returns the arrays in the content of a file for which is_foreign is true: a list of one for .npy, else a dict.

    Executes nothing from the file: pickled objects are refused. Raises FormatError for damaged files and for
    unsupported element types.
    """
    start = bytes(content[:8])
    if start.startswith(_NPY):
        return [_array(numpy_arrays(content, name), name, "the array")]
    if start.startswith((_ZIP, _EMPTY_ZIP)):
        return {key: _array(value, name, repr(key)) for key, value in numpy_arrays(content, name).items()}
    return _safetensors(content, name)


def _array(value: np.ndarray, name: str, what: str) -> NDArray:
    from ._creation import array

    dtype = value.dtype.newbyteorder("=")
    if dtype not in _TYPES:
        raise FormatError(
            f"'{name}': {what} has element type {value.dtype}",
            expected=f"one of {', '.join(sorted(str(kind) for kind in _TYPES))}",
            fix="convert the array before it is saved",
        )
    return array(value.astype(dtype, copy=False), dtype=dtype)


def numpy_arrays(content: Any, name: str) -> Any:
    """Returns the array of an .npy file's content, or the dict of an .npz file's. Raises FormatError for others."""
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else dict(loaded)
    except Exception as problem:
        raise FormatError(
            f"'{name}' is no readable file of NumPy: {problem}",
            fix="write it with numpy.save or numpy.savez, from arrays of numbers",
        ) from None


# --- safetensors ------------------------------------------------------------------------------------------------------


def _broken(name: str, reason: str) -> FormatError:
    return FormatError(f"'{name}' is no valid safetensors file", because=reason, fix="write or download it again")


def _safetensors(content: bytes | memoryview, name: str) -> dict[str, NDArray]:
    """Reads 8 bytes with the header's length, the header in JSON, then the tensors' bytes without gaps."""
    (length,) = struct.unpack_from("<Q", content)
    if length > min(_MAX_HEADER, len(content) - 8):
        raise _broken(name, f"its header has {length} bytes, the file {len(content)}")
    try:
        header = json.loads(bytes(content[8 : 8 + length]))
    except ValueError as problem:
        raise _broken(name, f"its header is no JSON: {problem}") from None
    body = memoryview(content)[8 + length :]
    header.pop("__metadata__", None)
    return {key: _tensor(body, described, name, key) for key, described in header.items()}


def _tensor(body: memoryview, described: Any, name: str, key: str) -> NDArray:
    try:
        kind, shape, (begin, end) = described["dtype"], tuple(described["shape"]), described["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
    except (KeyError, TypeError, ValueError):
        whole = False
    if not whole:
        raise _broken(name, f"tensor {key!r} is described as {described!r}")
    if kind not in _SAFETENSORS:
        raise FormatError(
            f"'{name}': tensor {key!r} has element type {kind}",
            expected=f"one of {', '.join(_SAFETENSORS)}",
            fix="convert the tensor before it is saved",
        )
    dtype = np.dtype(_SAFETENSORS[kind])
    if end > len(body) or end - begin != math.prod(shape) * dtype.itemsize:
        raise _broken(
            name, f"tensor {key!r} of shape {shape} and type {kind} has bytes {begin} to {end} of {len(body)}"
        )
    values = np.frombuffer(body[begin:end], dtype=dtype.newbyteorder("<") if dtype.kind != "V" else dtype)
    return _array(values.reshape(shape), name, f"tensor {key!r}")


# --- writing ----------------------------------------------------------------------------------------------------------


def write_foreign(path: str, arrays: list[NDArray], names: list[str]) -> None:
    """Writes arrays in the format that the extension of path names, replacing the file atomically.

    names: one for each array, or empty: then .npz uses arr_0, arr_1, .... Raises ValueError for several arrays in an
    .npy file, for safetensors without names, and for bfloat16 in NumPy's formats; FileError.
    """
    values = [np.ascontiguousarray(array.asnumpy()).reshape(array.shape) for array in arrays]
    if path.endswith(".safetensors"):
        if not names:
            raise HybridNetValueError("save: safetensors", expected="a dict of arrays, since its arrays have names")
        _write_safetensors(path, values, names)
        return
    if any(value.dtype == ml_dtypes.bfloat16 for value in values):
        raise HybridNetValueError(
            f"save: '{path}'",
            because="NumPy's files have no bfloat16",
            fix="use .safetensors, or cast to float32 first",
        )
    if path.endswith(".npy") and len(values) != 1:
        raise HybridNetValueError(f"save: '{path}' holds one array", given=str(len(values)), fix="use .npz")
    with replacing(path, "save") as file:
        write_numpy(file, values, None if path.endswith(".npy") else names or [f"arr_{i}" for i in range(len(values))])


def write_numpy(file: IO[bytes], values: list[np.ndarray], names: list[str] | None) -> None:
    """Writes an .npz file of values by name; without names an .npy file of the first value.

    numpy.savez does the same, but passes names as keywords, which excludes the name 'file'.
    """
    if names is None:
        np.save(file, values[0], allow_pickle=False)
        return
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, value in zip(names, values, strict=True):
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value, allow_pickle=False)


def _write_safetensors(path: str, values: list[np.ndarray], names: list[str]) -> None:
    header: dict[str, Any] = {}
    end = 0
    # Wide types first: all tensors are then aligned, because the header's length is a multiple of 8.
    order = sorted(range(len(values)), key=lambda i: -values[i].itemsize)
    for i in order:
        begin, end = end, end + values[i].nbytes
        header[names[i]] = {
            "dtype": _NAMES[values[i].dtype],
            "shape": list(values[i].shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with replacing(path, "save") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in order:
            file.write(values[i].tobytes())
