"""Indexing ``x[key]`` and ``x[key] = value`` with NumPy's rules.

Slices that are contiguous in memory are views, and writing to them writes to x; others are copies made by operators.
Gradients flow through both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..errors import IndexError as HybridNetIndexError
from ..errors import ShapeError, TraceError
from ..errors import TypeError as HybridNetTypeError
from ._dtypes import dtype_name
from ._float_masks import warn_of_float_mask
from ._operators import main_operator

__all__ = ["fill", "get_item", "rows_of", "set_item", "set_rows"]

_FULL = slice(None)


def get_item(data: Any, key: Any) -> Any:
    """Returns data[key]."""
    if type(key) is int:
        return _row(data, key)
    if type(key) is slice and (rows := rows_of(data, key)) is not None:
        return rows
    key = _expanded(key, data.shape)
    if _is_basic(key):
        return _get_basic(data, _Region(key, data.shape))
    return _get_advanced(data, key)


def set_item(data: Any, key: Any, value: Any) -> None:
    """Sets data[key] = value, broadcasting value."""
    if type(key) is slice and set_rows(data, key, value):
        return
    key = _expanded(key, data.shape)
    if _is_basic(key):
        _set_basic(data, _Region(key, data.shape), value)
    else:
        _set_advanced(data, key, value)


def fill(data: Any, value: float) -> Any:
    """Writes value into every element of data; returns data."""
    if data.size:
        main_operator("_full")(shape=data.shape, value=float(value), dtype=dtype_name(data.dtype), out=data)
    return data


def _recorded(data: Any) -> bool:
    return _core.is_recording() and _core.needs_gradient(data)


def _visible_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape for the user: one element has shape (1,) in classic MXNet, () with NumPy shape semantics."""
    return shape or (() if _core.is_np_shape() else (1,))


def _row(data: Any, index: int) -> Any:
    shape = data.shape
    if not shape:
        raise HybridNetIndexError(
            "index", expected="() or an ellipsis", given="an int", because="the array is a scalar"
        )
    if not -shape[0] <= index < shape[0]:
        raise _out_of_bounds(index, 0, shape)
    row = _core.at(data, index + shape[0] if index < 0 else index)
    return row if len(shape) > 1 or _core.is_np_shape() else _core.reshaped(row, (1,))


def rows_of(data: Any, key: slice) -> Any:
    """Returns data[key] as a view, for the most frequent slices: neighboring rows. None for others."""
    start, stop, step = key.start, key.stop, key.step
    plain = (
        (start is None or type(start) is int) and (stop is None or type(stop) is int) and (step is None or step == 1)
    )
    shape = data.shape
    if not plain or not shape:
        return None
    start, stop, _ = key.indices(shape[0])
    return _core.sliced(data, start, stop) if start < stop and 0 not in shape else None


def set_rows(data: Any, key: slice, value: Any) -> bool:
    """Sets data[key] = value for the most frequent cases: a number or an array of equal rank. False: not handled."""
    # A full slice writes to the array itself, without a view (a second handle).
    if (rows := data if key == _FULL and data.shape and data.size else rows_of(data, key)) is None:
        return False
    if isinstance(value, _core.NDArrayBase):
        if _core.is_same_place(value, rows) and _core.needs_gradient(value):
            return True
        if value.shape == rows.shape:
            main_operator("_copyto")(_as_array(value, rows), out=rows)
        elif value.ndim == rows.ndim and all(a in (1, b) for a, b in zip(value.shape, rows.shape, strict=True)):
            main_operator("broadcast_to")(_as_array(value, rows), shape=rows.shape, out=rows)
        else:
            return False
        return True
    number = _number(value)
    if number is not None:
        fill(rows, number)
    return number is not None


