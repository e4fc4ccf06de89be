"""Warnings about floating index arrays that look like masks.

Comparisons of ``mx.nd`` return float32, and MXNet reads a floating index array as positions: ``x[x > 0]`` takes rows 0
and 1, over and over. The result stays MXNet's; a warning is issued once per line.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _core
from .._user_line import warn

__all__ = ["warn_of_comparison", "warn_of_float_mask"]

_TEXT = (
    "an index array of floating numbers that looks like a mask is read as positions, as in MXNet: comparisons of mx.nd "
    "give 0.0 and 1.0, not bool. For the elements that a mask marks use mx.nd.contrib.boolean_mask(x, mask), "
    "x[mask.astype('bool')], or arrays of mx.np"
)
_COMPARISONS = ("equal", "greater", "lesser", "less", "logical")
_told: set[str] = set()  # lines that have been warned about


def _tell() -> None:
    where = _core.current_location()
    if where in _told:
        return
    _told.add(where)
    file, _, line = where.rpartition(":")
    if file and line.isdigit():
        warnings.warn_explicit(_TEXT, UserWarning, file, int(line))
    else:
        warn(_TEXT, UserWarning)


def warn_of_float_mask(index: np.ndarray, shape: tuple[int, ...]) -> None:
    """Warns if index, used on an array of this shape, holds zeros and ones in the shape of the array's leading axes.
    An index of exactly the values 0 and 1 is taken as an order of two rows.
    """
    if index.shape != shape[: index.ndim] or index.ndim == 0 or index.size == 0:
        return
    ones = int(np.count_nonzero(index == 1))
    if ones + int(np.count_nonzero(index == 0)) == index.size and not (index.size <= 2 and ones == index.size - 1):
        _tell()


def warn_of_comparison(index: Any) -> None:
    """Warns if a traced floating index array is the result of a comparison."""
    name = _core.symbol_op(index)
    specs = _core.symbol_specs(index)
    if name is None or not specs or specs[0][1] is None or np.dtype(specs[0][1]).kind != "f":
        return
    if any(word in name.strip("_").removeprefix("broadcast_") for word in _COMPARISONS):
        _tell()
