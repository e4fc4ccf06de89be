"""Integers that loops carry: the number of the iteration, counters, positions.

Inside of a loop they are Sizes that read data (Item), so that ranges between two of them may have a known length.
``x[k : k + 1]`` and ``range(k, k + 1)`` would cut the graph in each iteration; as rows that are selected by number,
they are operators of the loop's body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._arithmetic import calculate
from ._sizes import Item, Number, Size, apply
from ._values import Value

__all__ = ["counted", "range_of_known_length", "slice_of_known_length"]

# Trial values: small ones, which are places in most tensors.
_TRIALS = (2, 3, 5)


def counted(value: Value) -> Value:
    """The value of a slot as a Size, if it is one integer."""
    if value.dtype in ("int32", "int64") and value.shapes[0] in ((), (1,)) and len(set(value.shapes)) == 1:
        trials = _TRIALS[: len(value.shapes)]
        value.sizes = np.array([Size(trials, (Item(value, 0),))], dtype=object).reshape(value.shapes[0])
    return value


def _length(first: Number, end: Number, step: int) -> int | None:
    """The number of steps from a number that is carried to another; None: it is not the same in all trials."""
    if not isinstance(first, Size) or not first.reads_data:
        return None
    distance = apply("-", end, first)
    trials = set(distance.trials) if isinstance(distance, Size) else {distance}
    length = trials.pop()
    return int(length // step) if not trials and length > 0 and length % step == 0 else None


def _single(value: Value | None) -> Number | None:
    """The only element, if it is a number or a Size."""
    if value is None or value.sizes is None or value.sizes.size != 1:
        return None
    number: Number = value.sizes.reshape(-1)[0]
    return number


def _numbers(g: Any, first: Value, length: int, step: int) -> Value:
    """first, first + step, ..."""
    start = first if first.ndim == 1 else g.emit("_np_reshape", [first], newshape=(1,))
    steps = g.constant(np.arange(length) * step, "steps", first.dtype)
    made: Value = calculate(g, "+", start, steps)
    return made


def slice_of_known_length(g: Any, x: Value, bounds: Sequence[Value | None], name: str) -> Value | None:
    """x[k + a : k + b] along one axis for a carried number k; None: another slice. bounds: as inputs of Slice.

    Positions outside of the axis are an error when the graph runs, as the slice would have another length.
    """
    starts, ends, axes, steps = [*bounds, *[None] * 4][:4]
    first, end = _single(starts), _single(ends)
    axis, step = 0 if axes is None else _single(axes), 1 if steps is None else _single(steps)
    if first is None or end is None or not isinstance(axis, (int, float)) or step != 1:
        return None
    length = _length(first, end, 1)
    if length is None or starts is None:
        return None
    rows = _numbers(g, starts, length, 1)
    made: Value = g.emit("take", [x, rows], name=name, axis=int(axis) % x.ndim, mode="raise")
    return made


def range_of_known_length(g: Any, start: Value, limit: Value, delta: Value) -> Value | None:
    """The numbers from a carried one up to another; None: another range."""
    first, end, step = (_single(value) for value in (start, limit, delta))
    if first is None or end is None or not isinstance(step, (int, float)) or step != int(step) or step <= 0:
        return None
    length = _length(first, end, int(step))
    return None if length is None else _numbers(g, start, length, int(step))
