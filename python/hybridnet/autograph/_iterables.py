"""The iterables of for loops of the graph: arrays, and zip, enumerate, reversed and range of traced values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _core, _tracing, symbol
from ..errors import TraceError
from ..errors import TypeError as HybridNetTypeError
from ..ndarray import NDArray
from ..symbol import Symbol
from ..symbol._traced_writes import is_view_index
from ._numbers import TracedNumber, is_number, literal, number_shape
from ._rows import Rows

__all__ = ["Enumerated", "LoopRange", "Reversed", "TracedRange", "Zipped", "is_traced_iterable", "length_of", "row"]


class LoopRange:
    """mx.range(...): the numbers of range(...), as a loop of the graph instead of a copy of its body per number.

    In imperative mode, and in loops that are not converted, it is the same as range.
    """

    def __init__(self, *bounds: Any) -> None:
        self.range = range(*bounds)

    def __iter__(self) -> Iterator[int]:
        _tracing.ask_for_conversion("mx.range")
        return iter(self.range)

    def __len__(self) -> int:
        return len(self.range)

    def __repr__(self) -> str:
        return f"mx.{self.range!r}"


class TracedRange:
    """range() of numbers of which at least one is known only when the graph runs."""

    def __init__(self, *bounds: Any) -> None:
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.start, self.stop, self.step = start, stop, step


class Enumerated:
    """enumerate(items, start) of a traced iterable."""

    def __init__(self, items: Any, start: Any = 0) -> None:
        self.items, self.start = _forward(items), start


class Zipped:
    """zip(...) of traced iterables."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = tuple([_forward(part) for part in parts])


class Reversed:
    """reversed(items) of a traced iterable."""

    def __init__(self, items: Any) -> None:
        self.items = items


def _forward(items: Any) -> Any:
    """Replaces reversed(items) by an iterable of its items in order."""
    if not isinstance(items, Reversed):
        return items
    inner = items.items
    if isinstance(inner, LoopRange):
        made = LoopRange(0)
        made.range = inner.range[::-1]
        return made
    if type(inner) is list:
        rows = inner[0]
        return [Rows(rows.structure, [flipped(leaf) for leaf in rows.leaves], rows.count, rows.place)]
    return flipped(inner) if isinstance(inner, Symbol) else items


def flipped(array: Any) -> Any:
    """Returns an array with its rows in reverse order."""
    is_numpy = getattr(array, "_has_numpy_interface", False)
    made = symbol.reverse(array.as_nd_ndarray() if is_numpy else array, axis=0)
    made = made.as_np_ndarray() if is_numpy else made
    _core.leave_sharing_undecided(made, f"it shares memory with another one: the rows are those of {array.name}")
    return made


def is_traced_iterable(value: Any) -> bool:
    """Whether a loop over value is a loop of the graph."""
    if isinstance(value, (LoopRange, TracedRange, Enumerated, Zipped, Reversed)):
        return True
    if isinstance(value, Symbol):
        return value.num_outputs == 1
    return type(value) is list and len(value) == 1 and type(value[0]) is Rows


def length_of(items: Any) -> Any:
    """Returns the number of items: an int, a TracedNumber, or None if the array has no known size."""
    if isinstance(items, (Enumerated, Reversed)):
        return length_of(items.items)
    if isinstance(items, LoopRange):
        return len(items)
    if isinstance(items, Zipped):
        lengths = [length_of(part) for part in items.parts]
        known = [length for length in lengths if isinstance(length, int)]
        return min(known) if len(known) == len(lengths) else None
    if type(items) is list:
        return items[0].count
    specs = _core.symbol_specs(items)
    if not specs or specs[0][0] is None or not specs[0][0]:
        return None
    return specs[0][0][0] if specs[0][0][0] >= 0 else None


def arrays_of(items: Any) -> list[Any]:
    """Returns the arrays whose rows are parts of the items."""
    if isinstance(items, (Enumerated, Reversed)):
        return arrays_of(items.items)
    if isinstance(items, Zipped):
        return [array for part in items.parts for array in arrays_of(part)]
    if isinstance(items, (LoopRange, TracedRange)):
        return []
    return list(items[0].leaves) if type(items) is list else [items]


def item_of(items: Any, rows: Iterator[Any], index: Any) -> Any:
    """Builds the item whose arrays have these rows, at position index (a number that the graph computes)."""
    if isinstance(items, Enumerated):
        return (index + items.start, item_of(items.items, rows, index))
    if isinstance(items, Zipped):
        return tuple([item_of(part, rows, index) for part in items.parts])
    if isinstance(items, Reversed):
        return item_of(items.items, rows, index)
    if isinstance(items, LoopRange):
        return index * items.range.step + items.range.start
    if type(items) is list:
        return items[0].item(lambda _: next(rows))
    return next(rows)


