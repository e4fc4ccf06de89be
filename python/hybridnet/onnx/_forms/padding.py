"""Pad and CenterCropPad: elements are added or removed at the ends of axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arithmetic import calculate, cut, join
from .._axes import axis_of, run_time_shapes
from .._builder import Runtime
from .._errors import refuse
from .._size_arithmetic import is_never_negative
from .._sizes import Number, apply, is_number
from .._table import form
from .._values import Value
from .slicing import sliced

_MODES = ("constant", "reflect", "edge", "wrap")


@form("Pad")
def pad(g: Any, node: Any, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    """Adds elements before and after axes; negative numbers remove elements."""
    mode = node.attr("mode", "constant")
    if mode not in _MODES:
        raise refuse(f"mode '{mode}' is not supported", node=node.proto)
    if node.version < 11:
        widths = node.attr("pads") or node.attr("paddings")
        value = g.constant(node.attr("value", 0.0), "value", x.dtype)
    elif isinstance(g.numbers(pads), Runtime) or (axes is not None and isinstance(g.numbers(axes), Runtime)):
        return (_pad_by_values(g, node, x, _widths_of_all_axes(g, node, x, pads, axes), mode, value),)
    else:
        widths = g.numbers(pads)
    places = list(range(x.ndim)) if axes is None else [axis_of(int(axis), x.ndim, node) for axis in g.numbers(axes)]
    before: list[Any] = [0] * x.ndim
    after: list[Any] = [0] * x.ndim
    for number, axis in enumerate(places):
        before[axis], after[axis] = widths[number], widths[number + len(places)]
    return (padded(g, x, before, after, mode, value, node.name),)


def padded(g: Any, x: Value, before: list[Any], after: list[Any], mode: str, value: Value | None, name: str) -> Value:
    """x with numbers or Sizes of elements before and after each axis; negative ones remove elements."""
    x = _cropped(g, x, before, after)
    before, after = ([_limited(width) for width in widths] for widths in (before, after))
    if all(is_number(width) and width == 0 for width in (*before, *after)):
        return x
    if mode == "constant":
        return _with_constant(
            g, x, value, lambda data, fill, name: _pad(g, data, before, after, "constant", fill, name), name
        )
    open_sizes = not all(is_number(width) for width in (*before, *after))
    if mode == "edge" or (mode == "reflect" and (open_sizes or _is_narrow(x, before, after))):
        return _pad(g, x, before, after, mode, 0, name)
    if not open_sizes:
        made: Value = g.emit("_npi_pad", [x], name=name, mode=mode, pad_width=_text(before, after))
        return made
    for axis, (less, more) in enumerate(zip(before, after, strict=True)):  # wraps once at most
        if not (is_number(less) and is_number(more) and less == more == 0):
            first = apply("-", g.dim(x, axis), less)
            x = join(g, [cut(g, x, axis, first, None), x, cut(g, x, axis, 0, more)], axis, name)
    return x


def _pad(g: Any, x: Value, before: list[Any], after: list[Any], mode: str, fill: float, name: str) -> Value:
    widths = tuple(width for pair in zip(before, after, strict=True) for width in pair)
    made: Value = g.emit("Pad", [x], name=name, mode=mode, pad_width=widths, constant_value=fill)
    return made


def _text(before: list[Any], after: list[Any]) -> str:
    return str(tuple((int(less), int(more)) for less, more in zip(before, after, strict=True)))


def _is_narrow(x: Value, before: list[Any], after: list[Any]) -> bool:
    """Whether the mirror image of the tensor covers the padding, so that one operator makes it."""
    return all(
        size is None or max(less, more) < size or max(less, more) == 0
        for size, less, more in zip(x.shape, before, after, strict=True)
    )


def _limited(width: Number) -> Number:
    if is_number(width):
        return max(int(width), 0)  # type: ignore[arg-type]
    return width if is_never_negative(width) else apply("max", width, 0)


def _cropped(g: Any, x: Value, before: list[Number], after: list[Number]) -> Value:
    """x without the elements that negative widths remove."""
    begin = [_removed(width) for width in before]
    end = [_removed(width) for width in after]
    for axis, gone in enumerate(end):
        if gone is not None:
            end[axis] = apply("neg", gone) if is_number(gone) else apply("-", g.dim(x, axis), gone)
    return sliced(g, x, begin, end, [None] * x.ndim, "")


def _removed(width: Number) -> Number | None:
    """The number of elements that a width removes; None: none."""
    if is_never_negative(width) or (is_number(width) and width >= 0):  # type: ignore[operator]
        return None
    gone = apply("max", apply("neg", width), 0)
    return int(gone) if is_number(gone) else gone  # type: ignore[arg-type]


def _with_constant(g: Any, x: Value, value: Value | None, pad_with: Any, name: str) -> Value:
    """Pads with a constant. A computed number is written where a mask, which is padded with 0, is 0."""
    if value is None or value.is_const:
        fill = 0 if value is None else value.const.reshape(-1)[0].item()  # type: ignore[union-attr]
        return pad_with(x, int(fill) if isinstance(fill, bool) else fill, name)
    inside = g.emit("ones_like", [g.cast(x, "bool")])
    value = g.reshape(value, ())
    made: Value = g.emit("_npi_where", [pad_with(inside, 0, ""), pad_with(x, 0, ""), value], name=name)
    return made


# -------------------------------------------------------------------------------- widths that are known at run time
def _widths_of_all_axes(g: Any, node: Any, x: Value, pads: Value, axes: Value | None) -> Value:
    """The widths before all axes, then those after them, as one tensor."""
    if axes is None:
        return pads
    count = axes.fixed(0)
    if count is None:
        raise refuse("the number of axes is not known while the file is imported", node=node.proto)
    places = g.emit("_npi_mod_scalar", [g.cast(axes, "int64")], scalar=x.ndim)
    places = join(g, [places, g.emit("_plus_scalar", [places], scalar=x.ndim)], 0)
    nothing = g.constant(np.zeros(2 * x.ndim), "widths", pads.dtype)
    made: Value = g.emit("_contrib_index_copy", [nothing, places, pads])
    return made


def _pad_by_values(g: Any, node: Any, x: Value, widths: Value, mode: str, value: Value | None) -> Value:
    """Removes elements where widths are negative, then adds elements where they are positive."""
    removed = g.emit("_maximum_scalar", [g.emit("negative", [widths])], scalar=0)
    begin = cut(g, removed, 0, 0, x.ndim)
    end = calculate(g, "-", g.cast(g.shape_of(x), widths.dtype), cut(g, removed, 0, x.ndim, None))
    shapes = run_time_shapes(g, x.ndim)
    x = g.emit("slice", [x], begin=Runtime(begin), end=Runtime(end), shapes=shapes)
    added = g.emit("_maximum_scalar", [widths], scalar=0)
    pairs = tuple((Runtime(added, axis), Runtime(added, axis + x.ndim)) for axis in range(x.ndim))
    shapes = run_time_shapes(g, x.ndim)

    def pad_with(data: Value, fill: float, name: str) -> Value:
        made: Value = g.emit(
            "_npi_pad", [data], name=name, mode=mode, pad_width=pairs, constant_value=fill, shapes=shapes
        )
        return made

    return _with_constant(g, x, value if mode == "constant" else None, pad_with, node.name)


@form("CenterCropPad")
def center_crop_pad(g: Any, node: Any, x: Any, target: Any) -> Any:
    """Axes cut, or padded with zeros, to given sizes on both sides equally; the end gets the odd element."""
    axes = [axis_of(axis, x.ndim, node) for axis in node.attr("axes", range(x.ndim))]
    sizes = g.numbers(target)
    if isinstance(sizes, Runtime):
        own = g.emit("take", [g.shape_of(x), g.constant(np.array(axes), "axes")], axis=0)
        room = calculate(g, "-", g.cast(target, "int64"), own)
        before = g.emit("_div_scalar", [room], scalar=2)  # a division of integers rounds toward zero
        pads = join(g, [before, calculate(g, "-", room, before)], 0)
        widths = _widths_of_all_axes(g, node, x, pads, g.constant(np.array(axes), "axes"))
        return (_pad_by_values(g, node, x, widths, "constant", None),)
    lead: list[Any] = [0] * x.ndim
    trail: list[Any] = [0] * x.ndim
    for axis, size in zip(axes, sizes, strict=True):
        room = apply("-", size, g.dim(x, axis))
        lead[axis] = apply("trunc", apply("/", room, 2))
        trail[axis] = apply("-", room, lead[axis])
    return (padded(g, x, lead, trail, "constant", None, node.name),)


__all__ = ["center_crop_pad", "pad", "padded"]
