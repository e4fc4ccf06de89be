"""Images that are read at points of a grid, and such grids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .._arithmetic import calculate, count, cut, join, permute, terms, total
from .._errors import wrong
from .._resampling import far_weight, near_weight
from .._sizes import Number, Size, apply
from .._table import form
from .._values import Value

_CUBIC = -0.75


@form("GridSample")
def grid_sample(g: Any, node: Any, x: Value, grid: Value) -> Value:
    """BilinearSampler, whose grid has other units; other modes and numbers of axes gather rows of channels."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.attr("mode", "linear"), node.attr("mode", "linear"))
    padding, aligned = node.attr("padding_mode", "zeros"), bool(node.attr("align_corners", 0))
    if mode not in ("linear", "nearest", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise wrong(f"mode is '{mode}', padding_mode is '{padding}'", node=node.proto)
    dtype = "float64" if "float64" in (x.dtype, grid.dtype) else "float32"
    image, points = g.cast(x, dtype), g.cast(grid, dtype)
    sizes = g.dims(x)[2:]
    at = [_place(g, points, axis, sizes, mode, padding, aligned) for axis in range(len(sizes))]
    if mode == "linear" and len(sizes) == 2:
        y = _bilinear(g, image, points, at, sizes, padding == "zeros", aligned)
    else:
        y = _gathered(g, image, at, mode, padding, aligned)
    return g.cast(y, x.dtype, node.name)


def _coordinates(g: Any, points: Value, axis: int, number: int) -> Value:
    """The coordinates along an axis; the last axis of the image comes first."""
    column = number - 1 - axis
    return g.emit("squeeze", [cut(g, points, points.ndim - 1, column, column + 1)], axis=(points.ndim - 1,))


def _place(g: Any, points: Value, axis: int, sizes: Sequence[Number], mode: str, padding: str, aligned: bool) -> Value:
    """Coordinates along an axis in pixels; those outside are moved to the border, or reflected at it."""
    size = sizes[axis]
    at = calculate(g, "+", _coordinates(g, points, axis, len(sizes)), 1)
    if aligned:
        at = calculate(g, "*", calculate(g, "/", at, 2), apply("-", size, 1))
    else:
        at = calculate(g, "/", calculate(g, "-", calculate(g, "*", at, size), 1), 2)
    if mode == "nearest":
        at = g.emit("_npi_around", [at])
    if padding == "zeros" or mode == "cubic":  # cubic: the pixels around are moved, one by one
        return at
    return _clipped(g, _reflected(g, at, size, aligned) if padding == "reflection" else at, size)


def _borders(size: Number, aligned: bool) -> tuple[float, Number]:
    return (0.0, apply("-", size, 1)) if aligned else (-0.5, apply("-", size, 0.5))


def _clipped(g: Any, at: Value, size: Number) -> Value:
    return calculate(g, "min", calculate(g, "max", at, 0), apply("-", size, 1))


def _reflected(g: Any, at: Value, size: Number, aligned: bool) -> Value:
    low, high = _borders(size, aligned)
    length = apply("max", apply("-", high, low), 1e-6)
    beyond = g.emit("abs", [calculate(g, "-", at, low)])
    beyond = calculate(g, "%", beyond, apply("*", length, 2))
    back = calculate(g, "-", apply("*", length, 2), beyond)
    return calculate(g, "+", calculate(g, "min", beyond, back), low)


def _bilinear(
    g: Any, image: Value, points: Value, at: Sequence[Value], sizes: Sequence[Number], zeros: bool, aligned: bool
) -> Value:
    """BilinearSampler: -1 and 1 are the centers of the pixels at the corners."""
    if zeros and aligned:
        grid = points
        return g.emit("BilinearSampler", [image, permute(g, grid, (0, 3, 1, 2))])
    lines = []
    if zeros and any(isinstance(size, Size) or size == 1 for size in sizes):  # an axis of one pixel has no such units
        image = g.emit("Pad", [image], mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 1, 1))
        at = [calculate(g, "+", place, 1) for place in at]
        sizes = [apply("+", size, 2) for size in sizes]
    for place, size in zip(at, sizes, strict=True):
        half = apply("max", apply("/", apply("-", size, 1), 2), 0.5)
        lines.append(calculate(g, "-", calculate(g, "/", place, half), 1))
    grid = g.emit("stack", [lines[1], lines[0]], axis=1, num_args=2)
    return g.emit("BilinearSampler", [image, grid])