def _out_of_bounds(index: int, axis: int, shape: tuple[int, ...]) -> HybridNetIndexError:
    size = shape[axis]
    return HybridNetIndexError(
        f"index {index} is out of bounds for axis {axis} with size {size}: expected {-size} to {size - 1}, "
        f"shape is {shape}",
        fix=f"use an index up to {size - 1}; -1 is the last" if size else "test the size first: the axis is empty",
    )


# ----------------------------------------------------------------------------------------------------- parsing of keys
def _is_mask(item: Any) -> bool:
    return isinstance(item, (bool, np.bool_)) or (
        isinstance(item, (np.ndarray, _core.NDArrayBase)) and np.dtype(item.dtype) == np.bool_
    )


def _as_item(item: Any, shape: tuple[int, ...]) -> Any:
    """Converts an item to None, Ellipsis, int, slice of ints, or an integer / boolean NumPy array.

    shape: the shape of the array if this is the first item, else ().
    """
    if item is None or item is Ellipsis or type(item) is int:
        return item
    if isinstance(item, slice):
        return slice(*(None if part is None else _as_int(part) for part in (item.start, item.stop, item.step)))
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, _core.NDArrayBase):
        index = _core.asnumpy(item)
        if index.dtype.kind == "f":  # MXNet passes index arrays as float32
            if not np.array_equal(index, np.floor(index)):
                raise _no_index(index)
            warn_of_float_mask(index, shape)
        return _without_axes(index if index.dtype == np.bool_ else index.astype(np.int64))
    if isinstance(item, (list, tuple, range)):
        item = np.asarray([_core.asnumpy(i) if isinstance(i, _core.NDArrayBase) else i for i in item])
        if item.size == 0:
            return item.astype(np.int64)
    if isinstance(item, np.ndarray):
        if item.dtype == np.bool_ or np.issubdtype(item.dtype, np.integer):
            return _without_axes(item)
        if np.issubdtype(item.dtype, np.floating) and np.all(item == np.floor(item)):
            return _without_axes(item.astype(np.int64))
    raise _no_index(item)


def _no_index(item: Any) -> HybridNetTypeError:
    return HybridNetTypeError(
        "index",
        expected="ints, slices, None, ... or integer or boolean arrays",
        given=f"{type(item).__name__} {item!r:.60}",
        fix=_index_fix(item),
    )


def _index_fix(item: Any) -> str:
    if isinstance(item, float):
        return f"write an integer: x[{int(item) if item == item and abs(item) < 1e18 else 0}]"
    if isinstance(item, str):
        return "index by position; only a dict of arrays has names"
    return "convert the index: x[index.astype('int64')]"


def _without_axes(index: np.ndarray) -> Any:
    """Converts a 0-d array: an integer becomes an int, a bool becomes a mask."""
    return index if index.ndim or index.dtype == np.bool_ else int(index)


def _as_int(value: Any) -> int:
    if isinstance(value, _core.NDArrayBase):
        return int(_core.asnumpy(value).item())
    return value.__index__()


def _expanded(key: Any, shape: tuple[int, ...]) -> list[Any]:
    """Returns one item per axis (masks cover several), with newaxis items between; expands the ellipsis."""
    given = key if isinstance(key, tuple) else (key,)
    items = [_as_item(item, () if number else shape) for number, item in enumerate(given)]
    used = sum(_axes_of(item) for item in items)
    if used > len(shape):
        raise HybridNetIndexError(
            "too many indices",
            expected=f"at most {len(shape)}",
            given=str(used),
            because=f"the shape is {shape}",
            fix="leave some out, or add axes first by reshape or expand_dims",
        )
    if sum(item is Ellipsis for item in items) > 1:
        raise HybridNetIndexError("an index can only have a single ellipsis ('...')")
    rest = [_FULL] * (len(shape) - used)
    at = next((i for i, item in enumerate(items) if item is Ellipsis), None)
    if at is None:
        return items + rest
    if not rest and sum(type(item) is int or isinstance(item, np.ndarray) for item in items) > 1:
        # An ellipsis that covers no axis is kept: the arrays on both sides of it are not adjacent.
        return items if not _is_basic(items) else items[:at] + items[at + 1 :]
    return items[:at] + rest + items[at + 1 :]


