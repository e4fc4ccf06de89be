"""Defines nd.save and nd.load: arrays in MXNet's .params files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._lazy_names import names_from
from .._public_names import dir_of
from ..errors import FileError
from ..errors import TypeError as HybridNetTypeError
from ._foreign_files import FOREIGN_ENDINGS, is_foreign, read_foreign, write_foreign
from ._other_files import file_name, folder_error, no_array_file
from .ndarray import NDArray

__all__ = ["load", "load_frombuffer", "save"]


def load(fname: str | os.PathLike[str]) -> Any:
    """Returns the arrays of a file written by :func:`save` or by MXNet 1.x: a dict if they have names, else a list.

    Also reads NumPy's .npz and .npy and safetensors; the content decides, not the file name. Raises FileError if the
    file cannot be read, FormatError with the position if it is broken.
    """
    return _load(file_name(fname, "load"), False)


def load_mapped(fname: str | os.PathLike[str]) -> list[NDArray] | dict[str, NDArray]:
    """Same as load(), but maps large arrays from the file, which must not change in place while they are in use.

    The system reads a mapped array on first use and shares it with other processes that map the file, until it is
    written: writes do not reach the file. HYBRIDNET_MAP_PARAMS=0 reads the whole file at once.
    """
    return _load(file_name(fname, "load"), True)


def _load(path: str, mapped: bool) -> list[NDArray] | dict[str, NDArray]:
    foreign = _foreign_content(path)
    return _collected(_core.load(path, mapped)) if foreign is None else read_foreign(foreign, path)


def _foreign_content(path: str) -> bytes | None:
    """The content of a file in a foreign format; None for MXNet's format and for a file that cannot be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(16)
            if error := no_array_file(path, start):
                raise error
            return start + file.read() if is_foreign(start) else None
    except IsADirectoryError:
        raise folder_error(path) from None
    except FileError:
        raise
    except OSError:
        return None


def load_frombuffer(buf: bytes) -> Any:
    """Returns the arrays of a file's content."""
    if not isinstance(buf, (bytes, bytearray, memoryview)):
        raise HybridNetTypeError("load_frombuffer", expected="bytes", given=type(buf).__name__)
    foreign = read_foreign(buf, "buffer") if is_foreign(bytes(buf[:16])) else None
    return _collected(_core.load_from_buffer(bytes(buf), "buffer")) if foreign is None else foreign


def _collected(loaded: tuple[bool, list[str], list[Any]]) -> list[NDArray] | dict[str, NDArray]:
    named, names, arrays = loaded
    return dict(zip(names, arrays, strict=True)) if named else arrays


def save(fname: str | os.PathLike[str], data: NDArray | Sequence[NDArray] | dict[str, NDArray]) -> None:
    """Writes one array, a list of arrays or a dict from name to array. MXNet 1.x reads the file.

    The extension .npy, .npz or .safetensors selects that format. An existing file is replaced completely or, if the
    program is stopped, not at all. Raises TypeError for other data, ValueError for data that the format cannot hold,
    FileError if the file cannot be written.
    """
    arrays, names = _split(data)
    if (path := file_name(fname, "save")).endswith(FOREIGN_ENDINGS):
        write_foreign(path, arrays, names)
        return
    _core.save(path, arrays, names, _core.is_np_shape())


def _split(data: Any) -> tuple[list[NDArray], list[str]]:
    names: list[str]
    arrays: list[Any]
    if isinstance(data, _core.NDArrayBase):
        names, arrays = [], [data]
    elif isinstance(data, dict):
        names, arrays = list(data.keys()), list(data.values())
        if not all(isinstance(name, str) for name in names):
            raise HybridNetTypeError("save: expected names that are str")
    elif isinstance(data, (list, tuple)):
        names, arrays = [], list(data)
    else:
        raise HybridNetTypeError("save", expected="an NDArray, a list or a dict of NDArrays", given=type(data).__name__)
    for array in arrays:
        if not isinstance(array, _core.NDArrayBase):
            raise HybridNetTypeError("save", expected="NDArrays", given=type(array).__name__)
    return arrays, names


# MXNet also has these functions in this file.
__getattr__, __dir__ = names_from(
    __name__,
    {
        "_creation": "array empty zeros",
    },
)
__dir__ = dir_of(__name__, __dir__)
