"""Poolings: maxima, averages and norms of windows, of whole images, and the inverse of maxima."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arithmetic import calculate, count, cut, total
from .._builder import Runtime
from .._errors import refuse
from .._sizes import Number, Size, apply
from .._table import form
from .._values import Value
from .._windows import Windows, pad, windows_of

_INFINITY = float("inf")


@dataclass
class _Pooling:
    """A pooling that is about to be made: an image with the padding that Pooling does not add, and its windows.

    kind is "max", "sum" or "lp"; `padding` the value of padding, `convention` that of Pooling.
    """

    image: Value
    windows: Windows
    kind: str
    convention: str = "valid"
    power: int = 2
    padding: float = 0.0

    @property
    def is_plain(self) -> bool:
        """Whether Pooling can do it."""
        return not self.windows.is_dilated


def _prepare(g: Any, node: Any, x: Value, kind: str, power: int = 2, pads_image: bool = False) -> _Pooling:
    """Reads a node, and pads the image if Pooling cannot, or if that is asked for."""
    windows = windows_of(g, node, x)
    pooling = _Pooling(x, windows, kind, power=power, padding=-_INFINITY if kind == "max" else 0.0)
    axes = range(x.ndim - 2)
    equal = not pads_image and all(
        not isinstance(one, Size) and not isinstance(other, Size) and one == other
        for one, other in zip(windows.before, windows.after, strict=True)
    )
    if node.attr("ceil_mode", 0) and node.attr("auto_pad", "NOTSET") in ("NOTSET", ""):
        if equal and not windows.is_dilated and all(_full_agrees(windows, axis, g.dim(x, axis + 2)) for axis in axes):
            pooling.convention = "full"
        else:
            equal = False
            windows.after = [_rounded_up(windows, axis, g.dim(x, axis + 2)) for axis in axes]
    if not equal or windows.is_dilated:
        pooling.image = pad(g, x, windows.before, windows.after, pooling.padding)
        windows.before, windows.after = [0] * len(axes), [0] * len(axes)
    return pooling


def _full_agrees(windows: Windows, axis: int, size: Number) -> bool:
    """Whether the convention "full" makes no window that starts in the padding behind the image."""
    beyond = apply("+", apply("-", windows.after[axis], windows.reach(axis)), windows.stride[axis])
    if not isinstance(beyond, Size) and beyond <= 0:
        return True
    return not isinstance(size, Size) and _places_rounded_up(windows, axis, size) == _all_places(windows, axis, size)


def _all_places(windows: Windows, axis: int, size: Number) -> Number:
    room = apply("-", windows.padded(axis, size), windows.reach(axis))
    return apply("+", apply("//", apply("+", room, windows.stride[axis] - 1), windows.stride[axis]), 1)


def _places_rounded_up(windows: Windows, axis: int, size: Number) -> Number:
    """The number of windows of ceil_mode: the last one starts in the image or before it."""
    image = apply("+", size, windows.before[axis])
    started = apply("//", apply("+", image, windows.stride[axis] - 1), windows.stride[axis])
    return apply("min", _all_places(windows, axis, size), started)


def _rounded_up(windows: Windows, axis: int, size: Number) -> Number:
    """The padding behind the image that gives ceil_mode's number of windows."""
    places = _places_rounded_up(windows, axis, size)
    needed = apply("+", apply("*", apply("-", places, 1), windows.stride[axis]), windows.reach(axis))
    return apply("max", apply("-", apply("-", needed, size), windows.before[axis]), 0)


def _attributes(pooling: _Pooling, kind: str) -> dict[str, Any]:
    windows = pooling.windows
    made: dict[str, Any] = {
        "kernel": tuple(windows.kernel),
        "stride": tuple(windows.stride),
        "pad": tuple(windows.before),
        "pool_type": kind,
        "pooling_convention": pooling.convention,
    }
    return {**made, "p_value": pooling.power} if kind == "lp" else made


def _columns(g: Any, pooling: _Pooling) -> Value:
    """The elements of all windows: (batch, channels, elements of a window, windows)."""
    x, windows = pooling.image, pooling.windows
    columns = g.emit(
        "im2col",
        [x],
        kernel=tuple(windows.kernel),
        stride=tuple(windows.stride),
        dilate=tuple(windows.dilate),
    )
    return g.reshape(columns, [g.dim(x, 0), g.dim(x, 1), total("*", windows.kernel), -1])


