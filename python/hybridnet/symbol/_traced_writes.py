"""Indexed writes (x[key] = value) and views (x[key]) of traced arrays.

They behave as for arrays, but an operator makes a new value instead of writing in place.

If the key needs no sizes, neither do the new nodes, so that the graph serves arrays of all sizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, ndarray
from ..errors import IndexError as HybridNetIndexError
from ..errors import ShapeError, TraceError
from ..ndarray import _indexing

__all__ = ["as_indexed", "is_view_index", "set_item", "write"]

_FULL = slice(None)


def write(target: Any, value: Any) -> Any:
    """Replaces the values of target by value, converted to its dtype and broadcast to its shape."""
    set_item(target, Ellipsis, value)
    return target


def as_indexed(data: Any, key: Any, made: Any) -> Any:
    """Returns made, which is data[key]: as a view of data if the same key of an array returns one."""
    if made is data or not is_view_index(data, key):
        return made
    return _core.traced_view(made, data)


# --------------------------------------------------------------------------------------------------------------- views
def _is_basic_item(item: Any) -> bool:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return True
    return hasattr(item, "__index__") and not isinstance(
        item, (bool, np.bool_, np.ndarray, _core.SymbolBase, _core.NDArrayBase)
    )


def is_view_index(data: Any, key: Any) -> bool:
    """Whether data[key] is a view of data."""
    items = key if isinstance(key, tuple) else (key,)
    if not all(map(_is_basic_item, items)):
        return False
    if len(items) == 1 and (not isinstance(items[0], slice) or items[0].step in (None, 1)):
        return True
    shape = data._spec[0]
    if shape is None:
        _core.traced_views_by_shape(repr(key))
        return False
    items = _spelled_out(items, len(shape))
    if _is_view_for_all_sizes(items):
        return True
    if -1 in shape:
        _core.traced_views_by_shape(f"[{key}] of shape {shape}")
        return False
    _core.traced_views_by_shape(None)
    region = _indexing._Region(items, shape)
    return not region.is_empty and (region.is_everything or region.contiguous_axes() is not None)


def _is_view_for_all_sizes(items: list[Any]) -> bool:
    """True for keys of ints, at most one slice of step 1, and full slices."""
    rest = [item for item in items if item is not None]
    while rest and not isinstance(rest[0], slice):
        rest.pop(0)
    return all(item == _FULL for item in rest[1:]) and (not rest or rest[0].step in (None, 1))


def _spelled_out(items: tuple[Any, ...], ndim: int) -> list[Any]:
    """Returns one plain item per axis, and None for new axes."""
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > ndim:
        raise HybridNetIndexError("too many indices", expected=f"at most {ndim}", given=str(used))
    rest = [_FULL] * (ndim - used)
    at = next((i for i, item in enumerate(items) if item is Ellipsis), None)
    whole = [*items, *rest] if at is None else [*items[:at], *rest, *items[at + 1 :]]
    return [_plain(item) for item in whole]


def _plain(item: Any) -> Any:
    if item is None:
        return None
    if isinstance(item, slice):
        return slice(*(None if part is None else part.__index__() for part in (item.start, item.stop, item.step)))
    return item.__index__()


# -------------------------------------------------------------------------------------------------------------- writes
def set_item(data: Any, key: Any, value: Any) -> None:
    """Sets data[key] = value, broadcasting value. A value written in pause(), or to a detached view, is constant."""
    paused = _core.set_traced_pause(False)
    try:
        undetached = _core.traced_undetached(data)
        if (paused or undetached is not None) and isinstance(value, _TENSORS):
            value = _op("BlockGrad")(_traced(value))
        new = _with_item(data if undetached is None else undetached, key, value)
        if new is not None:
            _core.traced_write(data, new, False, True)
    finally:
        _core.set_traced_pause(paused)


def _with_item(data: Any, key: Any, value: Any) -> Any:
    """Returns data with data[key] replaced; None: the key selects nothing."""
    items = key if isinstance(key, tuple) else (key,)
    if all(map(_is_basic_item, items)):
        return _with_region(data, _spelled_out(items, _rank(data)), value)
    if len(items) == 1 and _is_mask(key):
        return _with_masked(data, key, value)
    if any(isinstance(item, _core.SymbolBase) for item in items):
        axis = _axis_of_positions(data, items)
        return _with_rows(data, items, value) if axis is None else _with_slices(data, axis, items, value)
    return _with_positions(data, key, value)


def _rank(data: Any) -> int:
    shape = data._spec[0]
    if shape is None:
        raise TraceError("x[key] = value of a traced array whose number of axes is not known")
    return len(shape)


def _op(name: str) -> Any:
    from .symbol import main_operator  # that file imports this one

    return main_operator(name)


def _like(data: Any, made: Any) -> Any:
    return made if type(made) is type(data) else _core.symbol_of_class(made, data._has_numpy_interface)


def _as_values(value: Any, data: Any) -> Any:
    """Converts value to a traced array of data's dtype."""
    dtype = data._spec[1]
    if isinstance(value, (_core.SymbolBase, _core.NDArrayBase)):
        traced = value if isinstance(value, _core.SymbolBase) else _core.traced_constant(value)
        own = traced._spec[1]
        if own is None or dtype is None or np.dtype(own) != np.dtype(dtype):
            traced = _op("Cast")(traced, dtype=_indexing.dtype_name(dtype))
        return traced
    values = _indexing._numpy_values(value, dtype or np.float32)
    return _core.traced_constant(ndarray.array(values, dtype=values.dtype))


