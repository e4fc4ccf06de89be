"""Windows that slide over images: their kernels, strides and padding, for convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ._errors import refuse, wrong
from ._sizes import Number, apply, is_number
from ._values import Value

__all__ = ["Windows", "pad", "pad_unequal", "windows_of"]


@dataclass
class Windows:
    """One item per axis of the image. `before` and `after` are the widths of the padding."""

    kernel: list[Number]
    stride: list[int]
    dilate: list[int]
    before: list[Number]
    after: list[Number]

    def reach(self, axis: int) -> Number:
        """The elements from the first to the last one that a window reads."""
        return apply("+", apply("*", apply("-", self.kernel[axis], 1), self.dilate[axis]), 1)

    def places(self, axis: int, size: Number) -> Number:
        """The number of windows within the padded image."""
        room = apply("-", self.padded(axis, size), self.reach(axis))
        return apply("+", apply("//", room, self.stride[axis]), 1)

    def padded(self, axis: int, size: Number) -> Number:
        """The size of the padded image."""
        return apply("+", apply("+", size, self.before[axis]), self.after[axis])

    @property
    def is_dilated(self) -> bool:
        """Whether windows have gaps."""
        return any(distance != 1 for distance in self.dilate)


def windows_of(g: Any, node: Any, x: Value, kernel: Sequence[Number] | None = None) -> Windows:
    """Reads kernel_shape, strides, dilations, pads and auto_pad. kernel: instead of kernel_shape."""
    count = x.ndim - 2
    kernel = list(kernel if kernel is not None else node.attr("kernel_shape", []))
    if not 1 <= count <= 3:
        raise refuse(f"images of {count} axes are not supported", because="windows have 1 to 3 axes", node=node.proto)
    found = Windows(
        kernel,
        node.attr("strides") or [1] * count,
        node.attr("dilations") or [1] * count,
        *_padding(g, node, x, count),
    )
    for name in ("kernel", "stride", "dilate", "before", "after"):
        if len(getattr(found, name)) != count:
            raise wrong(f"{name} has {len(getattr(found, name))} numbers, the image {count} axes", node=node.proto)
    mode = node.attr("auto_pad") or "NOTSET"
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        for axis in range(count):
            less, more = _same(found, axis, g.dim(x, axis + 2))
            found.before[axis], found.after[axis] = (less, more) if mode == "SAME_UPPER" else (more, less)
    elif mode not in ("NOTSET", "VALID"):
        raise wrong(f"auto_pad is '{mode}'", node=node.proto)
    return found


def _padding(g: Any, node: Any, x: Value, count: int) -> tuple[list[Number], list[Number]]:
    pads = node.attr("pads") or [0] * (2 * count)
    if (node.attr("auto_pad") or "NOTSET") != "NOTSET":
        pads = [0] * (2 * count)
    return list(pads[: len(pads) // 2]), list(pads[len(pads) // 2 :])


def _same(windows: Windows, axis: int, size: Number) -> tuple[Number, Number]:
    """The smaller and the larger side of a padding that gives ceil(size / stride) windows."""
    stride, reach = windows.stride[axis], windows.reach(axis)
    if stride == 1:
        whole = apply("-", reach, 1)
    else:
        places = apply("//", apply("+", size, stride - 1), stride)
        whole = apply("-", apply("+", apply("*", apply("-", places, 1), stride), reach), size)
        whole = apply("max", whole, 0)
    less = apply("//", whole, 2)
    return less, apply("-", whole, less)


def pad(
    g: Any, x: Value, before: Sequence[Number], after: Sequence[Number], value: float = 0.0, first_axis: int = 2
) -> Value:
    """Adds elements around axes `first_axis` and later."""
    if all(is_number(width) and width == 0 for width in (*before, *after)):
        return x
    widths: list[Number] = [0] * (2 * first_axis)
    for sides in zip(before, after, strict=True):
        widths += sides
    return g.emit("Pad", [x], mode="constant", pad_width=tuple(widths), constant_value=value)


def pad_unequal(g: Any, x: Value, windows: Windows, value: float = 0.0) -> tuple[Value, tuple[int, ...]]:
    """Pads axes that have unequal sides, or open sizes of the padding; returns the widths that are left, per axis."""
    equal = [
        is_number(one) and is_number(other) and one == other
        for one, other in zip(windows.before, windows.after, strict=True)
    ]
    x = pad(
        g,
        x,
        [0 if same else width for same, width in zip(equal, windows.before, strict=True)],
        [0 if same else width for same, width in zip(equal, windows.after, strict=True)],
        value,
    )
    return x, tuple(int(width) if same else 0 for same, width in zip(equal, windows.before, strict=True))  # type: ignore[arg-type]