def _axes_of(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype == np.bool_ else 1


def _is_basic(key: list[Any]) -> bool:
    return not any(isinstance(item, np.ndarray) for item in key)


class _Region:
    """The region that a basic key selects: begin, end, step per axis, and the shape that the user sees."""

    def __init__(self, key: list[Any], shape: tuple[int, ...]) -> None:
        self.source_shape = shape
        self.begin: list[int] = []
        self.step: list[int] = []
        self.sizes: list[int] = []  # per source axis, 1 for ints
        visible: list[int] = []
        axis = 0
        for item in key:
            if item is None:
                visible.append(1)
                continue
            size = shape[axis]
            if isinstance(item, slice):
                chosen = range(*item.indices(size))
                self._append(chosen.start, chosen.step, len(chosen))
                visible.append(len(chosen))
            else:
                if not -size <= item < size:
                    raise _out_of_bounds(item, axis, shape)
                self._append(item + size if item < 0 else item, 1, 1)
            axis += 1
        self.raw_visible = tuple(visible)
        self.visible = _visible_shape(self.raw_visible)

    def _append(self, begin: int, step: int, size: int) -> None:
        self.begin.append(begin)
        self.step.append(step)
        self.sizes.append(size)

    @property
    def is_empty(self) -> bool:
        return 0 in self.sizes

    @property
    def is_everything(self) -> bool:
        return tuple(self.sizes) == self.source_shape and all(step == 1 for step in self.step)

    def ends(self) -> list[int | None]:
        """Exclusive ends; None if a backward slice runs past the first element."""
        ends: list[int | None] = []
        for begin, step, size in zip(self.begin, self.step, self.sizes, strict=True):
            end = begin + step * size
            ends.append(None if end < 0 else end if step < 0 else begin + step * (size - 1) + 1)
        return ends

    def contiguous_axes(self) -> int | None:
        """The number of leading axes of size 1 in the region if it is contiguous in memory, else None."""
        axis = 0
        while axis < len(self.sizes) and self.sizes[axis] == 1:
            axis += 1
        rest = range(axis + 1, len(self.sizes))
        if axis < len(self.sizes) and self.step[axis] != 1 and self.sizes[axis] > 1:
            return None
        whole = all(self.sizes[i] == self.source_shape[i] and (self.step[i] == 1 or self.sizes[i] == 1) for i in rest)
        return axis if whole else None


# ---------------------------------------------------------------------------------------------------------------- read
def _get_basic(data: Any, region: _Region) -> Any:
    if region.is_empty:
        return _nothing_of(data, region.visible)
    view = _view(data, region)
    return _slice_by_operator(data, region) if view is None else _core.reshaped(view, region.visible)


def _nothing_of(data: Any, shape: tuple[int, ...]) -> Any:
    """Returns an array without elements; recorded as computed from data if data is recorded."""
    empty = _like(data, _core.empty(shape, data.dtype, *_device(data)))
    if not _recorded(data) or not data.shape:
        return empty
    zero = main_operator("sum")(main_operator("slice_axis")(data, axis=0, begin=0, end=0))
    return main_operator("broadcast_add")(empty, _reshaped_by_operator(zero, (1,) * len(shape)))


def _view(data: Any, region: _Region) -> Any:
    """Returns the region as a view, or None if it is not contiguous."""
    if region.is_everything:
        return data
    axes = region.contiguous_axes()
    if axes is None:
        return None
    view = data
    for axis in range(axes):
        view = _core.at(view, region.begin[axis])
    if axes < len(region.sizes):
        begin = region.begin[axes]
        view = _core.sliced(view, begin, begin + region.sizes[axes])
    return view


def _slice_by_operator(data: Any, region: _Region) -> Any:
    result = data
    if not region.is_everything:
        result = main_operator("slice")(data, begin=region.begin, end=region.ends(), step=region.step)
    return (
        result
        if result.shape == region.visible and result is not data
        else _reshaped_by_operator(result, region.visible)
    )


def _reshaped_by_operator(data: Any, shape: tuple[int, ...]) -> Any:
    return main_operator("Reshape")(data, shape=shape)


def _device(data: Any) -> tuple[int, int]:
    ctx = data.context
    return ctx.device_typeid, ctx.device_id


def _like(data: Any, made: Any) -> Any:
    return made if type(made) is type(data) else _core.retyped(made, type(data))


def _flat_positions(key: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Returns the positions in the flattened array of the elements that NumPy would select, in the result's shape."""
    positions: Any = 0 if shape else np.zeros((), np.int64)[tuple(key)]
    stride = 1
    for axis in reversed(range(len(shape))):
        column = np.arange(shape[axis], dtype=np.int64).reshape((-1,) + (1,) * (len(shape) - 1 - axis))
        try:
            positions = positions + np.broadcast_to(column, shape)[tuple(key)] * stride
        except IndexError as problem:
            raise HybridNetIndexError(f"index: {problem}; shape is {shape}") from None
        stride *= shape[axis]
    return np.asarray(positions, dtype=np.int64)


def _single_array_axis(key: list[Any]) -> int | None:
    """Returns the axis of the only index array if every other item is a full slice, else None."""
    arrays = [i for i, item in enumerate(key) if isinstance(item, np.ndarray)]
    if len(arrays) != 1 or key[arrays[0]].dtype == np.bool_:
        return None
    return (
        arrays[0]
        if all(i == arrays[0] or (isinstance(item, slice) and item == _FULL) for i, item in enumerate(key))
        else None
    )


def _get_advanced(data: Any, key: list[Any]) -> Any:
    axis = _single_array_axis(key)
    if axis is not None:
        index = key[axis]
        size = data.shape[axis]
        if index.size and (index.min() < -size or index.max() >= size):
            bad = index.min() if index.min() < -size else index.max()
            raise _out_of_bounds(int(bad), axis, data.shape)
        if index.size:
            return main_operator("take")(
                data, _positions(data, np.where(index < 0, index + size, index)), axis=axis, mode="clip"
            )
    positions = _flat_positions(key, data.shape)
    if positions.size == 0:
        return _nothing_of(data, positions.shape)
    flat = _core.reshaped(data, (data.size,))
    result = main_operator("take")(flat, _positions(data, positions.reshape(-1)), axis=0, mode="clip")
    return _reshaped_by_operator(result, _visible_shape(positions.shape))


def _positions(data: Any, index: np.ndarray) -> Any:
    index = np.ascontiguousarray(index, dtype=np.int64)
    return _like(data, _core.from_numpy_copy(index, np.int64, *_device(data)))


# --------------------------------------------------------------------------------------------------------------- write
def _set_basic(data: Any, region: _Region, value: Any) -> None:
    if region.is_empty:
        return
    number = _number(value)
    view = _view(data, region)
    if view is not None:
        _write_view(view, region, value, number)
        return
    where = {"begin": region.begin, "end": region.ends(), "step": region.step}
    if number is not None:
        main_operator("_slice_assign_scalar")(data, scalar=number, **where, out=data)
    else:
        source = _broadcast(_as_array(value, data), region.raw_visible, tuple(region.sizes))
        main_operator("_slice_assign")(data, source, **where, out=data)


def _write_view(view: Any, region: _Region, value: Any, number: float | None) -> None:
    if number is not None:
        fill(view, number)
    elif isinstance(value, _core.NDArrayBase):
        if not (_core.is_same_place(value, view) and _core.needs_gradient(value)):
            main_operator("_copyto")(_broadcast(_as_array(value, view), region.raw_visible, view.shape), out=view)
    else:
        _core.copy_from_numpy(view, _broadcast_numpy(value, region.raw_visible, view.dtype).reshape(view.shape))


_LARGEST_EXACT = 1 << 53  # the range in which a float64 holds every integer


def _number(value: Any) -> float | None:
    """Returns the value as a number if it is one and a float holds it exactly, else None."""
    if isinstance(value, (int, np.integer)) and abs(int(value)) > _LARGEST_EXACT:
        return None
    if isinstance(value, (bool, int, float, np.generic)):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return _number(value[()])
    return None


def _as_array(value: Any, like: Any) -> Any:
    """Converts the value to an array with like's class and dtype."""
    if isinstance(value, _core.NDArrayBase):
        source = value
        if value.dtype is not like.dtype:
            source = main_operator("Cast")(value, dtype=dtype_name(like.dtype))
        return _like(like, source if source.context == like.context else source.as_in_context(like.context))
    values = _numpy_values(value, like.dtype)
    return _like(like, _core.from_numpy_copy(values, like.dtype, *_device(like)))


def _numpy_values(value: Any, dtype: Any) -> np.ndarray:
    if isinstance(value, _core.SymbolBase):
        raise TraceError(
            "assignment",
            expected="numbers or arrays",
            given="a traced array, which has no values while the graph is being built",
            fix="make the array that is written to by an operator, such as zeros, so that it is traced too",
            where=_core.current_location(),
        )
    try:
        return np.asarray(value, dtype=dtype, order="C")
    except (ValueError, TypeError) as problem:
        raise HybridNetTypeError(
            "assignment",
            expected="numbers or arrays",
            given=f"{type(value).__name__}: {problem}",
            fix="assign a number, an array, or nested lists of numbers of equal length",
        ) from problem


def _squeezed_shape(given: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """Drops leading axes of size 1 that target does not have."""
    shape = given
    while len(shape) > len(target) and shape[0] == 1:
        shape = shape[1:]
    fits = len(shape) <= len(target) and all(
        a in (1, b) for a, b in zip(reversed(shape), reversed(target), strict=False)
    )
    if not fits:
        raise ShapeError(
            "assignment",
            expected=f"values that broadcast to shape {target}",
            given=f"shape {given}",
            fix=f"assign a number or values of shape {target}, or index as many elements as there are values",
        )
    return shape


def _broadcast(source: Any, visible: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Broadcasts source to the shape that the user sees, then reshapes it to the region's own axes."""
    fitting = _squeezed_shape(source.shape, visible)
    aligned = (1,) * (len(visible) - len(fitting)) + fitting
    if source.shape != aligned:
        source = _reshaped_by_operator(source, aligned)
    if aligned != visible:
        source = main_operator("broadcast_to")(source, shape=visible)
    return source if source.shape == shape else _reshaped_by_operator(source, shape)


def _broadcast_numpy(value: Any, visible: tuple[int, ...], dtype: Any) -> np.ndarray:
    values = _numpy_values(value, dtype)
    values = values.reshape(_squeezed_shape(values.shape, visible))
    return np.ascontiguousarray(np.broadcast_to(values, visible))


def _set_advanced(data: Any, key: list[Any], value: Any) -> None:
    positions = _flat_positions(key, data.shape)
    if positions.size == 0:
        return
    number = _number(value)
    source = _as_array(np.asarray(number) if number is not None else value, data)
    shape = positions.shape or (1,)
    source = _broadcast(source, shape, (positions.size,))
    indices = _positions(data, positions.reshape(1, -1))
    target = data
    if data.ndim != 1 and _core.needs_gradient(data):  # values that are not overwritten keep their history
        indices = _positions(data, np.stack(np.unravel_index(positions.reshape(-1), data.shape)))
    elif data.ndim != 1:
        target = _core.reshaped(data, (data.size,))
    main_operator("_scatter_set_nd")(target, source, indices, shape=target.shape, out=target)
