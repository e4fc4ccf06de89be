"""Where arrays of mx.np meet what Gluon has written with mx.nd.

Layers and losses of this package are written with classic operators. Given arrays (or Symbols) of mx.np they work on
the same memory as mx.nd arrays, and their results are arrays of mx.np again. Containers and blocks of users see what
they were given.
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
    module = getattr(block, "hybrid_forward").__module__  # noqa: B009  # of the function that the class has or inherits
    return module.startswith("hybridnet.") and not getattr(block, "_calls_user_code", False)


def is_numpy(value: Any) -> bool:
    """Whether it is an array or a Symbol of NumPy's interface, or a sequence that begins with one."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return getattr(value, "_has_numpy_interface", False)


def as_classic(value: Any) -> Any:
    """value with arrays of mx.nd for arrays of mx.np, within lists and tuples too."""
    if isinstance(value, (NDArray, Symbol)):
        return value.as_nd_ndarray()
    if isinstance(value, (list, tuple)):
        return type(value)(as_classic(item) for item in value)
    return value


def as_numpy(value: Any) -> Any:
    """value with arrays of mx.np for arrays of mx.nd, within lists and tuples too."""
    if isinstance(value, (NDArray, Symbol)):
        return value.as_np_ndarray()
    if isinstance(value, (list, tuple)):
        return type(value)(as_numpy(item) for item in value)
    return value


def for_user(value: Any) -> Any:
    """Arrays that Gluon made, as those that npx.set_np() asks for."""
    return as_numpy(value) if is_np_array() else value