def size_of(array: Any, axis: int) -> TracedNumber:
    """Returns a size of an array as a number that the graph computes."""
    classic = array.as_nd_ndarray() if getattr(array, "_has_numpy_interface", False) else array
    size = symbol.slice_axis(symbol.shape_array(classic), axis=0, begin=axis, end=axis + 1)
    return TracedNumber(size if number_shape() else symbol.reshape(size, shape=()), int)


def row(array: Any, index: Any, to_write: bool = False) -> Any:
    """Returns array[index] for an index with numbers that the graph computes.

    The result is a view if the same index with numbers of Python returns one. to_write: always a view, without the
    parts of the index that are numbers and slices of Python: (view, these parts).
    """
    whole = array if isinstance(array, Symbol) else _core.traced_constant(array)
    items = _spelled_out(index if isinstance(index, tuple) else (index,), whole)
    if items is None:
        return (whole, as_index(index)) if to_write else whole[as_index(index)]
    example = tuple([0 if type(item) is TracedNumber else item for item in items])
    is_view = to_write or is_view_index(whole, example)
    rest = tuple([item for item in items if type(item) is not TracedNumber])
    part = whole
    scalar = all(not isinstance(item, slice) for item in items)
    for axis in reversed(range(len(items))):
        if type(items[axis]) is TracedNumber:
            keeps_axis = scalar and not rest and axis == 0 and not _is_numpy(whole)
            part = _taken(part, items[axis], axis, keeps_axis, is_view)
    if to_write:
        return part, rest or Ellipsis
    return part if all(item == slice(None) for item in rest) else part[rest]


def _taken(array: Any, position: TracedNumber, axis: int, keeps_axis: bool, is_view: bool) -> Any:
    """Returns one position along an axis; keeps_axis: a classic array of one element has shape (1,)."""
    classic = array.as_nd_ndarray() if _is_numpy(array) else array
    made = symbol.take(classic, position.array.as_nd_ndarray(), axis=axis, mode="raise")
    if number_shape() and not keeps_axis:
        made = symbol.squeeze(made, axis=axis)
    made = made.as_np_ndarray() if _is_numpy(array) else made
    if not is_view:
        return made
    made = _core.traced_view(made, array)
    if _core.memory_root(made)[1] != _core.memory_root(array)[1]:
        raise TraceError(
            "a view at a position that the graph computes is taken of an array whose value belongs to another part of "
            "the graph",
            fix="make a new array instead, as in x = x + 0",
        )
    return made


def _is_numpy(array: Any) -> bool:
    return bool(getattr(array, "_has_numpy_interface", False))


def _spelled_out(items: tuple[Any, ...], array: Any) -> list[Any] | None:
    """Returns an int, slice or number of the graph per axis; None if there are other items, or the rank is unknown."""
    specs = _core.symbol_specs(array)
    if not specs or specs[0][0] is None:
        return None
    rank = len(specs[0][0])
    known = [item for item in items if item is not Ellipsis]
    if len(known) > rank or len(items) - len(known) > 1 or any(not isinstance(i, _ITEMS) or i is True for i in known):
        return None
    rest = [slice(None)] * (rank - len(known))
    at = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
    return [*items[:at], *rest, *items[at + 1 :]]


_ITEMS = (int, slice, TracedNumber)


def has_traced_number(index: Any) -> bool:
    """Whether an index contains a number that the graph computes."""
    return type(index) is TracedNumber or (
        isinstance(index, tuple) and any(type(item) is TracedNumber for item in index)
    )


def as_index(index: Any) -> Any:
    """Replaces numbers that the graph computes by arrays, in an index."""
    if type(index) is TracedNumber:
        return index.array
    if isinstance(index, tuple):
        return tuple([as_index(part) for part in index])
    return index


def same_length(arrays: list[Any], length: int | None) -> list[Any]:
    """Cuts the arrays to the common length, as zip does."""
    made = []
    for array in arrays:
        specs = _core.symbol_specs(array) if isinstance(array, Symbol) else [(array.shape, array.dtype)]
        size = specs[0][0][0] if specs and specs[0][0] else -1
        if length is not None and size > length:
            _core.note_trace_read(1)  # the graph fits these lengths only
            array = array[:length]
        made.append(array)
    return made


def number_of(value: Any) -> Any:
    """Returns value as a number of the graph."""
    if isinstance(value, (TracedNumber, int)) and not isinstance(value, bool):
        return value if type(value) is TracedNumber else TracedNumber(literal(value, "int64"), int)
    if is_number(value):
        return TracedNumber(literal(int(value), "int64"), int)
    array = (
        value if isinstance(value, Symbol) else _core.traced_constant(value) if isinstance(value, NDArray) else value
    )
    shape = (1,)
    flat = symbol.reshape(
        array.as_nd_ndarray() if getattr(array, "_has_numpy_interface", False) else array, shape=shape
    )
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "iu":
        raise HybridNetTypeError(f"'{dtype.name}' object cannot be interpreted as an integer")
    return TracedNumber(symbol.reshape(flat, shape=number_shape()), int)
