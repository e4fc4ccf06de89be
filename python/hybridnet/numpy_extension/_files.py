"""Array files: npx.save and npx.load use MXNet's .params format; npx.savez NumPy's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as onp

from .. import _core
from ..errors import TypeError as HybridNetTypeError
from ..ndarray import utils
from ..numpy.multiarray import ndarray

__all__ = ["load", "save", "savez"]

File = str | os.PathLike[str]


def save(file: File, arr: ndarray | Sequence[ndarray] | dict[str, ndarray]) -> None:
    """Writes one array, a list of arrays or a dict from name to array; scalars and sizes of 0 are kept.

    MXNet 1.x reads the file under its NumPy semantics. Raises TypeError for other data, FileError if the file cannot be
    written.
    """
    arrays, names = utils._split(arr)
    _core.save(os.fspath(file), arrays, names, True)


def load(file: File) -> list[ndarray] | dict[str, ndarray]:
    """Returns the arrays of a file written by :func:`save` or by MXNet 1.x: a dict if they have names, else a list.

    Raises FileError if the file cannot be read, FormatError with the position if it is broken.
    """
    loaded: Any = utils.load(file)
    if isinstance(loaded, dict):
        return {name: array.as_np_ndarray() for name, array in loaded.items()}
    return [array.as_np_ndarray() for array in loaded]


def savez(file: File, *args: ndarray, **kwargs: ndarray) -> None:
    """Writes arrays into a .npz file by keyword or as arr_0, arr_1, ...; numpy.load reads it."""
    for array in (*args, *kwargs.values()):
        if not isinstance(array, _core.NDArrayBase):
            raise HybridNetTypeError("npx.savez", expected="arrays of mx.np", given=type(array).__name__)
    arrays: dict[str, Any] = {name: array.asnumpy() for name, array in kwargs.items()}
    onp.savez(os.fspath(file), *(array.asnumpy() for array in args), **arrays)
