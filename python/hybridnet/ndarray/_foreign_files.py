"""Files of arrays that other programs write: NumPy's .npy and .npz, and safetensors."""

from __future__ import annotations

import io
import json
import math
import struct
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import FormatError
from .ndarray import NDArray

__all__ = ["is_foreign", "read_foreign"]

_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
# Names of element types in safetensors; those of NumPy are arrays' own.
_SAFETENSORS = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I64": np.int64,
    "I32": np.int32, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
_TYPES = {np.dtype(dtype) for dtype in _SAFETENSORS.values()}
_MAX_HEADER = 100_000_000  # the format's own limit


def is_foreign(start: bytes) -> bool:
    """Whether a file that starts with these 16 bytes is of such a format. No file of MXNet starts like any of them."""
    return start.startswith((_NPY, _ZIP, _EMPTY_ZIP)) or start[8:9] == b"{"


def read_foreign(content: bytes | memoryview, name: str) -> list[NDArray] | dict[str, NDArray]:
    """The arrays of the content of a file for which is_foreign holds: a list of one for .npy, else a dict.

    Nothing in a file is executed: pickled objects are refused. Raises FormatError for damaged files and for element
    types that arrays do not have.
    """
    start = bytes(content[:8])
    if start.startswith(_NPY):
        return [_array(_numpy_file(content, name), name, "the array")]
    if start.startswith((_ZIP, _EMPTY_ZIP)):
        return {key: _array(value, name, repr(key)) for key, value in _numpy_file(content, name).items()}
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


def _numpy_file(content: Any, name: str) -> Any:
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
    """8 bytes with the header's length, the header in JSON, then the tensors' bytes without gaps."""
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
