"""Convolutions: plain, transposed and deformable."""

from __future__ import annotations

from typing import Any

from .._arithmetic import calculate, cut, join, total
from .._builder import Runtime
from .._errors import refuse, wrong
from .._sizes import Number, Size, apply
from .._table import form
from .._values import Value
from .._windows import Windows, pad, pad_unequal, windows_of

__all__ = ["convolve"]


def convolve(
    g: Any, name: str, x: Value, weight: Value, bias: Value | None, windows: Windows, groups: int = 1
) -> Value:
    """A convolution; bias may be None."""
    x, width = pad_unequal(g, x, windows)
    return g.emit(
        "Convolution",
        [x, weight, *([bias] if bias is not None else [])],
        name=name,
        kernel=tuple(windows.kernel),
        stride=tuple(windows.stride),
        dilate=tuple(windows.dilate),
        pad=width,
        num_filter=g.dim(weight, 0),
        num_group=groups,
        no_bias=bias is None,
    )


def _kernel_of(g: Any, weight: Value) -> list[Number]:
    return g.dims(weight)[2:]


@form("Conv")
def conv(g: Any, node: Any, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """Convolution has one width of padding per axis: other paddings are added before it."""
    windows = windows_of(g, node, x, _kernel_of(g, weight))
    return convolve(g, node.name, x, weight, bias, windows, node.attr("group", 1))


@form("ConvTranspose")
def conv_transpose(g: Any, node: Any, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """Deconvolution cuts its padding off both sides, and makes the output longer by less than a stride.

    Where the end loses more than the start, the rest is cut off afterwards; where the output gets longer by more, zeros
    are added to the image.
    """
    windows = windows_of(g, node, x, _kernel_of(g, weight))
    axes = range(x.ndim - 2)
    longer = node.attr("output_padding") or [0] * len(axes)
    cuts = [_cuts(g, node, x, windows, axis, longer[axis]) for axis in axes]
    more = [
        apply("+", before, apply("-", longer[axis], after)) for axis, (before, after) in zip(axes, cuts, strict=True)
    ]
    positive = [apply("max", size, 0) for size in more]
    in_front = [apply("-", 0, apply("//", apply("min", cuts[axis][0], 0), windows.stride[axis])) for axis in axes]
    behind = [apply("//", positive[axis], windows.stride[axis]) for axis in axes]
    x = pad(g, x, in_front, behind)
    groups = node.attr("group", 1)
    y = g.emit(
        "Deconvolution",
        [x, weight, *([bias] if bias is not None else [])],
        name=node.name,
        kernel=tuple(windows.kernel),
        stride=tuple(windows.stride),
        dilate=tuple(windows.dilate),
        pad=tuple(apply("+", cuts[axis][0], apply("*", in_front[axis], windows.stride[axis])) for axis in axes),
        adj=tuple(apply("%", positive[axis], windows.stride[axis]) for axis in axes),
        num_filter=apply("*", g.dim(weight, 1), groups),
        num_group=groups,
        no_bias=bias is None,
    )
    for axis, size in zip(axes, more, strict=True):
        if isinstance(size, Size) or size < 0:
            end = apply("+", g.dim(y, axis + 2), apply("min", size, 0))
            y = cut(g, y, axis + 2, 0, end, node.name)
    return y


def _cuts(g: Any, node: Any, x: Value, windows: Windows, axis: int, longer: int) -> tuple[Number, Number]:
    """The number of elements that the start and the end of an axis of the output lose; negative if they gain some."""
    sizes, mode = node.attr("output_shape"), node.attr("auto_pad") or "NOTSET"
    if not sizes and mode not in ("SAME_UPPER", "SAME_LOWER"):
        return windows.before[axis], windows.after[axis]
    size, stride = g.dim(x, axis + 2), windows.stride[axis]
    whole = apply("+", apply("+", apply("*", apply("-", size, 1), stride), longer), windows.reach(axis))
    target = sizes[axis - x.ndim + 2] if sizes else apply("*", size, stride)
    whole = apply("-", whole, target)
    if not sizes:
        whole = apply("max", whole, 0)
    half = apply("//", whole, 2)
    rest = apply("-", whole, half)
    return (half, rest) if mode == "SAME_UPPER" else (rest, half)


@form("DeformConv")
def deform_conv(
    g: Any,
    node: Any,
    x: Value,
    weight: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
) -> Value:
    """The modulated operator, as it surrounds images with zeros; without a mask all factors are 1."""
    if x.ndim != 4:
        raise refuse(f"images of {x.ndim - 2} axes are not supported", because="the kernel has two", node=node.proto)
    windows = windows_of(g, node, x, _kernel_of(g, weight))
    x, width = pad_unequal(g, x, windows)
    groups = node.attr("offset_group", 1)
    if mask is None:
        taps = total("*", [*windows.kernel, groups])
        mask = g.emit("ones_like", [cut(g, offset, 1, 0, taps)])
    return g.emit(
        "_contrib_ModulatedDeformableConvolution",
        [x, offset, mask, weight, *([bias] if bias is not None else [])],
        name=node.name,
        kernel=tuple(windows.kernel),
        stride=tuple(windows.stride),
        dilate=tuple(windows.dilate),
        pad=width,
        num_filter=g.dim(weight, 0),
        num_group=node.attr("group", 1),
        num_deformable_group=groups,
        no_bias=bias is None,
    )


@form("CausalConvWithState")
def causal_conv(
    g: Any, node: Any, x: Value, weight: Value, bias: Value | None = None, past: Value | None = None
) -> tuple[Value, Value]:
    """A convolution of each channel that reads the elements before; the last ones are the state."""
    kernel = g.dim(weight, 2)
    before = apply("-", kernel, 1)
    if past is None:
        whole = pad(g, x, [before], [0])
    else:
        whole = join(g, [past, x], 2)
    windows = Windows([kernel], [1], [1], [0], [0])
    y = convolve(g, node.name, whole, weight, bias, windows, g.dim(weight, 0))
    activation = node.attr("activation", "none")
    if activation in ("silu", "swish"):
        y = calculate(g, "*", y, g.emit("sigmoid", [y]))
    elif activation != "none":
        raise wrong(f"activation is '{activation}'", node=node.proto)
    length = g.dim(whole, 2)
    return y, cut(g, whole, 2, apply("-", length, before), length, "state")


@form("Col2Im")
def col2im(g: Any, node: Any, x: Value, sizes: Value, kernel: Value) -> Value:
    """The operator; a padding whose sides differ is a part of the image at first, and is cut off."""
    image, block = g.items(sizes), g.items(kernel)
    count = len(image)
    if not 1 <= count <= 3:
        raise refuse(f"images of {count} axes are not supported", because="the kernel has 1 to 3 axes", node=node.proto)
    pads = node.attr("pads") or [0] * (2 * count)
    before, after = pads[:count], pads[count:]
    computed = any(isinstance(item, Runtime) for item in (*image, *block))
    if computed and before != after:
        raise refuse("sizes are computed from data, and the sides of the padding differ", node=node.proto)
    whole = image
    if before != after:
        whole = [apply("+", size, one + other) for size, one, other in zip(image, before, after, strict=True)]
    shapes = None
    if computed:
        known = [
            g.data_size()
            if isinstance(size, Runtime)
            else size.trials
            if isinstance(size, Size)
            else [size] * g.num_trials
            for size in image
        ]
        shapes = tuple(zip([s[0] for s in x.shapes], g.data_size(), *known, strict=True))
    y = g.emit(
        "col2im",
        [x],
        name=node.name,
        shapes=shapes,
        output_size=tuple(whole),
        kernel=tuple(block),
        stride=tuple(node.attr("strides") or [1] * count),
        dilate=tuple(node.attr("dilations") or [1] * count),
        pad=tuple(before if before == after else [0] * count),
    )
    if before != after:
        for axis, (begin, size) in enumerate(zip(before, image, strict=True)):
            y = cut(g, y, axis + 2, begin, apply("+", size, begin))
    return y
