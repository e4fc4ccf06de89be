"""x[key] of a traced array: slices become operators, arrays as keys become take."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..errors import IndexError as HybridNetIndexError
from ..errors import TypeError as HybridNetTypeError

__all__ = ["traced_item"]


def traced_item(data: Any, key: Any) -> Any:
    """data[key] for ints, slices of ints, None, an ellipsis, or one integer array in front."""
    if isinstance(key, (_core.SymbolBase, _core.NDArrayBase)):
        return _op("take")(data, key, axis=0, mode="wrap")
    items = list(key) if isinstance(key, tuple) else [key]
    for item in items:
        if not (
            item is None or item is Ellipsis or isinstance(item, slice) or hasattr(item, "__index__")
        ) or isinstance(item, _core.SymbolBase):
            raise HybridNetTypeError(
                "index of a traced array",
                expected="ints, slices, None or ...",
                given=type(item).__name__,
                fix="use take, pick, gather_nd or boolean_mask",
            )
    return _slice(data, _expanded(items, data.ndim))


def _expanded(items: list[Any], ndim: int) -> list[Any]:
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > ndim:
        raise HybridNetIndexError("too many indices", expected=f"at most {ndim}", given=str(used))
    rest = [slice(None)] * (ndim - used)
    at = next((i for i, item in enumerate(items) if item is Ellipsis), None)
    return items + rest if at is None else items[:at] + rest + items[at + 1 :]


def _slice(data: Any, key: list[Any]) -> Any:
    begin: list[int | None] = []
    end: list[int | None] = []
    step: list[int | None] = []
    squeezed: list[int] = []
    codes: list[int] = []  # Reshape codes that add and drop axes; 0 copies a size
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
    if squeezed and len(squeezed) == len(begin) and None not in key:
        return _op("Reshape")(result, shape=(1,) if not _core.is_np_shape() else ())
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
