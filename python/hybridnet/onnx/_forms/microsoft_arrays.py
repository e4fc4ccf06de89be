"""Operators on arrays of ONNX Runtime's domain, most of which became standard operators later."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arithmetic import calculate, cut
from .._errors import refuse
from .._sizes import Number, apply
from .._standard import renamed, standard
from .._table import form
from .._values import Value

_DOMAIN = "com.microsoft"


def _as_standard(op_type: str) -> None:
    @form(op_type, domain=_DOMAIN)
    def make(g: Any, node: Any, *inputs: Any) -> Any:
        return g.apply(renamed(g, node, op_type), list(inputs))


for _name in ("Trilu", "GatherND"):
    _as_standard(_name)


@form("Range", domain=_DOMAIN)
def sequence(g: Any, node: Any, start: Value, limit: Value, delta: Value | None = None) -> Value:
    """The standard's Range; the step is 1 if it is absent."""
    delta = g.constant(1, dtype=start.dtype) if delta is None else delta
    return standard(g, "Range", [_scalar(g, value) for value in (start, limit, delta)], node.name)


def _scalar(g: Any, value: Value) -> Value:
    return value if value.ndim == 0 else standard(g, "Squeeze", [value], value.name)


@form("Pad", domain=_DOMAIN)
def pad(g: Any, node: Any, x: Value, widths: Value, value: Value | None = None) -> Value:
    """The standard's Pad; the widths may be a row of a matrix."""
    if widths.ndim == 2:
        widths = standard(g, "Squeeze", [widths, g.constant([0])], widths.name)
    if value is not None:
        value = _scalar(g, value)
    return standard(g, "Pad", [x, widths, value], node.name, mode=node.attr("mode", "constant"))


@form("ExpandDims", domain=_DOMAIN)
def expand_dims(g: Any, node: Any, x: Value, axis: Value) -> Value:
    """A new axis of size 1."""
    return standard(g, "Unsqueeze", [x, g.constant([int(_number(node, g.item(axis), "axis"))])], node.name)


def _number(node: Any, item: Any, name: str) -> float:
    if not isinstance(item, (int, float)):
        raise refuse(f"{name} is not a constant", node=node.proto)
    return item


@form("Inverse", domain=_DOMAIN)
def inverse(g: Any, node: Any, x: Value) -> Value:
    return g.emit("_npi_inv", [x], name=node.name)


@form("Unique", domain=_DOMAIN)
def unique(g: Any, node: Any, x: Value) -> Any:
    """The values in order of their first appearance, the places of the elements among them, and counts."""
    values, _, places, counts = standard(g, "Unique", [x], node.name, outputs=4, sorted=0)
    return values, places, counts


# -------------------------------------------------------------------------------------------------------- image crops
@form("CropAndResize", domain=_DOMAIN)
def crop_and_resize(g: Any, node: Any, x: Value, boxes: Value, examples: Value, sizes: Value) -> Value:
    """Parts of images in one size. boxes: (count, 4), y1, x1, y2, x2; 0 and 1 are the first and the last pixel."""
    targets = [int(_number(node, item, "crop_size")) for item in g.items(sizes)]
    channels = g.dim(x, 1)
    rows = g.reshape(g.emit("transpose", [x], axes=(0, 2, 3, 1)), [-1, channels])
    places, inside = [], None
    for axis in range(2):
        last = apply("-", g.dim(x, axis + 2), 1)
        place = _places(g, boxes, axis, targets[axis], last)
        kept = _between(g, place, last)
        inside = kept if inside is None else g.emit("_npi_bitwise_and", [inside, kept])
        places.append(calculate(g, "min", calculate(g, "max", place, 0.0), last))
    first = g.reshape(g.cast(examples, "int64"), [-1, 1, 1])

    def pixels(y: Value, column: Value) -> Value:
        """The pixels at integer positions: (count, height, width, channels)."""
        index = calculate(g, "+", calculate(g, "*", first, g.dim(x, 2)), g.cast(y, "int64"))
        index = calculate(g, "+", calculate(g, "*", index, g.dim(x, 3)), g.cast(column, "int64"))
        return g.emit("take", [rows, index], axis=0, mode="clip")

    if node.attr("mode", "bilinear") == "nearest":
        made = pixels(*(g.emit("floor", [calculate(g, "+", place, 0.5)]) for place in places))
    else:
        made = _between_pixels(g, places, pixels)
    outside = node.attr("extrapolation_value", 0.0)
    kept = g.emit("expand_dims", [inside], axis=3)
    made = g.emit("_npi_where_rscalar", [kept, made], scalar=outside)
    return g.emit("transpose", [made], name=node.name, axes=(0, 3, 1, 2))


def _places(g: Any, boxes: Value, axis: int, target: int, last: Number) -> Value:
    """The coordinates of the pixels that the crops read: (count, target, 1) or (count, 1, target)."""
    low, high = (cut(g, boxes, 1, axis + offset, axis + offset + 1) for offset in (0, 2))
    if target > 1:
        steps = g.constant(np.arange(target, dtype=boxes.dtype)[None], "steps", trainable=False)
        step = calculate(g, "/", calculate(g, "*", calculate(g, "-", high, low), last), target - 1)
        made = calculate(g, "+", calculate(g, "*", low, last), calculate(g, "*", steps, step))
    else:
        made = calculate(g, "*", calculate(g, "*", calculate(g, "+", low, high), 0.5), last)
    return g.emit("expand_dims", [made], axis=2 - axis)


def _between(g: Any, place: Value, last: Number) -> Value:
    sides = (calculate(g, "<=", 0.0, place), calculate(g, "<=", place, last))
    return g.emit("_npi_bitwise_and", [g.cast(side, "bool") for side in sides])


def _between_pixels(g: Any, places: list[Value], pixels: Any) -> Value:
    """Weighted means of the four pixels around each place."""
    (top, bottom, down), (left, right, across) = (
        (low, g.emit("ceil", [place]), calculate(g, "-", place, low))
        for place, low in ((place, g.emit("floor", [place])) for place in places)
    )
    down, across = (g.emit("expand_dims", [part], axis=3) for part in (down, across))
    lines = []
    for y in (top, bottom):
        one, other = pixels(y, left), pixels(y, right)
        lines.append(calculate(g, "+", one, calculate(g, "*", calculate(g, "-", other, one), across)))
    return calculate(g, "+", lines[0], calculate(g, "*", calculate(g, "-", lines[1], lines[0]), down))


__all__ = ["crop_and_resize", "expand_dims", "inverse", "pad", "sequence", "unique"]