def _reduced(g: Any, pooling: _Pooling, name: str) -> Value:
    """The maximum, sum or norm of every window."""
    x, kind = pooling.image, pooling.kind
    if kind == "lp" and pooling.power % 2:
        pooling.image = x = g.emit("abs", [x])
    if pooling.is_plain and (kind != "lp" or pooling.power <= 3):
        return g.emit("Pooling", [x], name=name, **_attributes(pooling, kind))
    if kind == "lp":
        powers = _Pooling(
            g.emit("_power_scalar", [x], scalar=pooling.power), pooling.windows, "sum", pooling.convention
        )
        return g.emit("_power_scalar", [_reduced(g, powers, name)], name=name, scalar=1 / pooling.power)
    columns = g.emit(kind, [_columns(g, pooling)], axis=(2,))
    return _as_image(g, columns, pooling, name)


def _as_image(g: Any, values: Value, pooling: _Pooling, name: str) -> Value:
    x, windows = pooling.image, pooling.windows
    places = [windows.places(axis, g.dim(x, axis + 2)) for axis in range(x.ndim - 2)]
    return g.reshape(values, [g.dim(x, 0), g.dim(x, 1), *places], name)


# --------------------------------------------------------------------------------------------------------------- maxima
@form("MaxPool")
def max_pool(g: Any, node: Any, x: Value) -> Any:
    """Pooling, of a copy with padding where Pooling has no such padding; of bytes in floating point."""
    dtype = x.dtype
    if dtype not in ("float32", "float64", "float16", "bfloat16"):
        x = g.cast(x, "float32")
    pooling = _prepare(g, node, x, "max", pads_image=node.wants(1))
    y = _reduced(g, pooling, node.name)
    result = g.cast(y, dtype)
    if not node.wants(1):
        return result
    before = windows_of(g, node, x).before
    places = [
        calculate(g, "-", place, width) for place, width in zip(_places_in_columns(g, pooling), before, strict=True)
    ]
    return result, _flat_places(g, x, places, bool(node.attr("storage_order", 0)))


def _places_in_columns(g: Any, pooling: _Pooling) -> list[Value]:
    """The index of each maximum along each axis of the padded image: its number in the window tells its place."""
    x, windows = pooling.image, pooling.windows
    taps = _as_image(g, g.emit("_npi_argmax", [_columns(g, pooling)], axis=2), pooling, "taps")
    made: list[Value] = []
    for axis in reversed(range(x.ndim - 2)):
        tap = calculate(g, "%", taps, windows.kernel[axis])
        taps = g.cast(g.emit("floor", [_quotient(g, taps, windows.kernel[axis])]), "int64")
        line = count(g, g.dim(tap, axis + 2), "int64", [-1 if i == axis + 2 else 1 for i in range(x.ndim)])
        start = calculate(g, "*", line, windows.stride[axis])
        made.insert(0, calculate(g, "+", calculate(g, "*", tap, windows.dilate[axis]), start))
    return made


def _quotient(g: Any, a: Value, b: Number) -> Value:
    return calculate(g, "/", g.cast(a, "float64"), b)


def _flat_places(g: Any, x: Value, places: Sequence[Value], is_column_major: bool) -> Value:
    """The index of each place in the flat image."""
    sizes = g.dims(x)[2:]
    axes = list(range(len(sizes)))
    step: Number = 1
    flat: Any = 0
    for axis in axes if is_column_major else reversed(axes):
        flat = calculate(g, "+", calculate(g, "*", places[axis], step), flat)
        step = apply("*", step, sizes[axis])
    planes = count(g, apply("*", g.dim(x, 0), g.dim(x, 1)), "int64")
    planes = g.reshape(planes, [g.dim(x, 0), g.dim(x, 1), *[1] * len(sizes)])
    return calculate(g, "+", flat, calculate(g, "*", planes, step))


