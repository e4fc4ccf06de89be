"""Single values of a state: as arrays of the graph, their types, and placeholders."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, symbol
from .._control_flow import rules
from ..symbol import Symbol
from ._numbers import TracedNumber, dtype_of_kind, is_number, kind_of, literal
from ._structure import is_array

__all__ = ["are_equal", "as_output", "placeholder_of", "type_of_leaf"]


def as_output(leaf: Any, cast: Any) -> Any:
    """Returns a leaf as an array, of the spec or kind `cast` if it is given; None if it is no array or number."""
    if isinstance(leaf, Symbol):
        return leaf
    if is_array(leaf):
        return _core.traced_constant(leaf)
    if type(leaf) is not TracedNumber and not is_number(leaf):
        return None
    if isinstance(cast, tuple):
        shape, dtype = cast
        if type(leaf) is TracedNumber:
            return _reshaped(leaf.cast(dtype), shape)
        return literal(leaf, np.dtype(dtype).name, shape)
    kind = kind_of(leaf) if cast is None else cast
    if type(leaf) is TracedNumber:
        return leaf.cast(kind)
    return literal(leaf, dtype_of_kind(kind)).as_nd_ndarray()


def _reshaped(array: Any, shape: tuple[int, ...]) -> Any:
    return symbol.reshape(array, shape=shape) if shape else symbol.reshape(array, shape=())


def type_of_leaf(leaf: Any) -> Any:
    """Returns what is needed to make a placeholder for a leaf."""
    if isinstance(leaf, Symbol):
        root, _, outside, _ = _core.memory_root(leaf)
        if outside and root.name == leaf.name:
            return ("like", leaf, False)
    if is_array(leaf):
        return ("array", rules.spec_of(leaf), getattr(leaf, "_has_numpy_interface", False))
    if type(leaf) is TracedNumber or is_number(leaf):
        return ("number", kind_of(leaf), False)
    return ("object", leaf, False)


def placeholder_of(spec: tuple[str, Any, bool]) -> Any:
    """Returns zeros of a type, for a path on which the value is never read."""
    what, detail, is_np = spec
    if what == "like":
        return symbol.zeros_like(detail)
    if what == "array" and detail is not None:
        made = literal(0, np.dtype(detail[1]).name, detail[0])
        return made.as_np_ndarray() if is_np else made.as_nd_ndarray()
    if what == "number":
        return TracedNumber(literal(0, dtype_of_kind(detail)), detail)
    return detail


def are_equal(a: Any, b: Any) -> bool:
    """Whether two leaves are the same value while the graph is made; arrays are compared by identity."""
    if is_array(a) or is_array(b) or type(a) is TracedNumber or type(b) is TracedNumber:
        return a is b
    try:
        return a is b or (type(a) is type(b) and bool(a == b) and repr(a) == repr(b))
    except Exception:
        return False
