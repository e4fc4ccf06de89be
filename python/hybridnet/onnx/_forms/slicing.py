"""Ranges of indices along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._axes import axis_of
from .._builder import Param, Runtime
from .._errors import refuse
from .._guards import guarded, has_sizes
from .._iterations import slice_of_known_length
from .._sizes import Number, Size, apply, is_number
from .._table import form
from .._values import Value

# Files write the largest 32-bit or 64-bit integer for the end of any axis.
_FAR = 2**31 - 1


@form("Slice")
def slice_(g: Any, node: Any, x: Any, *given: Any) -> Any:
    """Indices from `starts` to `ends`, exclusive, along some axes; negative ones count from the end."""
    starts, ends, axes, steps = [*given, *[None] * 4][:4]
    rows = slice_of_known_length(g, x, given, node.name)
    if rows is not None:
        return (rows,)
    if axes is not None and isinstance(g.numbers(axes), Runtime):
        return _along_any(g, node, x, starts, ends, axes, steps)
    if node.version < 10:
        bounds: list[Any] = [node.attr("starts"), node.attr("ends"), node.attr("axes"), None]
    else:
        given = (_limited(g, starts), _limited(g, ends), axes, steps)
        bounds = [None if value is None else g.items(value) for value in given]
    first, last, places, paces = bounds
    begin: list[Param] = [None] * x.ndim
    end: list[Param] = [None] * x.ndim
    step: list[Param] = [None] * x.ndim
    for number, place in enumerate(range(len(first)) if places is None else places):
        axis, pace = axis_of(int(place), x.ndim, node), 1 if paces is None else paces[number]
        step[axis] = None if pace == 1 else pace
        forwards = isinstance(pace, (Size, Runtime)) or pace > 0
        begin[axis] = _bound(first[number], forwards, x.fixed(axis), is_begin=True)
        if not forwards and x.fixed(axis) is None:
            begin[axis] = _from_an_element(begin[axis], g.dim(x, axis))
        end[axis] = _bound(last[number], forwards, x.fixed(axis), is_begin=False)
    return (sliced(g, x, begin, end, step, node.name),)


def _limited(g: Any, bounds: Value) -> Value:
    """Bounds without huge numbers, which operators do not take from tensors."""
    if isinstance(g.numbers(bounds), Runtime):
        bounds = g.emit("clip", [bounds], a_min=-_FAR, a_max=_FAR)
    return bounds


def _bound(item: Param, forwards: bool, size: int | None, is_begin: bool) -> Param:
    """A bound of a slice as the operator takes it: None for the first or the last element, and no huge numbers."""
    if isinstance(item, (Size, Runtime)):
        return item
    number = min(max(int(item), -_FAR), _FAR)
    if is_begin and not forwards and number < 0 and size is not None:
        number = max(number + size, 0)  # ONNX starts at the first element if the start is in front of it
    natural = (-_FAR if is_begin else _FAR) * (1 if forwards else -1)
    return None if number == natural or (is_begin and forwards and number == 0) else number


def _from_an_element(begin: Param, size: Number) -> Param:
    """The start of a slice with a negative step: ONNX takes the first element for starts in front of it."""
    if begin is None or isinstance(begin, Runtime) or begin == -1 or (is_number(begin) and begin >= 0):
        return begin
    inside = apply("max", apply("+", begin, size), 0)
    return inside if is_number(begin) else apply("?", apply("<", begin, 0), inside, begin)


def sliced(g: Any, x: Value, begin: list[Param], end: list[Param], step: list[Param], name: str) -> Value:
    """A slice with one bound per axis, as the operator `slice` takes them."""
    cut = [axis for axis in range(x.ndim) if (begin[axis], end[axis], step[axis]) != (None, None, None)]
    if not cut:
        return x
    made: Value
    if any(isinstance(item, Runtime) for item in (*begin, *end, *step)):
        bounds = {"begin": tuple(begin), "end": tuple(end), "step": tuple(step)}
        made = g.emit("slice", [x], name=name, shapes=_shapes(g, x, begin, end, step), **bounds)
    elif len(cut) == 1 and step[cut[0]] is None:
        first = 0 if begin[cut[0]] is None else begin[cut[0]]
        made = g.emit("slice_axis", [x], name=name, axis=cut[0], begin=first, end=end[cut[0]])
    else:
        steps = {} if step == [None] * x.ndim else {"step": tuple(step)}
        made = g.emit("slice", [x], name=name, begin=tuple(begin), end=tuple(end), **steps)
    return _for_long_axes(g, x, made, list(zip(begin, end, step, strict=True)))


def _for_long_axes(g: Any, x: Value, made: Value, bounds: list[tuple[Param, Param, Param]]) -> Value:
    """The slice. The first three elements of an open axis are two where it has two, and all trials are longer.

    Their size is open, too: the first trial takes it for another one. A graph that needs one size fails for others.
    """
    axes = [
        axis
        for axis, slicing in enumerate(bounds)
        if x.fixed(axis) is None and made.fixed(axis) is not None and not _is_always(made.shapes[0][axis], slicing)
    ]
    if not axes:
        return made
    sizes = [made.shapes[0][axis] for axis in axes]
    if g.shortens:
        g.has_shortened = True
        first = tuple(
            (size - 1 if size > 1 else size + 1) if axis in axes else size for axis, size in enumerate(made.shapes[0])
        )
        made.shapes = (first, *made.shapes[1:])
        return made
    message = (
        f"a slice of '{x.name}' has {sizes} elements along the axes {axes} where the model is imported, and another "
        "number in this run. Import it for such inputs: input_shapes={...}"
    )
    return guarded(g, made, has_sizes(g, made, axes, sizes), message)


def _is_always(size: int, slicing: tuple[Param, Param, Param]) -> bool:
    """Whether a slice has this size for every length of the axis from 1 on, or has bounds that follow the length."""
    if not all(item is None or isinstance(item, int) for item in slicing):
        return True
    longest = max(abs(item) for item in (*slicing[:2], 1) if item is not None)
    return all(len(range(*slice(*slicing).indices(length))) == size for length in range(1, min(longest, 64) + 1))


def _shapes(g: Any, x: Value, begin: list[Param], end: list[Param], step: list[Param]) -> tuple[tuple[int, ...], ...]:
    """Trial shapes of a slice some of whose bounds are computed from data."""
    sizes = []
    for axis, bounds in enumerate(zip(begin, end, step, strict=True)):
        if any(isinstance(item, Runtime) for item in bounds):
            sizes.append(g.data_size())
            continue
        whole = [shape[axis] for shape in x.shapes]
        trials = [[item.trials[i] if isinstance(item, Size) else item for item in bounds] for i in range(len(whole))]
        sizes.append(tuple(len(range(*slice(*trial).indices(size))) for trial, size in zip(trials, whole, strict=True)))
    return tuple(zip(*sizes, strict=True))


def _along_any(g: Any, node: Any, x: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    """The axes are known when the graph runs: all axes are sliced, with bounds that are written into whole ranges."""
    if starts.fixed(0) is None:
        raise refuse("the number of axes is not known while the file is imported", node=node.proto)
    where = g.emit("_npi_mod_scalar", [axes], scalar=x.ndim)

    def along_all(given: Any, otherwise: int) -> list[Runtime]:
        whole = g.constant(np.full(x.ndim, otherwise), "bounds", given.dtype)
        made = g.emit("_contrib_index_copy", [whole, where, _limited(g, given)])
        return [Runtime(made, axis) for axis in range(x.ndim)]

    begin, end = along_all(starts, 0), along_all(ends, _FAR)
    step = [None] * x.ndim if steps is None else along_all(steps, 1)
    return (sliced(g, x, begin, end, step, node.name),)


__all__ = ["slice_", "sliced"]
