"""Pooling of regions of interest."""

from __future__ import annotations

from typing import Any

from .._arithmetic import calculate, count, cut, join, permute
from .._errors import refuse, wrong
from .._sizes import Number, apply
from .._table import form
from .._values import Value


@form("MaxRoiPool")
def max_roi_pool(g: Any, node: Any, x: Value, rois: Value) -> Value:
    """ROIPooling: maxima of windows whose corners are rounded. They are scaled before, with the rounding of others."""
    scale = node.attr("spatial_scale", 1.0)
    rois = rois if scale == 1 else _scaled(g, rois, scale)
    shape = tuple(node.attr("pooled_shape"))
    return g.emit("ROIPooling", [x, rois], name=node.name, pooled_size=shape, spatial_scale=1.0)


def _scaled(g: Any, rois: Value, scale: float) -> Value:
    """Corners in the scale of the image."""
    corners = calculate(g, "*", cut(g, rois, 1, 1, 5), scale)
    return join(g, [cut(g, rois, 1, 0, 1), corners], 1)


@form("RoiAlign")
def roi_align(g: Any, node: Any, x: Value, rois: Value, images: Value) -> Value:
    """ROIAlign for averages. Maxima, of the four weighted pixels around each point, are written out."""
    shape = (node.attr("output_height", 1), node.attr("output_width", 1))
    points, scale = node.attr("sampling_ratio", 0), node.attr("spatial_scale", 1.0)
    shifted = node.version >= 16 and node.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    mode = node.attr("mode", "avg")
    if mode == "max":
        return _maxima(g, node, x, rois, images, shifted)
    if mode != "avg":
        raise wrong(f"mode is '{mode}'", node=node.proto)
    regions = join(g, [g.reshape(g.cast(images, rois.dtype), [-1, 1]), rois], 1)
    if scale > 1:
        regions, scale = _scaled(g, regions, scale), 1.0
    return g.emit(
        "_contrib_ROIAlign",
        [x, regions],
        name=node.name,
        pooled_size=shape,
        spatial_scale=scale,
        sample_ratio=points or -1,
        aligned=shifted,
    )


def _maxima(g: Any, node: Any, x: Value, rois: Value, images: Value, shifted: bool) -> Value:
    height, width = node.attr("output_height", 1), node.attr("output_width", 1)
    points = node.attr("sampling_ratio", 0)
    if points <= 0:
        raise refuse(
            "mode max with sampling_ratio 0",
            because="the number of points would depend on the sizes of the regions",
            fix="set sampling_ratio",
            node=node.proto,
        )
    scaled = calculate(g, "*", rois, node.attr("spatial_scale", 1.0))
    if shifted:
        scaled = calculate(g, "-", scaled, 0.5)
    rows = _line(g, scaled, 1, height, points, g.dim(x, 2), shifted)
    columns = _line(g, scaled, 0, width, points, g.dim(x, 3), shifted)
    pixels = g.reshape(permute(g, x, (0, 2, 3, 1)), [-1, g.dim(x, 1)])
    image = apply("*", g.dim(x, 2), g.dim(x, 3))
    start = calculate(g, "*", g.reshape(g.cast(images, "int64"), [-1, 1, 1]), image)
    best = None
    for row, row_weight in rows:
        for column, column_weight in columns:
            line = calculate(g, "*", g.emit("expand_dims", [row], axis=2), g.dim(x, 3))
            place = calculate(g, "+", calculate(g, "+", line, g.emit("expand_dims", [column], axis=1)), start)
            weight = calculate(
                g, "*", g.emit("expand_dims", [row_weight], axis=2), g.emit("expand_dims", [column_weight], axis=1)
            )
            found = g.emit("take", [pixels, place], axis=0, mode="clip")
            found = calculate(g, "*", found, g.emit("expand_dims", [weight], axis=3))
            best = found if best is None else calculate(g, "max", best, found)
    assert best is not None
    windows = g.reshape(best, [g.dim(rois, 0), height, points, width, points, g.dim(x, 1)])
    return permute(g, g.emit("max", [windows], axis=(2, 4)), (0, 3, 1, 2), node.name)


def _line(
    g: Any, rois: Value, first: int, windows: int, points: int, size: Number, shifted: bool
) -> list[tuple[Value, Value]]:
    """The points of all windows along an axis: indices and weights of the pixels before and behind them."""
    begin, end = cut(g, rois, 1, first, first + 1), cut(g, rois, 1, first + 2, first + 3)
    length = calculate(g, "-", end, begin)
    if not shifted:
        length = calculate(g, "max", length, 1)
    step = calculate(g, "/", length, windows * points)
    line = calculate(g, "+", count(g, windows * points, rois.dtype, [1, -1]), 0.5)
    at = calculate(g, "+", calculate(g, "*", line, step), begin)
    inside = calculate(g, "*", calculate(g, "<=", -1, at), calculate(g, "<=", at, size))
    last = apply("-", size, 1)
    at = calculate(g, "min", calculate(g, "max", at, 0), last)
    low = g.emit("floor", [at])
    part = calculate(g, "-", at, low)
    high = calculate(g, "min", calculate(g, "+", low, 1), last)
    rest = calculate(g, "-", 1, part)
    return [
        (g.cast(low, "int64"), calculate(g, "*", rest, inside)),
        (g.cast(high, "int64"), calculate(g, "*", part, inside)),
    ]
