"""Images in other sizes, and images read at points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .._export_errors import does_not_follow, refuse_use
from .._export_table import export_form
from .._export_values import Number, Open, Spec, Tensor


def resized(g: Any, x: Tensor, sizes: Sequence[Number], mode: str, coordinates: str, **attributes: Any) -> Tensor:
    """Images of other sizes by ONNX's Resize."""
    spec = Spec([tuple(s.trials[t] if isinstance(s, Open) else s for s in sizes) for t in range(g.num_trials)], x.dtype)
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, **attributes}
    if g.opset >= 18:  # only the spatial axes
        axes = list(range(2, x.ndim))
        return g.emit("Resize", x, None, None, g.vector(sizes[2:]), axes=axes, spec=spec, **attributes)
    return g.emit("Resize", x, None, None, g.vector(sizes), spec=spec, **attributes)


@export_form("_contrib_BilinearResize2D")
def _bilinear_resize(g: Any, node: Any) -> Tensor:
    p = node.params
    coordinates = "align_corners" if p["align_corners"] else "half_pixel"
    sizes = node.dims()
    for axis, given, scale in ((2, "height", "scale_height"), (3, "width", "scale_width")):
        if isinstance(sizes[axis], Open) and p["mode"] != "like":
            sizes[axis] = _new_size(p["mode"], node.inputs[0].dim(axis), p[given], p[scale])
    return resized(g, node.inputs[0], sizes, "linear", coordinates)


def _new_size(mode: str, size: Number, given: Any, scale: float | None) -> Number:
    """The size of a resized axis, from an open one."""
    odd = size % 2
    if mode in ("to_even_down", "to_even_up"):
        return size - odd if mode == "to_even_down" else size + odd
    if mode in ("to_odd_down", "to_odd_up"):
        return size - 1 + odd if mode == "to_odd_down" else size + 1 - odd
    if scale is None:
        return given
    factor = Fraction(scale)
    if mode == "odd_scale":
        return (size - odd) * factor.numerator // factor.denominator + odd
    return size * factor.numerator // factor.denominator


def _repeated(g: Any, x: Tensor, down: int, across: int) -> Tensor:
    """Every pixel as a rectangle of equal ones."""
    if (down, across) == (1, 1):
        return x
    if x.dtype == "float64":
        n, c, height, width = x.dims
        apart = g.expand(g.unsqueeze(x, [3, 5]), [n, c, height, down, width, across])
        return g.reshape(apart, [n, c, height * down, width * across])
    scales = g.const([1, 1, down, across], "float32")
    spec = Spec([(*s[:2], s[2] * down, s[3] * across) for s in x.shapes], x.dtype)
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g.emit("Resize", x, None, scales, spec=spec, **attributes)


