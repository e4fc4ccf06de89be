"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._export_table import export_form
from .._export_values import Number, Open, Tensor


def over_axes(value: Sequence[int], rank: int, default: int) -> list[int]:
    """A parameter with one number per spatial axis."""
    return [int(size) for size in value][:rank] if value else [default] * rank


def _is_channels_last(p: Any) -> bool:
    return bool(p.get("layout")) and str(p["layout"]).endswith("C")


def channels_first(g: Any, x: Tensor) -> Tensor:
    """Images with the channels last as images with the channels second."""
    return g.move_axis(x, -1, 1)


def channels_last(g: Any, x: Tensor) -> Tensor:
    """The opposite of channels_first."""
    return g.move_axis(x, 1, -1)


def _window(p: Any, rank: int) -> dict[str, list[int]]:
    return {
        "kernel_shape": [int(size) for size in p["kernel"]],
        "strides": over_axes(p["stride"], rank, 1),
        "dilations": over_axes(p["dilate"], rank, 1),
    }


@export_form("Convolution")
def _convolution(g: Any, node: Any) -> Tensor:
    p, (x, weight, *bias) = node.params, node.inputs
    rank = len(p["kernel"])
    last = _is_channels_last(p)
    if last:
        x, weight = channels_first(g, x), channels_first(g, weight)
    pads = over_axes(p["pad"], rank, 0) * 2
    made = g.emit("Conv", x, weight, *bias, group=int(p["num_group"]), pads=pads, **_window(p, rank))
    if not last:
        return made
    made.spec = _first(node.outputs[0])
    return channels_last(g, made)


def _first(spec: Any) -> Any:
    """The spec of images with the channels last, with the channels second."""
    from .._export_values import Spec

    return Spec([(shape[0], shape[-1], *shape[1:-1]) for shape in spec.shapes], spec.dtype)


@export_form("Deconvolution")
def _deconvolution(g: Any, node: Any) -> Tensor:
    """Output beyond the padding is output_padding; less than the padding at the end is less padding there."""
    p, (x, weight, *bias) = node.params, node.inputs
    rank = len(p["kernel"])
    last = _is_channels_last(p)
    if last:
        x, weight = channels_first(g, x), channels_first(g, weight)
    out = _first(node.outputs[0]) if last else node.outputs[0]
    window = _window(p, rank)
    begins, more = over_axes(p["pad"], rank, 0), over_axes(p["adj"], rank, 0)
    if p["target_shape"] and any(p["target_shape"]):
        begins, more = _target_pads(x, out, window)
    ends = [begin - extra for begin, extra in zip(begins, more, strict=True)]
    padding = [max(0, -end) for end in ends]
    ends = [max(0, end) for end in ends]
    attributes = {"output_padding": padding} if any(padding) else {}
    made = g.emit(
        "ConvTranspose", x, weight, *bias, group=int(p["num_group"]), pads=[*begins, *ends], **window, **attributes
    )
    if not last:
        return made
    made.spec = out
    return channels_last(g, made)


