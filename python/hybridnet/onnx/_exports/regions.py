"""Regions of images, and convolutions at displaced points."""

from __future__ import annotations

from typing import Any

from .._export_errors import refuse_use
from .._export_table import export_form, no_form
from .._export_values import Spec, Tensor
from .convolutions import over_axes
from .shapes import take_diagonal


def _images_of(g: Any, x: Tensor, regions: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of the images of regions, limited to those that exist; and whether they do."""
    column = g.slice(regions, 1, 0, 1)
    numbers = g.cast(g.squeeze(column, [1]), "int64")
    near = g.emit("Clip", numbers, 0, g.number(x.dim(0) - 1, "int64"))
    exists = g.emit("And", g.emit("Equal", numbers, near), g.emit("Greater", g.squeeze(column, [1]), -1.0))
    return near, g.unsqueeze(exists, [1, 2, 3])


@export_form("_contrib_ROIAlign")
def _roi_align(g: Any, node: Any) -> Tensor:
    x, regions = node.inputs
    p = node.params
    height, width = (int(size) for size in p["pooled_size"])
    numbers, exists = _images_of(g, x, regions)
    boxes = g.slice(regions, 1, 1, 5)
    mode = {"coordinate_transformation_mode": "half_pixel" if p["aligned"] else "output_half_pixel"}
    if g.opset < 16:
        if p["aligned"]:
            raise refuse_use(node, f"opset {g.opset} has no shift by half a pixel", fix="opset_version=16 or more")
        mode = {}
    made = g.emit(
        "RoiAlign", x, boxes, numbers, output_height=height, output_width=width, mode="avg",
        sampling_ratio=max(int(p["sample_ratio"]), 0), spatial_scale=float(p["spatial_scale"]), **mode,
    )  # fmt: skip
    made = g.where(exists, made, 0)
    if not p["position_sensitive"]:
        return made
    made.spec = Spec([(r[0], s[1], height, width) for r, s in zip(regions.shapes, x.shapes, strict=True)], x.dtype)
    bins = height * width
    pairs = g.reshape(made, [regions.dim(0), x.dim(1) // bins, bins, bins])
    return g.reshape(take_diagonal(g, pairs, 0), node.dims())


@export_form("ROIPooling")
def _roi_pooling(g: Any, node: Any) -> list[Tensor]:
    x, regions = node.inputs
    p = node.params
    if node.reads(1):
        raise refuse_use(node, "the places of the maxima are for gradients")
    size = [int(number) for number in p["pooled_size"]]
    numbers, exists = _images_of(g, x, regions)
    valid = g.concat([g.unsqueeze(g.cast(numbers, regions.dtype), [1]), g.slice(regions, 1, 1, 5)], 1)
    made = g.emit("MaxRoiPool", x, valid, pooled_shape=size, spatial_scale=float(p["spatial_scale"]))
    return [g.where(exists, made, 0)]


def _inside(g: Any, x: Tensor, offset: Tensor, p: Any) -> tuple[Tensor, Tensor]:
    """Offsets that move points behind the last pixel onto it, and a mask without points outside of the image: ONNX
    interpolates with zeros there."""
    kernel = [int(size) for size in p["kernel"]]
    strides, dilations, pads = over_axes(p["stride"], 2, 1), over_axes(p["dilate"], 2, 1), over_axes(p["pad"], 2, 0)
    taps = kernel[0] * kernel[1]
    batch, channels, *out = offset.dims
    moves = g.reshape(offset, [batch, int(channels) // (2 * taps), taps, 2, *out])
    parts, masks = [], []
    for axis in (0, 1):
        own = [tap // kernel[1] if axis == 0 else tap % kernel[1] for tap in range(taps)]
        of_tap = g.const([step * dilations[axis] - pads[axis] for step in own], x.dtype)
        places = g.emit("Mul", g.cast(g.iota(out[axis]), x.dtype), strides[axis])
        places = g.unsqueeze(places, [1] if axis == 0 else [0])
        base = g.emit("Add", g.unsqueeze(of_tap, [1, 2]), places)
        move = g.squeeze(g.slice(moves, 3, axis, axis + 1), [3])
        point = g.emit("Add", move, base)
        size = x.dim(2 + axis)
        masks.append(g.emit("And", g.emit("GreaterOrEqual", point, 0), g.emit("Less", point, g.number(size, x.dtype))))
        near = g.emit("Clip", point, 0, g.number(size - 1, x.dtype))
        parts.append(g.unsqueeze(g.emit("Sub", near, base), [3]))
    mask = g.cast(g.emit("And", *masks), x.dtype)
    return g.reshape(g.concat(parts, 3), offset.dims), g.reshape(mask, [batch, int(channels) // 2, *out])


@export_form("_contrib_DeformableConvolution", "_contrib_ModulatedDeformableConvolution")
def _deformable_convolution(g: Any, node: Any) -> Tensor:
    p = node.params
    if g.opset < 19:
        raise refuse_use(node, f"opset {g.opset} has no DeformConv", fix="export with opset_version=19 or more")
    x, offset, *rest = node.inputs
    if node.op == "_contrib_ModulatedDeformableConvolution":
        mask = rest.pop(0)
    else:
        offset, mask = _inside(g, x, offset, p)
    weight, *bias = rest
    rank = len(p["kernel"])
    return g.emit(
        "DeformConv", x, weight, offset, bias[0] if bias else None, mask,
        kernel_shape=[int(size) for size in p["kernel"]], group=int(p["num_group"]),
        offset_group=int(p["num_deformable_group"]), pads=over_axes(p["pad"], rank, 0) * 2,
        strides=over_axes(p["stride"], rank, 1), dilations=over_axes(p["dilate"], rank, 1),
    )  # fmt: skip


no_form(
    "windows at rotated or displaced places, which ONNX has no operator for",
    "_contrib_PSROIPooling _contrib_DeformablePSROIPooling _contrib_RROIAlign",
)