def _shape_of(symbol: Any) -> tuple[int, ...] | None:
    shape = symbol._spec[0]
    return None if shape is None or -1 in shape else tuple(shape)


# -- ints and slices ------------------------------------------------------------------------------------------------
def _with_region(data: Any, items: list[Any], value: Any) -> Any:
    """Returns data with the region of ints, slices and new axes replaced; None: they select nothing."""
    shape = data._spec[0]
    own = [item for item in items if item is not None]
    for axis, (item, size) in enumerate(zip(own, shape, strict=True)):
        if not isinstance(item, slice) and size >= 0 and not -size <= item < size:
            raise _indexing._out_of_bounds(item, axis, shape)
    if -1 not in shape and _indexing._Region(items, shape).is_empty:
        return None
    slices = [item if isinstance(item, slice) else slice(item, item + 1 if item != -1 else None) for item in own]
    begin = [item.start for item in slices]
    where = {"begin": begin, "end": [item.stop for item in slices], "step": [item.step for item in slices]}
    number = _indexing._number(value)
    if number is not None and begin:
        return _op("_slice_assign_scalar")(data, scalar=number, **where)
    if number is not None:
        return _op("broadcast_like")(_as_values(np.full((), number), data), data)
    if all(item == _FULL for item in items if item is not None):
        return _broadcast(_as_values(value, data), items, data)
    part = _op("slice")(data, **where)
    return _op("_slice_assign")(data, _broadcast(_as_values(value, data), items, part), **where)


def _broadcast(value: Any, items: list[Any], part: Any) -> Any:
    """Broadcasts value to the shape of x[key], then reshapes it to the shape of part, which has the axes of x."""
    given = value._spec[0]
    if given is None:
        raise TraceError("a value whose number of axes is not known is written into a traced array")
    visible = [item for item in items if item is None or isinstance(item, slice)]
    if all(item is None for item in visible) and all(size == 1 for size in given):
        return _op("reshape_like")(value, part)  # one element, of shape (1,) or () by the interface
    surplus = len(given) - len(visible)
    if surplus > 0:
        if any(size != 1 for size in given[:surplus]):
            shown = _shape_of(part)
            raise ShapeError(
                "assignment",
                expected=f"values that broadcast to {len(visible)} axes" + (f" of shape {shown}" if shown else ""),
                given=f"shape {tuple(given)}",
            )
        value = _op("squeeze")(value, axis=tuple(range(surplus)))
    for _ in range(-surplus):
        value = _op("expand_dims")(value, axis=0)
    gone = tuple(axis for axis, item in enumerate(visible) if item is None)
    if gone:
        value = _op("squeeze")(value, axis=gone)
    for axis, item in enumerate(item for item in items if item is not None):
        if not isinstance(item, slice):
            value = _op("expand_dims")(value, axis=axis)
    return _as_large_as(value, part)


def _as_large_as(value: Any, part: Any) -> Any:
    """Broadcasts value to the shape of part."""
    if _shape_of(value) is not None and _shape_of(value) == _shape_of(part):
        return value
    if value._spec[0] == ():
        value = _op("expand_dims")(value, axis=0)
        return _op("broadcast_like")(value, part) if part._spec[0] != () else _op("reshape_like")(value, part)
    return _op("broadcast_like")(value, part)


# -- masks and positions --------------------------------------------------------------------------------------------
def _is_mask(item: Any) -> bool:
    if isinstance(item, _core.SymbolBase):
        dtype = item._spec[1]
        return dtype is not None and np.dtype(dtype) == np.bool_
    return _indexing._is_mask(item) or (
        isinstance(item, list) and np.asarray(item).dtype == np.bool_ and np.asarray(item).size > 0
    )


def _with_masked(data: Any, mask: Any, value: Any) -> Any:
    """Returns data with the elements that a mask of its first axes selects replaced by a number or by their values."""
    if not isinstance(mask, _core.SymbolBase):
        mask = mask if isinstance(mask, _core.NDArrayBase) else ndarray.array(np.asarray(mask), dtype="bool")
        mask = _core.traced_constant(mask)
    rank, marked = _rank(data), len(mask._spec[0])
    _check_mask(mask, data, marked)
    number = _indexing._number(value)
    if number is not None:
        new = _with_region(data, [_FULL] * rank, number)
        if new is None:
            return None  # data has no elements
    else:
        values = _as_values(value, data)
        given = values._spec[0]
        if given is not None and len(given) == rank - marked + 1 and given[0] == 1:
            values = _op("squeeze")(values, axis=0)
        if given is None or len(values._spec[0]) > rank - marked:
            raise TraceError(
                "x[mask] = values of a traced array",
                expected="a number, or values that are the same for each marked place",
                given=f"an array of shape {given}",
                because="the number of marked places is known only when the graph runs",
                fix="use where(mask, values of the shape of x, x)",
                where=_core.current_location(),
            )
        new = _broadcast(values, [_FULL] * rank, data)
    for _ in range(rank - marked):
        mask = _op("expand_dims")(mask, axis=len(mask._spec[0]))
    if _shape_of(mask) is None or _shape_of(mask) != _shape_of(data):
        mask = _op("broadcast_like")(mask, data)
    return _op("where")(_like(data, mask), new, data)


