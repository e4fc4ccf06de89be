"""Shapes: the same elements in another shape, axes, repetition and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._export_table import export_form
from .._export_values import Number, Open, Tensor, product


@export_form("Reshape", "_np_reshape", "_npx_reshape", "Flatten", "reshape_like", "expand_dims", "squeeze")
def _reshape(g: Any, node: Any) -> Tensor:
    return g.reshape(node.inputs[0], node.dims())


@export_form("transpose")
def _transpose(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    return g.transpose(x, node.params["axes"] or range(x.ndim - 1, -1, -1))


@export_form("SwapAxis")
def _swap_axis(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    order = list(range(x.ndim))
    a, b = (node.params[name] % x.ndim for name in ("dim1", "dim2"))
    order[a], order[b] = order[b], order[a]
    return g.transpose(x, order)


@export_form("broadcast_axis", "broadcast_to", "broadcast_like")
def _broadcast(g: Any, node: Any) -> Tensor:
    return g.expand(node.inputs[0], node.dims())


@export_form("_spread")
def _spread(g: Any, node: Any) -> Tensor:
    x, gone = node.inputs[0], node.params["axis"] or ()
    sizes = node.dims()
    if x.ndim != len(sizes):
        axes = {axis % len(sizes) for axis in gone} or set(range(len(sizes)))
        x = g.reshape(x, [1 if axis in axes else size for axis, size in enumerate(sizes)])
    return g.expand(x, sizes)


@export_form("Concat", "_rnn_param_concat")
def _concat(g: Any, node: Any) -> Tensor:
    return g.concat(node.inputs, node.params["dim"])


@export_form("stack")
def _stack(g: Any, node: Any) -> Tensor:
    axis = node.params["axis"] % node.outputs[0].ndim
    return g.concat([g.unsqueeze(x, [axis]) for x in node.inputs], axis)


# -------------------------------------------------------------------------------------------------------------- parts
@export_form("SliceChannel", "_split_v2")
def _split(g: Any, node: Any) -> Sequence[Tensor]:
    x, axis = node.inputs[0], node.params["axis"] % node.inputs[0].ndim
    squeezes = node.params["squeeze_axis"]
    sizes = [1 if squeezes else spec.numbers[axis] for spec in node.outputs]
    if not any(isinstance(size, Open) for size in sizes):
        parts = list(g.split(x, axis, sizes))
    elif len(sizes) > 1 and g.opset >= 18 and all(size == sizes[0] for size in sizes):
        parts = list(g.emit("Split", x, axis=axis, num_outputs=len(sizes), outputs=len(sizes)))
    else:
        made = g.emit("Split", x, g.vector(_part_sizes(x.dim(axis), sizes)), axis=axis, outputs=len(sizes))
        parts = list(made) if len(sizes) > 1 else [x]
    return [g.squeeze(part, [axis]) for part in parts] if squeezes else parts


def _part_sizes(whole: Number, sizes: list[Number]) -> list[Number]:
    """Sizes of parts, as parts of the whole."""
    if all(size == sizes[0] for size in sizes):
        return [whole // len(sizes)] * len(sizes)
    open_parts = [i for i, size in enumerate(sizes) if isinstance(size, Open)]
    if len(open_parts) == 1:
        place = open_parts[0]
        sizes[place] = whole - sum(int(size) for i, size in enumerate(sizes) if i != place)
    return sizes


@export_form("slice_axis")
def _slice_axis(g: Any, node: Any) -> Tensor:
    p = node.params
    return g.slice(node.inputs[0], p["axis"], p["begin"], p["end"], 1, node.outputs[0])


def _ranges(p: Any) -> tuple[list[int], list[Any], list[Any], list[Any]]:
    count = len(p["begin"])
    steps = [*(p["step"] or ()), *[None] * count][:count]
    return list(range(count)), list(p["begin"]), list(p["end"]), [1 if step is None else step for step in steps]


@export_form("slice")
def _slice(g: Any, node: Any) -> Tensor:
    return g.slices(node.inputs[0], *_ranges(node.params), spec=node.outputs[0])


@export_form("slice_like")
def _slice_like(g: Any, node: Any) -> Tensor:
    x, like = node.inputs
    axes = [axis % x.ndim for axis in node.params["axes"]] or list(range(x.ndim))
    axes = [axis for axis in axes if x.dim(axis) != like.dim(axis)]
    ends = [like.dim(axis) for axis in axes]
    return g.slices(x, axes, [0] * len(axes), ends, [1] * len(axes), node.outputs[0])


@export_form("Crop")
def _crop(g: Any, node: Any) -> Tensor:
    x, p = node.inputs[0], node.params
    sizes = node.dims()[2:]
    if p["center_crop"]:
        begins = [(x.dim(axis) - size) // 2 for axis, size in zip((2, 3), sizes, strict=True)]
    else:
        begins = list(p["offset"])
    ends = [begin + size for begin, size in zip(begins, sizes, strict=True)]
    return g.slices(x, [2, 3], begins, ends, [1, 1], node.outputs[0])


@export_form("reverse")
def _reverse(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    axes = sorted({axis % x.ndim for axis in node.params["axis"]})
    none = [None] * len(axes)
    return g.slices(x, axes, none, none, [-1] * len(axes), x.spec)


# ---------------------------------------------------------------------------------------------------------- assignment
def _resolved(bound: Any, size: Number, default: Number) -> Number:
    """A bound of a slice, counted from the front and limited to the axis."""
    if bound is None:
        return default
    if isinstance(bound, Open) or isinstance(size, Open):
        counted = bound + size if not isinstance(bound, Open) and bound < 0 else bound
        limited = counted.minimum(size) if isinstance(counted, Open) else size.minimum(counted)  # type: ignore[union-attr]
        return limited.maximum(0) if isinstance(limited, Open) else max(limited, 0)
    return max(0, min(bound + size if bound < 0 else bound, size))


def assign_slice(g: Any, x: Tensor, value: Tensor, axis: int, ranges: list[tuple[Any, Any, int]]) -> Tensor:
    """x with the slice that `ranges` select on the axes from `axis` on replaced by value."""
    while ranges and ranges[0][0] is None and ranges[0][1] is None and ranges[0][2] == 1:
        ranges, axis = ranges[1:], axis + 1
    if not ranges:
        return value
    begin, end, step = ranges[0]
    size = x.dim(axis)
    if len(ranges) > 1:
        value = assign_slice(g, g.slice(x, axis, begin, end, step), value, axis + 1, ranges[1:])
    if step == 1:
        first = _resolved(begin, size, 0)
        last = _resolved(end, size, size)
        parts = [g.slice(x, axis, 0, first)] if first != 0 else []
        parts.append(value)
        if last != size:
            parts.append(g.slice(x, axis, last, None))
        return g.concat(parts, axis)
    places = g.slice(g.iota(size), 0, begin, end, step)
    places = g.reshape(places, [places.dim(0), *[1] * (x.ndim - axis - 1)])
    return g.emit("ScatterElements", x, g.expand(places, value.dims), value, axis=axis, spec=x.spec)


def _selected(g: Any, node: Any) -> tuple[list[tuple[Any, Any, int]], list[Number]]:
    axes, begins, ends, steps = _ranges(node.params)
    part = g.slices(node.inputs[0], axes, begins, ends, steps)
    return list(zip(begins, ends, steps, strict=True)), part.dims


@export_form("_slice_assign")
def _slice_assign(g: Any, node: Any) -> Tensor:
    x, value = node.inputs
    _, begins, ends, steps = _ranges(node.params)
    if not value.spec.has_elements:
        return x
    ranges = list(zip(begins, ends, steps, strict=True))
    return assign_slice(g, x, value, 0, ranges)


@export_form("_slice_assign_scalar")
def _slice_assign_scalar(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    ranges, sizes = _selected(g, node)
    if any(not isinstance(size, Open) and size == 0 for size in sizes):
        return x
    return assign_slice(g, x, g.full(sizes, node.params["scalar"], x.dtype), 0, ranges)


# ---------------------------------------------------------------------------------------------------------- repetition
@export_form("repeat")
def _repeat(g: Any, node: Any) -> Tensor:
    x, p = node.inputs[0], node.params
    if p["axis"] is None:
        x = g.flat(x)
    axis = (p["axis"] or 0) % x.ndim
    if x.dim(axis) == 1:
        return g.expand(x, [*x.dims[:axis], p["repeats"], *x.dims[axis + 1 :]])
    sizes = x.dims
    apart = g.unsqueeze(x, [axis + 1])
    apart = g.expand(apart, [*sizes[: axis + 1], p["repeats"], *sizes[axis + 1 :]])
    return g.reshape(apart, [*sizes[:axis], sizes[axis] * p["repeats"], *sizes[axis + 1 :]])


@export_form("tile")
def _tile(g: Any, node: Any) -> Tensor:
    x, repeats = node.inputs[0], list(node.params["reps"])
    rank = max(x.ndim, len(repeats))
    x = g.unsqueeze(x, range(rank - x.ndim))
    repeats = [1] * (rank - len(repeats)) + repeats
    if all(count == 1 for count in repeats):
        return x
    return g.emit("Tile", x, g.vector(repeats), spec=node.outputs[0])


@export_form("Pad")
def _pad(g: Any, node: Any) -> Tensor:
    p = node.params
    widths = p["pad_width"]
    return g.pad(node.inputs[0], widths[::2], widths[1::2], p["mode"], p["constant_value"])


@export_form("depth_to_space")
def _depth_to_space(g: Any, node: Any) -> Tensor:
    return g.emit("DepthToSpace", node.inputs[0], blocksize=node.params["block_size"], mode="DCR")


@export_form("space_to_depth")
def _space_to_depth(g: Any, node: Any) -> Tensor:
    return g.emit("SpaceToDepth", node.inputs[0], blocksize=node.params["block_size"])


# --------------------------------------------------------------------------------------------------------------- sizes
@export_form("shape_array")
def _shape_array(g: Any, node: Any) -> Tensor:
    return g.shape_of(node.inputs[0])


@export_form("size_array")
def _size_array(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    count = product(x.dims)
    if not isinstance(count, Open) or sum(isinstance(size, Open) for size in x.dims) == 1:
        return g.size(count)
    return g.reshape(g.emit("Size", x), [1])


# ----------------------------------------------------------------------------------------------------------- diagonals
def on_diagonal(g: Any, rows: Number, columns: Number, offset: int) -> Tensor:
    """A matrix of bool that is true where column = row + offset."""
    if not isinstance(rows, Open) and not isinstance(columns, Open):
        return g.const(np.eye(rows, columns, offset, dtype=bool))
    down = g.unsqueeze(g.iota(rows), [1])
    across = g.unsqueeze(g.iota(columns), [0])
    return g.emit("Equal", g.emit("Add", down, offset) if offset else down, across)


def make_diagonal(g: Any, vectors: Tensor, offset: int) -> Tensor:
    """Square matrices with the vectors of the last axis on a diagonal, and zeros."""
    rank = vectors.ndim
    before, after = [0] * rank, [0] * rank
    (after if offset >= 0 else before)[-1] = abs(offset)
    values = g.pad(vectors, before, after)
    size = values.dim(-1)
    return g.where(on_diagonal(g, size, size, offset), g.unsqueeze(values, [rank]), 0)


def _length(rows: Number, columns: Number, offset: int) -> Number:
    """The length of a diagonal."""
    down, across = rows + min(offset, 0), columns - max(offset, 0)
    if not isinstance(down, Open):
        down, across = across, down
    if not isinstance(down, Open):
        return max(0, min(down, across))  # type: ignore[type-var]
    shorter = down.minimum(across)
    return shorter.maximum(0) if isinstance(shorter, Open) else max(0, shorter)


def take_diagonal(g: Any, x: Tensor, offset: int) -> Tensor:
    """The diagonals of the matrices in the last two axes."""
    rows, columns = x.dims[-2:]
    count = _length(rows, columns, offset)
    flat = g.reshape(x, [*x.dims[:-2], rows * columns])
    first = offset if offset >= 0 else columns * -offset
    last = first + (count - 1) * (columns + 1) + 1
    return g.slice(flat, flat.ndim - 1, first, last, columns + 1)


@export_form("diag")
def _diag(g: Any, node: Any) -> Tensor:
    x, p = node.inputs[0], node.params
    if x.ndim == 1:
        return make_diagonal(g, x, p["k"])
    a, b = p["axis1"] % x.ndim, p["axis2"] % x.ndim
    x = g.transpose(x, [*[axis for axis in range(x.ndim) if axis not in (a, b)], a, b])
    return take_diagonal(g, x, p["k"])


# ------------------------------------------------------------------------------------------------------------- columns
def _windows(g: Any, p: Any, channels: Number, dtype: str) -> tuple[Tensor, dict[str, Any]]:
    """Kernels that copy one pixel each, and the attributes of a convolution with them, one group per channel."""
    kernel = [int(size) for size in p["kernel"]]
    rank, taps = len(kernel), int(np.prod(kernel))
    pixels = np.tile(np.eye(taps).reshape(taps, 1, *kernel), (int(channels), *[1] * (rank + 1)))
    attributes = {
        "group": int(channels), "kernel_shape": kernel, "strides": list(p["stride"]) or [1] * rank,
        "dilations": list(p["dilate"]) or [1] * rank, "pads": (list(p["pad"]) or [0] * rank) * 2,
    }  # fmt: skip
    return g.const(pixels, dtype), attributes


@export_form("im2col")
def _im2col(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    kernels, attributes = _windows(g, node.params, x.dim(1), x.dtype)
    return g.reshape(g.emit("Conv", x, kernels, **attributes), node.dims())


@export_form("col2im")
def _col2im(g: Any, node: Any) -> Tensor:
    """A transposed convolution with kernels that copy one pixel each adds the columns."""
    x, p = node.inputs[0], node.params
    sizes = node.dims()[2:]
    kernels, attributes = _windows(g, p, node.outputs[0].fixed(1), x.dtype)
    parts = zip(
        sizes,
        *(attributes[name] for name in ("kernel_shape", "strides", "dilations")),
        attributes["pads"],
        strict=False,
    )
    steps = [(size + 2 * pad - dilation * (taps - 1) - 1) // stride + 1 for size, taps, stride, dilation, pad in parts]
    image = g.reshape(x, [*x.dims[:2], *steps])
    missing = [
        int(size + 2 * pad - (stride * (step - 1) + dilation * (taps - 1) + 1))
        for size, step, taps, stride, dilation, pad in zip(
            sizes, steps, *(attributes[name] for name in ("kernel_shape", "strides", "dilations")), attributes["pads"],
            strict=False,
        )
    ]  # fmt: skip
    return g.emit("ConvTranspose", image, kernels, output_padding=missing, **attributes)