def _factor(x: Tensor, out: Spec, axis: int) -> int:
    factors = {big[axis] // small[axis] for big, small in zip(out.shapes, x.shapes, strict=True)}
    if len(factors) != 1:
        raise does_not_follow("the factor of an image", sorted(factors))
    return factors.pop()


@export_form("UpSampling")
def _upsampling(g: Any, node: Any) -> Tensor:
    p = node.params
    scale = int(p["scale"])
    if p["sample_type"] == "bilinear":
        x, weight = node.inputs
        pad = math.ceil((scale - 1) / 2)
        attributes = {"group": int(weight.dim(0)), "strides": [scale] * 2, "pads": [pad] * 4}
        return g.emit("ConvTranspose", x, weight, **attributes)
    parts = [_repeated(g, x, *(_factor(x, node.outputs[0], axis) for axis in (2, 3))) for x in node.inputs]
    if p["multi_input_mode"] == "concat" or len(parts) == 1:
        return g.concat(parts, 1)
    total = parts[0]
    for part in parts[1:]:
        total = g.emit("Add", total, part)
    return total


# ------------------------------------------------------------------------------------------------- averages of windows
def _averages(old: int, new: int) -> np.ndarray:
    """The matrix of averages of `new` windows that cover an axis."""
    matrix = np.zeros((new, old))
    for k in range(new):
        first, last = k * old // new, -(-(k + 1) * old // new)
        matrix[k, first:last] = 1 / (last - first)
    return matrix


def _averages_of(g: Any, old: Number, new: Number, dtype: str) -> Tensor:
    if not isinstance(old, Open) and not isinstance(new, Open):
        return g.const(_averages(old, new), dtype)
    size, count = g.number(old, "int64"), g.number(new, "int64")
    rows, columns = g.unsqueeze(g.iota(new), [1]), g.unsqueeze(g.iota(old), [0])
    first = g.emit("Div", g.emit("Mul", rows, size), count)
    grown = g.emit("Add", g.emit("Mul", g.emit("Add", rows, 1), size), g.emit("Sub", count, 1))
    last = g.emit("Div", grown, count)
    inside = g.emit("And", g.emit("GreaterOrEqual", columns, first), g.emit("Less", columns, last))
    return g.emit("Div", g.cast(inside, dtype), g.cast(g.emit("Sub", last, first), dtype))


@export_form("_contrib_AdaptiveAvgPooling2D")
def _adaptive_average(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    sizes = node.dims()[2:]
    if list(sizes) == [1, 1]:
        return g.emit("GlobalAveragePool", x)
    if list(sizes) == x.dims[2:]:
        return x
    old = x.dims[2:]
    if not any(isinstance(size, Open) for size in (*old, *sizes)) and all(
        a % b == 0 for a, b in zip(old, sizes, strict=True)
    ):
        kernel = [a // b for a, b in zip(old, sizes, strict=True)]
        return g.emit("AveragePool", x, kernel_shape=kernel, strides=kernel)
    down = _averages_of(g, old[0], sizes[0], x.dtype)
    across = g.swap_last(_averages_of(g, old[1], sizes[1], x.dtype))
    return g.matmul(g.matmul(down, x), across)


# -------------------------------------------------------------------------------------------------------------- points
def sampled(g: Any, node: Any, image: Tensor, points: Tensor) -> Tensor:
    """Images read at points (batch, height, width, 2) with x first, from -1 to 1; zero outside."""
    if g.opset < 16:
        raise refuse_use(node, f"opset {g.opset} has no GridSample", fix="export with opset_version=16 or more")
    mode = "linear" if g.opset >= 20 else "bilinear"
    return g.emit("GridSample", image, points, mode=mode, padding_mode="zeros", align_corners=1)


@export_form("BilinearSampler")
def _bilinear_sampler(g: Any, node: Any) -> Tensor:
    image, grid = node.inputs
    return sampled(g, node, image, g.transpose(grid, [0, 2, 3, 1]))


def _regular(size: int) -> np.ndarray:
    return np.linspace(-1, 1, size) if size > 1 else np.zeros(1)


def _affine_grid(g: Any, matrices: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """(batch, 2, height * width) points, and the grid (3, height * width) before the transformation."""
    y, x = np.meshgrid(_regular(height), _regular(width), indexing="ij")
    grid = g.const(np.stack([x.ravel(), y.ravel(), np.ones(height * width)]), matrices.dtype)
    rows = g.reshape(matrices, [matrices.dim(0), 2, 3])
    return g.matmul(rows, grid), grid


@export_form("GridGenerator")
def _grid_generator(g: Any, node: Any) -> list[Tensor]:
    x, p = node.inputs[0], node.params
    if p["transform_type"] == "affine":
        points, grid = _affine_grid(g, x, *(int(size) for size in p["target_shape"]))
        return [g.reshape(points, node.dims()), grid]
    if not node.outputs[0].is_fixed and any(node.outputs[0].fixed(axis) is None for axis in (2, 3)):
        raise does_not_follow("the grid of pixels", node.outputs[0].shapes)
    height, width = (int(size) for size in node.dims()[2:])
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    pixels = g.const(np.stack([columns, rows]), x.dtype)
    halves = g.const(np.array([max(size - 1, 1) / 2 for size in (width, height)]).reshape(2, 1, 1), x.dtype)
    return [g.emit("Sub", g.emit("Div", g.emit("Add", x, pixels), halves), 1), pixels]


@export_form("SpatialTransformer")
def _spatial_transformer(g: Any, node: Any) -> Tensor:
    image, location = node.inputs
    size = [int(number) for number in node.params["target_shape"]]
    if not any(size):
        size = [int(number) for number in node.dims()[2:]]
    points, _ = _affine_grid(g, location, *size)
    points = g.transpose(g.reshape(points, [location.dim(0), 2, *size]), [0, 2, 3, 1])
    return sampled(g, node, image, points)


# ---------------------------------------------------------------------------------------------------------- correlation
@export_form("Correlation")
def _correlation(g: Any, node: Any) -> Tensor:
    """Mean products, or distances, of an image and each displaced other one, averaged over patches."""
    first, second = node.inputs
    p = node.params
    kernel, reach, step = (int(p[name]) for name in ("kernel_size", "max_displacement", "stride2"))
    border, stride, pad = reach + (kernel - 1) // 2, int(p["stride1"]), int(p["pad_size"])
    around = [0, 0, pad, pad]
    first, second = (
        g.pad(first, around, around),
        g.pad(second, [0, 0, pad + kernel, pad + kernel], [0, 0, pad + kernel, pad + kernel]),
    )
    radius = reach // step
    ends = [first.dim(axis) - border + (kernel - 1) // 2 for axis in (2, 3)]
    begin = border - (kernel - 1) // 2
    center = g.slices(first, [2, 3], [begin, begin], ends, [1, 1])
    parts = []
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            moves = [dy * step + kernel, dx * step + kernel]
            begins = [begin + move for move in moves]
            displaced = g.slices(
                second, [2, 3], begins, [end + move for end, move in zip(ends, moves, strict=True)], [1, 1]
            )
            pairs = (
                g.emit("Mul", center, displaced)
                if p["is_multiply"]
                else g.emit("Abs", g.emit("Sub", center, displaced))
            )
            parts.append(g.reduce("Mean", pairs, [1], keepdims=True))
    maps = g.concat(parts, 1)
    if kernel == 1 and stride == 1:
        return maps
    return g.emit("AveragePool", maps, kernel_shape=[kernel] * 2, strides=[stride] * 2)
