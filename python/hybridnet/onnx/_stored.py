"""Reads the elements of tensors: checks sizes and lengths first, and keeps to the folder of the model.

Files may come from strangers. A tensor takes no more memory than the file has bytes for it, and its data come from the
file itself, or from regular files in the model's folder.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import wrong
from ._package import onnx

__all__ = ["dense_elements", "elements"]

# Sparse tensors hold few numbers for many elements: as many as this, and so many for each number.
_MOST_DENSE = 1 << 24
_MOST_PER_NUMBER = 1000
_FIXED_LENGTH = "save the model again; the file is damaged"
_BITS_OF_NARROW = {"INT4": 4, "UINT4": 4, "INT2": 2, "UINT2": 2, "FLOAT4E2M1": 4}


def elements(proto: Any, folder: str) -> np.ndarray:
    """The elements of a TensorProto as the package onnx reads them."""
    name = f"tensor '{proto.name}'"
    needed = _needed_bytes(proto, name)
    external = proto.data_location == onnx().TensorProto.EXTERNAL
    if external:
        _check_place(proto, folder, name, needed)
    elif proto.HasField("raw_data") and len(proto.raw_data) != needed:
        raise wrong(
            f"{name} of shape {tuple(proto.dims)} needs {needed} bytes, and the file has {len(proto.raw_data)}",
            fix=_FIXED_LENGTH,
        )
    try:
        return np.asarray(onnx().numpy_helper.to_array(proto, base_dir=folder))
    except Exception as error:
        raise wrong(f"{name} cannot be read", because=str(error)[:200], fix=_FIXED_LENGTH) from error


def _needed_bytes(proto: Any, name: str) -> int:
    sizes = [int(size) for size in proto.dims]
    if any(size < 0 for size in sizes) or math.prod(max(size, 1) for size in sizes) >= 2**62 or len(sizes) > 64:
        raise wrong(f"{name} has the shape {tuple(sizes)}", fix=_FIXED_LENGTH)
    kind = onnx().TensorProto.DataType.Name(proto.data_type)
    bits = _BITS_OF_NARROW.get(kind)
    if bits is None:
        bits = 8 * int(onnx().helper.tensor_dtype_to_np_dtype(proto.data_type).itemsize)
    return -(-math.prod(sizes) * bits // 8)


def _check_place(proto: Any, folder: str, name: str, needed: int) -> None:
    """Checks that external data are inside the model's folder, and inside their file."""
    given = {entry.key: entry.value for entry in proto.external_data}
    path = _path_inside(given.get("location", ""), folder, name)
    offset = _number(given.get("offset", "0"), name, "offset")
    length = _number(given["length"], name, "length") if "length" in given else None
    size = path.stat().st_size
    available = size - offset if length is None else length
    if offset + max(available, 0) > size or available != needed:
        raise wrong(
            f"{name} of shape {tuple(proto.dims)} needs {needed} bytes, and the model gives it {max(available, 0)} "
            f"from byte {offset} of '{path.name}', which has {size}",
            fix="copy the data file again together with the model",
        )


def _path_inside(location: str, folder: str, name: str) -> Path:
    if not folder:
        raise wrong(
            f"{name} is in the file '{location}' beside the model, and a model in memory has no folder",
            fix="give the path of the model's file, or load the ModelProto with its external data: onnx.load(path)",
        )
    try:
        root = Path(os.path.realpath(folder))
        path = Path(os.path.realpath(root / location))
        is_file = path.is_file()
    except ValueError:  # a zero in the name
        raise wrong(f"{name} is in a file whose name holds a zero", fix=_FIXED_LENGTH) from None
    if os.path.isabs(location) or ".." in Path(location).parts or not path.is_relative_to(root):
        raise wrong(
            f"{name} is in '{location}', outside of the model's folder",
            because="a model may read its own folder only",
            fix="copy the data file into the folder of the model, and save the model with its name",
        )
    if not is_file:
        raise wrong(f"{name} is in '{location}', which is no file", fix="copy the data file into the model's folder")
    return path


def _number(text: str, name: str, word: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise wrong(f"{name}: the {word} of its external data is '{text[:40]}', no number of bytes", fix=_FIXED_LENGTH)
    return int(text)


def dense_elements(values: np.ndarray, places: np.ndarray, dims: Sequence[int], name: str) -> np.ndarray:
    """The elements of a sparse tensor; places: positions in the flat tensor, or one row of positions per number."""
    sizes = [int(size) for size in dims]
    fits = values.ndim == 1 and places.shape in ((len(values),), (len(values), len(sizes)))
    if any(size < 0 for size in sizes) or not fits or not np.issubdtype(places.dtype, np.integer):
        raise wrong(
            f"sparse tensor '{name}' of shape {tuple(sizes)} has numbers of shape {values.shape} at places of shape "
            f"{places.shape}",
            fix=_FIXED_LENGTH,
        )
    most = _MOST_DENSE + _MOST_PER_NUMBER * len(values)
    if math.prod(max(size, 1) for size in sizes) > most:
        raise wrong(
            f"sparse tensor '{name}' of shape {tuple(sizes)} has {len(values)} numbers",
            because=f"tensors are dense here, and such a file may ask for at most {most} elements",
            fix="save the tensor as a dense one",
        )
    limits = np.array([math.prod(sizes)] if places.ndim == 1 else sizes)
    if len(values) and ((places < 0) | (places >= limits)).any():
        raise wrong(f"sparse tensor '{name}' of shape {tuple(sizes)} has places outside of it", fix=_FIXED_LENGTH)
    dense = np.zeros(sizes, dtype=values.dtype)
    if places.ndim == 1:
        dense.reshape(-1)[places] = values
    else:
        dense[tuple(places.T)] = values
    return dense