# -------------------------------------------------------------------------------------------------- gathering of rows
def _gathered(g: Any, image: Value, at: Sequence[Value], mode: str, padding: str, aligned: bool) -> Value:
    """The sum over the pixels around each point. Pixels are rows of channels; a row of zeros is the outside."""
    sizes = g.dims(image)[2:]
    pixels = total("*", sizes)
    rows = g.reshape(permute(g, image, (0, *range(2, image.ndim), 1)), [-1, g.dim(image, 1)])
    outside = apply("*", g.dim(image, 0), pixels)
    if padding == "zeros":
        row = g.emit("zeros_like", [cut(g, rows, 0, 0, 1)])
        rows = join(g, [rows, row], 0)
    examples = count(g, g.dim(image, 0), "int64", [-1, *[1] * len(sizes)])
    start = calculate(g, "*", examples, pixels)
    taps = [_taps(g, place, size, mode, padding, aligned) for place, size in zip(at, sizes, strict=True)]
    y = None
    for chosen in itertools.product(*taps):
        place: Any = start
        step: Number = 1
        for (spot, _, _), size in zip(reversed(chosen), reversed(sizes), strict=True):
            place = calculate(g, "+", place, calculate(g, "*", spot, step))
            step = apply("*", step, size)
        if padding == "zeros":
            place = _outside(g, place, [flag for _, flag, _ in chosen if flag is not None], outside)
        found = g.emit("take", [rows, place], axis=0, mode="clip")
        weights = [weight for _, _, weight in chosen if weight is not None]
        for weight in weights:
            found = calculate(g, "*", found, g.emit("expand_dims", [weight], axis=weight.ndim))
        y = found if y is None else calculate(g, "+", y, found)
    assert y is not None
    return permute(g, y, (0, y.ndim - 1, *range(1, y.ndim - 1)))


def _outside(g: Any, place: Value, flags: Sequence[Value], outside: Number) -> Value:
    flag = flags[0]
    for other in flags[1:]:
        flag = calculate(g, "*", flag, other)
    flag = g.cast(flag, "int64")
    away = calculate(g, "*", calculate(g, "-", 1, flag), outside)
    return calculate(g, "+", calculate(g, "*", place, flag), away)


def _taps(
    g: Any, at: Value, size: Number, mode: str, padding: str, aligned: bool
) -> list[tuple[Value, Value | None, Value | None]]:
    """Pixels along an axis that a point is read from: index, whether it is inside, and weight."""
    if mode == "nearest":
        return [(*_spot(g, at, size, padding, aligned), None)]
    low = g.emit("floor", [at])
    part = calculate(g, "-", at, low)
    if mode == "linear":
        weights, first = [calculate(g, "-", 1, part), part], 0
    else:
        rest = calculate(g, "-", 1, part)
        ends = [calculate(g, "+", distance, 1) for distance in (part, rest)]
        weights, first = (
            [
                far_weight(g, ends[0], _CUBIC),
                near_weight(g, part, _CUBIC),
                near_weight(g, rest, _CUBIC),
                far_weight(g, ends[1], _CUBIC),
            ],
            -1,
        )
    return [
        (*_spot(g, calculate(g, "+", low, first + index), size, padding, aligned), weight)
        for index, weight in enumerate(weights)
    ]


def _spot(g: Any, spot: Value, size: Number, padding: str, aligned: bool) -> tuple[Value, Value | None]:
    """The index of a pixel, and whether it is inside."""
    is_inside = None
    if padding == "zeros":
        is_inside = calculate(g, "*", calculate(g, "<=", 0, spot), calculate(g, "<", spot, size))
    elif padding == "reflection":
        spot = _reflected(g, spot, size, aligned)
    return g.cast(_clipped(g, spot, size), "int64"), is_inside


# --------------------------------------------------------------------------------------------------------------- grids
@form("AffineGrid")
def affine_grid(g: Any, node: Any, theta: Value, size: Value) -> Value:
    """The sum of the columns of the matrices by the coordinates of a regular grid."""
    sizes = terms(g, size)[2:]
    number = len(sizes)
    examples = g.dim(theta, 0)

    def column(index: int) -> Value:
        return g.reshape(cut(g, theta, 2, index, index + 1), [examples, *[1] * number, number])

    y = column(number)
    for axis, length in enumerate(sizes):
        shape = [-1 if i == axis + 1 else 1 for i in range(number + 2)]
        line = _regular(g, length, theta.dtype, bool(node.attr("align_corners", 0)), shape)
        y = calculate(g, "+", calculate(g, "*", line, column(number - 1 - axis)), y)
    return y


def _regular(g: Any, length: Any, dtype: str, aligned: bool, shape: Sequence[int]) -> Value:
    """Coordinates from -1 to 1: of pixels' centers, or such that the first and last center are at -1 and 1."""
    line = count(g, length, "float64")
    if aligned:
        steps = calculate(g, "max", calculate(g, "-", length, 1), 1e-9)
        line = calculate(g, "-", calculate(g, "/", calculate(g, "*", line, 2), steps), 1)
    else:
        line = calculate(g, "-", calculate(g, "/", calculate(g, "+", calculate(g, "*", line, 2), 1), length), 1)
    return g.reshape(g.cast(line, dtype), shape)