def _check_mask(mask: Any, data: Any, marked: int) -> None:
    shape, own = data._spec[0], mask._spec[0]
    if marked > len(shape) or any(-1 not in (a, b) and a != b for a, b in zip(own, shape, strict=False)):
        raise HybridNetIndexError(f"a mask of shape {tuple(own)} does not fit an array of shape {tuple(shape)}")


def _axis_of_positions(data: Any, items: tuple[Any, ...]) -> int | None:
    """Returns the axis of the only array of positions if all other items are full slices; None for other keys."""
    if not any(isinstance(item, slice) or item is Ellipsis for item in items):
        return None
    at = [i for i, item in enumerate(items) if isinstance(item, _TENSORS)]
    rest = [item for i, item in enumerate(items) if i not in at and item is not Ellipsis]
    if len(at) != 1 or _is_mask(items[at[0]]) or len(items) - len(rest) > 2:
        return None
    if not all(isinstance(item, slice) and item == _FULL for item in rest) or len(rest) >= _rank(data):
        return None
    shape = _traced(items[at[0]])._spec[0]
    if shape is None or len(shape) > 1:
        return None
    behind_ellipsis = any(item is Ellipsis for item in items[: at[0]])
    return _rank(data) - (len(items) - at[0]) if behind_ellipsis else at[0]


def _with_slices(data: Any, axis: int, items: tuple[Any, ...], value: Any) -> Any:
    """Returns data with the slices at traced positions along an axis replaced."""
    index = _op("Cast")(_traced(next(item for item in items if isinstance(item, _TENSORS))), dtype="int64")
    part = _op("take")(data, index, axis=axis, mode="wrap")  # for its shape: the write checks the positions
    number = _indexing._number(value)
    values = _as_values(np.full((), number) if number is not None else value, data)
    values = _broadcast(values, [_FULL] * len(part._spec[0]), part)
    if index._spec[0] == ():
        values, index = _op("expand_dims")(values, axis=axis), _op("expand_dims")(index, axis=0)
    return _op("_contrib_index_copy")(data, index, values, axis=axis)


def _with_rows(data: Any, items: tuple[Any, ...], value: Any) -> Any:
    """Returns data with the slices at traced positions along its first axes replaced."""
    if not all(isinstance(item, (int, np.integer, *_TENSORS)) for item in items) or any(map(_is_mask, items)):
        raise TraceError(
            "x[key] = value of a traced array",
            expected="ints, slices, a mask, positions along the first axes, or along one axis beside full slices",
            given=f"a key of {', '.join(type(item).__name__ for item in items)}",
            fix="use where or scatter_nd",
            where=_core.current_location(),
        )
    first = next(item for item in items if isinstance(item, _core.SymbolBase))
    zeros = _op("zeros_like")(_op("Cast")(first, dtype="int64"))
    columns = [
        _op("broadcast_add")(zeros, _op("Cast")(_traced(item), dtype="int64")) if isinstance(item, _TENSORS)
        else zeros + int(item)
        for item in items
    ]  # fmt: skip
    indices = _op("stack")(*columns, axis=0, num_args=len(columns))
    part = _op("gather_nd")(data, indices)
    number = _indexing._number(value)
    values = _as_values(np.full((), number) if number is not None else value, data)
    values = _broadcast(values, [_FULL] * len(part._spec[0]), part)
    return _op("_scatter_set_nd")(data, values, indices, shape=())


def _traced(item: Any) -> Any:
    return item if isinstance(item, _core.SymbolBase) else _core.traced_constant(item)


_TENSORS = (_core.SymbolBase, _core.NDArrayBase)


def _with_positions(data: Any, key: Any, value: Any) -> Any:
    """Returns data with the elements at arrays of known positions replaced; None: they select nothing."""
    shape = data.shape  # recorded as a dependency: the positions are valid only for this shape
    positions = _indexing._flat_positions(_indexing._expanded(key, shape), shape)
    if positions.size == 0:
        return None
    number = _indexing._number(value)
    values = _as_values(np.full((), number) if number is not None else value, data)
    selected = _core.traced_constant(ndarray.array(positions.reshape(positions.shape or (1,)), dtype=np.int64))
    values = _broadcast(values, [_FULL] * max(positions.ndim, 1), selected)
    values = _op("Reshape")(values, shape=(positions.size,))
    flat = _op("Reshape")(data, shape=(-1,))
    indices = _core.traced_constant(ndarray.array(positions.reshape(1, -1), dtype=np.int64))
    return _op("reshape_like")(_op("_scatter_set_nd")(flat, values, indices, shape=()), data)
