"""Conversion of mx.np arrays at the border to Gluon's layers, which are written with mx.nd.

Layers and losses of this package use classic operators. For arrays (or Symbols) of mx.np, they work on the same memory
as mx.nd arrays, and return arrays of mx.np. Containers and blocks of users receive their arguments unchanged.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..ndarray import NDArray
from ..symbol import Symbol
from ..util import is_np_array

__all__ = ["as_classic", "as_numpy", "converts", "for_user", "is_numpy"]


@cache
def converts(block: type) -> bool:
    """Whether hybrid_forward of this class is code of this package, written with mx.nd."""
    module = getattr(block, "hybrid_forward").__module__  # noqa: B009  # of the function, own or inherited
    return module.startswith("hybridnet.") and not getattr(block, "_calls_user_code", False)


def is_numpy(value: Any) -> bool:
    """Whether it is an array or a Symbol with NumPy's interface, or a sequence that begins with one."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return getattr(value, "_has_numpy_interface", False)


def as_classic(value: Any) -> Any:
    """Converts arrays of mx.np to arrays of mx.nd, also within lists and tuples."""
    if isinstance(value, (NDArray, Symbol)):
        return value.as_nd_ndarray()
    if isinstance(value, (list, tuple)):
        return type(value)(as_classic(item) for item in value)
    return value


def as_numpy(value: Any) -> Any:
    """Converts arrays of mx.nd to arrays of mx.np, also within lists, tuples and dicts."""
    if isinstance(value, (NDArray, Symbol)):
        return value.as_np_ndarray()
    if isinstance(value, dict):
        return {key: as_numpy(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(as_numpy, value))
    if isinstance(value, (list, tuple)):
        return type(value)(as_numpy(item) for item in value)
    return value


def for_user(value: Any) -> Any:
    """Converts arrays that Gluon created to the class selected by npx.set_np()."""
    return as_numpy(value) if is_np_array() else value