@form("MaxUnpool")
def max_unpool(g: Any, node: Any, x: Value, places: Value, sizes: Value | None = None) -> Value:
    """Zeros with the elements at their places in the flat image; then zeros behind it, up to the given sizes."""
    windows = windows_of(g, node, x)
    shape = g.dims(x)[:2]
    for axis in range(x.ndim - 2):
        last = apply("*", apply("-", g.dim(x, axis + 2), 1), windows.stride[axis])
        padding = apply("+", windows.before[axis], windows.after[axis])
        shape.append(apply("-", apply("+", last, windows.kernel[axis]), padding))
    flat = g.emit("scatter_nd", [g.reshape(x, [-1]), g.reshape(places, [1, -1])], shape=(total("*", shape),))
    y = g.reshape(flat, shape, node.name)
    if sizes is None:
        return y
    wanted = g.numbers(sizes)
    if not isinstance(wanted, Runtime):
        more = [apply("-", size, own) for size, own in zip(wanted, shape, strict=True)]
        return pad(g, y, [0] * len(more), more, first_axis=0)
    if any(isinstance(size, Size) for size in shape):
        raise refuse("output_shape is computed from data, and the image has open sizes", node=node.proto)
    more = calculate(g, "-", g.cast(sizes, "int64"), g.constant(shape, "inferred_shape", "int64"))
    widths = [width for axis in range(x.ndim) for width in (0, Runtime(more, axis))]
    shapes = tuple(zip(*(g.data_size() for _ in range(x.ndim)), strict=True))
    return g.emit("Pad", [y], name=node.name, shapes=shapes, mode="constant", pad_width=tuple(widths))


# --------------------------------------------------------------------------------------------------- averages and norms
@form("AveragePool")
def average_pool(g: Any, node: Any, x: Value) -> Value:
    """Pooling; where the image needs other padding, or windows have gaps, sums divided by numbers of elements."""
    counts_padding = bool(node.attr("count_include_pad", 0))
    pooling = _prepare(g, node, x, "sum")
    if pooling.image is x and pooling.is_plain:
        attributes = _attributes(pooling, "avg")
        return g.emit("Pooling", [x], name=node.name, count_include_pad=counts_padding, **attributes)
    sums = _reduced(g, pooling, node.name)
    ones = g.emit("ones_like", [cut(g, cut(g, x, 0, 0, 1), 1, 0, 1)])
    image = total("*", g.dims(x)[2:])
    if not isinstance(image, Size):
        ones = g.reshape(g.constant(np.ones(int(image)), "ones", x.dtype), [1, 1, *g.dims(x)[2:]])
    if counts_padding:
        given = windows_of(g, node, x)
        ones = pad(g, ones, given.before, given.after, 1.0)
        own = [apply("-", g.dim(pooling.image, axis), g.dim(ones, axis)) for axis in range(2, x.ndim)]
        ones = pad(g, ones, [0] * len(own), [apply("max", size, 0) for size in own])
    else:
        ones = _prepare(g, node, ones, "sum").image
    counts = _reduced(g, _Pooling(ones, pooling.windows, "sum", pooling.convention), "counts")
    return calculate(g, "/", sums, counts, node.name)


@form("LpPool")
def lp_pool(g: Any, node: Any, x: Value) -> Value:
    """Pooling of kind lp, of magnitudes if the exponent is odd; for other exponents sums of powers."""
    return _reduced(g, _prepare(g, node, x, "lp", node.attr("p", 2)), node.name)


# --------------------------------------------------------------------------------------------------------- whole images
def _whole(g: Any, node: Any, x: Value, kind: str, reduction: str) -> Value:
    if 3 <= x.ndim <= 5:
        return g.emit("Pooling", [x], name=node.name, pool_type=kind, global_pool=True)
    return g.emit(reduction, [x], name=node.name, axis=tuple(range(2, x.ndim)), keepdims=True)


@form("GlobalAveragePool")
def global_average_pool(g: Any, node: Any, x: Value) -> Value:
    """The mean of each channel of each example."""
    return _whole(g, node, x, "avg", "mean")


@form("GlobalMaxPool")
def global_max_pool(g: Any, node: Any, x: Value) -> Value:
    """The maximum of each channel of each example."""
    return _whole(g, node, x, "max", "max")


@form("GlobalLpPool")
def global_lp_pool(g: Any, node: Any, x: Value) -> Value:
    """The norm of each channel of each example."""
    power, axes = node.attr("p", 2), tuple(range(2, x.ndim))
    if power in (1, 2):
        return g.emit("norm", [x], name=node.name, ord=int(power), axis=axes, keepdims=True)
    powers = g.emit("_power_scalar", [g.emit("abs", [x])], scalar=power)
    sums = g.emit("sum", [powers], axis=axes, keepdims=True)
    return g.emit("_power_scalar", [sums], name=node.name, scalar=1 / power)
