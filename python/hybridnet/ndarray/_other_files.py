"""Errors for files that hold no arrays, by their first bytes: web pages, checkpoints of other libraries, folders."""

from __future__ import annotations

import os
from typing import Any

from ..errors import FileError, FormatError, HybridNetError
from ..errors import TypeError as HybridNetTypeError

__all__ = ["file_name", "folder_error", "no_array_file"]

_FROM_TORCH = (
    "in PyTorch write numpy.savez('net.npz', **{k: v.numpy() for k, v in model.state_dict().items()}), and load that"
)
# First bytes, the content, and the fix. No file of arrays that nd.load reads starts with any of them.
_KINDS = (
    ((b"<",), "a web page (HTML or XML)", "download the file itself: the address leads to a page about it"),
    ((b"version https://git",), "a pointer of Git LFS", "fetch the file itself: git lfs pull"),
    ((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle, such as PyTorch writes", _FROM_TORCH),
    ((b"\x89HDF",), "HDF5, such as Keras writes", "in Keras write numpy.savez('net.npz', *model.get_weights())"),
    ((b"\x1f\x8b", b"BZh", b"\xfd7zXZ"), "a compressed file", "unpack it first"),
    ((b"{",), "JSON", "load graphs by gluon.SymbolBlock.imports, and name the .params file here"),
)


def file_name(name: Any, function: str) -> str:
    """Returns the path as text. Raises TypeError for anything else, such as a dict of arrays."""
    try:
        return os.fspath(name)
    except TypeError:
        given = type(name).__name__
        fix = "pass a path, such as 'net.params'"
        raise HybridNetTypeError(f"{function}: a file name", expected="text", given=given, fix=fix) from None


def no_array_file(path: str, start: bytes) -> HybridNetError | None:
    """Returns the error for a file that starts with these 16 bytes; None if it may hold arrays."""
    if not start:
        return FormatError(f"'{path}' is empty", fix="write it again by save_parameters or mx.nd.save")
    if start[8:9] == b"{":  # safetensors, whose first bytes are a size
        return None
    for beginnings, content, fix in _KINDS:
        if start.startswith(beginnings):
            return FormatError(f"'{path}'", expected="arrays in a .params file", given=content, fix=fix)
    if path.endswith(".onnx"):
        return FormatError(f"'{path}'", expected="arrays", given="an ONNX file", fix="use mx.onnx.import_model")
    if start.startswith(b"PK") and _is_of_torch(path):
        return FormatError(f"'{path}'", expected="arrays in a .params file", given="a PyTorch file", fix=_FROM_TORCH)
    return None


def folder_error(path: str) -> HybridNetError:
    """Returns the error for a folder in place of a file."""
    names = sorted(name for name in os.listdir(path) if name.endswith((".params", ".npz", ".safetensors")))
    inside = f"name a file in it, such as '{os.path.join(path, names[0])}'" if names else "name a file in it"
    return FileError(f"'{path}' is a folder", fix=inside)


def _is_of_torch(path: str) -> bool:
    """Whether a zip file holds the pickle of PyTorch, or has one of its endings and is damaged."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as file:
            return any(name.endswith("data.pkl") for name in file.namelist())
    except (OSError, zipfile.BadZipFile):
        return path.endswith((".pt", ".pth", ".ckpt"))
