"""Helpers of composed functions: operands as arrays, dtypes, and choices."""

from __future__ import annotations

from typing import Any

import numpy as onp

from .. import _core
from ..ndarray._dtypes import dtype_name
from ._operators import _converted, _scalar_array, is_number, np_operator

__all__ = ["as_array", "as_parts", "cast", "choose", "common", "flat", "is_float", "is_number", "name_of"]


def as_array(value: Any) -> Any:
    """Returns value itself if it is an array or a Symbol; converts lists, NumPy arrays and numbers to arrays."""
    if isinstance(value, (_core.NDArrayBase, _core.SymbolBase)):
        return value
    return _scalar_array(_converted(value))


def as_parts(arrays: Any) -> list[Any]:
    """Returns the arrays of a sequence, or the slices of one array."""
    if isinstance(arrays, (_core.NDArrayBase, _core.SymbolBase)):
        return list(arrays)
    return [as_array(part) for part in arrays]


def name_of(dtype: Any) -> str | None:
    """The name of a dtype; None stays None."""
    return None if dtype is None else dtype_name(dtype)


def is_float(a: Any) -> bool:
    """True unless the dtype is integer or bool; True for Symbols of unknown dtype, which may be floating."""
    dtype = getattr(a, "dtype", None)
    return dtype is None or onp.dtype(dtype).kind not in "biu"


def cast(a: Any, dtype: Any) -> Any:
    """Converts a to another dtype; returns a itself if it has it."""
    return a if onp.dtype(a.dtype) == onp.dtype(dtype) else np_operator("_npi_cast")(a, dtype=dtype_name(dtype))


def common(*arrays: Any) -> list[Any]:
    """Converts arrays to one dtype: that of the floats among them, else the one that holds all integers."""
    kinds = [onp.dtype(a.dtype) for a in arrays]
    floats = [kind for kind in kinds if kind.kind not in "biu"]
    target = onp.result_type(*(floats or kinds))
    return [cast(a, target) for a in arrays]


def flat(a: Any) -> Any:
    """Returns all elements as a vector."""
    return np_operator("_np_reshape")(a, newshape=(-1,))


def choose(condition: Any, x: Any, y: Any) -> Any:
    """Returns x where condition is true, else y: arrays of the condition's shape, or numbers."""
    like = x if not is_number(x) else y
    fill = np_operator("_npi_full_like")
    x = fill(like, fill_value=x) if is_number(x) else x
    y = fill(like, fill_value=y) if is_number(y) else y
    return np_operator("where")(condition, x, y)
