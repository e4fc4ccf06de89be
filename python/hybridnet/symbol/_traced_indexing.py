"""x[key] of a traced array: ints and slices become operators; _traced_selection handles keys with arrays."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..errors import IndexError as HybridNetIndexError
from ..errors import TypeError as HybridNetTypeError
from ._traced_selection import holds_arrays, selected

__all__ = ["traced_item"]


def traced_item(data: Any, key: Any) -> Any:
    """Returns data[key] with NumPy's rules: ints, slices, None, an ellipsis, integer arrays, masks."""
    items = list(key) if isinstance(key, tuple) else [key]
    if holds_arrays(items):
        return selected(data, items, _op, _slice)
    for item in items:
        if not (item is None or item is Ellipsis or isinstance(item, slice) or hasattr(item, "__index__")):
            raise HybridNetTypeError(
                "index of a traced array",
                expected="ints, slices, None, ... or integer or boolean arrays",
                given=type(item).__name__,
            )
    return _slice(data, _expanded(items, data.ndim))


def _expanded(items: list[Any], ndim: int) -> list[Any]:
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > ndim:
        raise HybridNetIndexError("too many indices", expected=f"at most {ndim}", given=str(used))
    if sum(item is Ellipsis for item in items) > 1:
        raise HybridNetIndexError("an index can only have a single ellipsis ('...')")
    rest = [slice(None)] * (ndim - used)
    at = next((i for i, item in enumerate(items) if item is Ellipsis), None)
    return items + rest if at is None else items[:at] + rest + items[at + 1 :]


def _slice(data: Any, key: list[Any]) -> Any:
    begin: list[int | None] = []
    end: list[int | None] = []
    step: list[int | None] = []
    squeezed: list[int] = []
    codes: list[int] = []  # Reshape codes that insert and remove axes; 0 copies a size
    for item in key:
        if item is None:
            codes.append(1)
            continue
        if isinstance(item, slice):
            begin.append(item.start)
            end.append(item.stop)
            step.append(item.step)
            codes.append(0)
        else:
            index = item.__index__()
            begin.append(index)
            end.append(index + 1 if index != -1 else None)
            step.append(None)
            squeezed.append(len(begin) - 1)
            codes.append(-1)
    _check_bounds(data, begin, squeezed)
    result = data
    if any(part is not None for part in [*begin, *end, *step]):
        result = _op("slice")(data, begin=begin, end=end, step=step)
    if squeezed and len(squeezed) == len(begin):  # one element
        new_axes = (1,) * sum(item is None for item in key)
        return _op("Reshape")(result, shape=new_axes or (() if _core.is_np_shape() else (1,)))
    if squeezed:
        result = _op("squeeze")(result, axis=tuple(squeezed))
    for position, code in enumerate(code for code in codes if code >= 0):
        if code == 1:
            result = _op("expand_dims")(result, axis=position)
    return result


def _check_bounds(data: Any, begin: list[int | None], squeezed: list[int]) -> None:
    shape = data._spec[0]
    for axis in squeezed:
        index, size = begin[axis], shape[axis]
        if index is not None and size >= 0 and not -size <= index < size:
            raise HybridNetIndexError(
                f"index {index} is out of bounds for axis {axis} with size {size}, shape is {shape}"
            )


_functions: dict[str, Any] = {}


def _op(name: str) -> Any:
    made = _functions.get(name)
    if made is None:
        made = _functions[name] = _core.op_function(name, name.lower(), "hybridnet.symbol", symbolic=True)
    return made