def _target_pads(x: Tensor, out: Any, window: dict[str, list[int]]) -> tuple[list[int], list[int]]:
    """The padding at the start, and how much less it is at the end, that give the size of the output."""
    begins, more = [], []
    for axis, (kernel, stride, dilation) in enumerate(zip(*window.values(), strict=True), 2):
        total = [
            (a[axis] - 1) * stride + dilation * (kernel - 1) + 1 - b[axis]
            for a, b in zip(x.shapes, out.shapes, strict=True)
        ]
        if len(set(total)) != 1:
            from .._export_errors import does_not_follow

            raise does_not_follow("the padding for target_shape", total)
        begins.append((total[0] + 1) // 2)
        more.append(total[0] % 2)
    return begins, more


# ------------------------------------------------------------------------------------------------------------- pooling
class Windows:
    """Sizes of pooling windows along the spatial axes, and the padding before and after an image."""

    def __init__(self, x: Tensor, out: Any, p: Any) -> None:
        rank = x.ndim - 2
        self.kernel = [int(size) for size in p["kernel"]]
        self.stride = over_axes(p["stride"], rank, 1)
        self.pad = over_axes(p["pad"], rank, 0)
        self.convention = p["pooling_convention"]
        # Elements after the image that the last windows cover; negative: elements that no window covers.
        self.ends: list[Number] = [
            (out.numbers[axis] - 1) * stride + kernel - x.dim(axis) - pad
            for axis, (kernel, stride, pad) in enumerate(zip(self.kernel, self.stride, self.pad, strict=True), 2)
        ]
        if self.convention == "valid":
            self.ends = list(self.pad)
        self.ends = [end.maximum(0) if isinstance(end, Open) else max(0, end) for end in self.ends]

    @property
    def fit(self) -> bool:
        """Whether ONNX's operators take the padding: it is less than the kernel."""
        sizes = zip(self.pad, self.ends, self.kernel, strict=True)
        return all(not isinstance(end, Open) and max(begin, end) < kernel for begin, end, kernel in sizes)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of ONNX's operators, without padding."""
        return {"kernel_shape": self.kernel, "strides": self.stride}

    def padded(self, g: Any, x: Tensor, value: float, more: Sequence[Number] | None = None) -> Tensor:
        """The image with the padding as elements."""
        ends = self.ends if more is None else more
        return g.pad(x, [0, 0, *self.pad], [0, 0, *ends], "constant", value)


def _max_pool(g: Any, x: Tensor, w: Windows) -> Tensor:
    # Runtimes leave out windows that start behind the image.
    inside = all(pad + stride <= kernel for pad, stride, kernel in zip(w.pad, w.stride, w.kernel, strict=True))
    if w.convention == "full" and any(isinstance(end, Open) for end in w.ends) and inside:
        return g.emit("MaxPool", x, pads=w.pad * 2, ceil_mode=1, **w.attributes)
    if not w.fit:
        least = -np.inf if x.dtype.startswith(("float", "bfloat")) else np.iinfo(x.dtype).min
        return g.emit("MaxPool", w.padded(g, x, least), **w.attributes)
    return g.emit("MaxPool", x, pads=[*w.pad, *w.ends], **w.attributes)


def _average_pool(g: Any, x: Tensor, w: Windows, counts_padding: bool) -> Tensor:
    """Averages; those that count the padding do not count elements behind it, which convention full may cover."""
    within = all(not isinstance(end, Open) and end <= pad for end, pad in zip(w.ends, w.pad, strict=True))
    if w.fit and (not counts_padding or within):
        include = {"count_include_pad": 1} if counts_padding and any(w.pad) else {}
        return g.emit("AveragePool", x, pads=[*w.pad, *w.ends], **include, **w.attributes)
    ones = g.full([1, 1, *x.dims[2:]], 1, "float32")
    if counts_padding:  # the padding counts as elements, what follows it does not
        ones = g.pad(ones, [0, 0, *w.pad], [0, 0, *w.pad], "constant", 1)
        rest = [end - pad for end, pad in zip(w.ends, w.pad, strict=True)]
        none = [0] * len(w.pad)
        rest = [size.maximum(0) if isinstance(size, Open) else max(0, size) for size in rest]
        ones = g.pad(ones, [0, 0, *none], [0, 0, *rest])
        image = (
            w.padded(g, w.padded(g, x, 0, w.pad), 0, rest)
            if not any(w.pad)
            else g.pad(w.padded(g, x, 0, w.pad), [0, 0, *none], [0, 0, *rest])
        )
    else:
        ones, image = w.padded(g, ones, 0), w.padded(g, x, 0)
    total = g.emit("AveragePool", image, **w.attributes)
    share = g.cast(g.emit("AveragePool", ones, **w.attributes), total.dtype)
    return g.emit("Div", total, share)


def _sum_pool(g: Any, x: Tensor, w: Windows) -> Tensor:
    if w.fit:
        include = {"count_include_pad": 1} if any((*w.pad, *w.ends)) else {}
        mean = g.emit("AveragePool", x, pads=[*w.pad, *w.ends], **include, **w.attributes)
    else:
        mean = g.emit("AveragePool", w.padded(g, x, 0), **w.attributes)
    return g.emit("Mul", mean, float(np.prod(w.kernel)))


def _lp(g: Any, x: Tensor, power: int, add: Any) -> Tensor:
    """(sum of x^p)^(1/p)."""
    from .elementwise import cube_root

    if power == 1:
        return add(x)
    square = g.emit("Mul", x, x)
    total = add(square if power == 2 else g.emit("Mul", square, x))
    return g.emit("Sqrt", total) if power == 2 else cube_root(g, total)


def _global_pool(g: Any, x: Tensor, p: Any) -> Tensor:
    kind = p["pool_type"]
    if kind == "max":
        return g.emit("GlobalMaxPool", x)
    if kind == "avg":
        return g.emit("GlobalAveragePool", x)
    axes = range(2, x.ndim)

    def add(values: Tensor) -> Tensor:
        return g.reduce("Sum", values, axes, keepdims=True)

    return add(x) if kind == "sum" else _lp(g, x, p["p_value"], add)


@export_form("Pooling")
def _pooling(g: Any, node: Any) -> Tensor:
    x, p = node.inputs[0], node.params
    last = _is_channels_last(p)
    out = _first(node.outputs[0]) if last else node.outputs[0]
    if last:
        x = channels_first(g, x)
    made = pooled(g, x, out, p)
    if not last:
        return made
    made.spec = out
    return channels_last(g, made)


def pooled(g: Any, x: Tensor, out: Any, p: Any) -> Tensor:
    """Pooling of images with the channels second."""
    if p["global_pool"]:
        return _global_pool(g, x, p)
    w = Windows(x, out, p)
    if p["pool_type"] == "max":
        return _max_pool(g, x, w)
    if p["pool_type"] == "avg":
        return _average_pool(g, x, w, p.get("count_include_pad") is not False)
    if p["pool_type"] == "sum":
        return _sum_pool(g, x, w)
    return _lp(g, x, p["p_value"], lambda values: _sum_pool(g, values, w))
