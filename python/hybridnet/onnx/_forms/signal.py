"""Fourier transforms, windows and filters of signals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._arithmetic import Term, calculate, count, cut, join, permute, terms
from .._builder import Runtime
from .._errors import refuse
from .._sizes import Number, Size, apply, is_number
from .._table import form
from .._values import Value
from .._windows import pad

_DTYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16", 6: "int32", 7: "int64", 2: "uint8", 3: "int8"}


# --------------------------------------------------------------------------------------------------------- transforms
@form("DFT")
def dft(g: Any, node: Any, x: Value, length: Value | None = None, axis: Value | None = None) -> Value:
    """The transform along an axis; the last axis holds real and imaginary parts."""
    if node.version < 20:
        chosen: Any = node.attr("axis", 1)
    else:
        chosen = -2 if axis is None else g.item(axis)
    if isinstance(chosen, Runtime):
        last = x.ndim - 2
        moved = _swapped(g, x, chosen, last)
        return _swapped(g, _dft(g, node, moved, length, last), chosen, last)
    return _dft(g, node, x, length, int(chosen) % x.ndim)


def _swapped(g: Any, x: Value, axis: Runtime, other: int) -> Value:
    """An axis that is computed from data exchanged with another one, which is not the last."""
    sizes = [g.data_size() for _ in range(x.ndim - 1)] + [[shape[-1] for shape in x.shapes]]
    return g.emit("SwapAxis", [x], shapes=tuple(zip(*sizes, strict=True)), dim1=axis, dim2=other)


def _dft(g: Any, node: Any, x: Value, length: Value | None, chosen: int) -> Value:
    inverse, onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    size = g.dim(x, chosen)
    wanted = size if not (inverse and onesided) else apply("*", apply("-", size, 1), 2)
    if length is not None:
        wanted = g.item(length)
        if isinstance(wanted, Runtime):
            raise refuse("dft_length is computed from data", fix="give it as a constant", node=node.proto)
    others = [i for i in range(x.ndim - 1) if i != chosen]
    dtype = x.dtype if x.dtype in ("float32", "float64") else "float32"
    parts = permute(g, g.cast(x, dtype), [*others, x.ndim - 1, chosen])  # (..., 1 or 2, size)
    if inverse and onesided:
        y = _real_inverse(g, parts, wanted)
    else:
        y = _transformed(g, _of_length(g, parts, wanted), inverse)
        if onesided:
            y = cut(g, y, y.ndim - 2, 0, apply("+", apply("//", wanted, 2), 1))
    order = [*others, chosen, x.ndim - 1]
    return g.cast(permute(g, y, [order.index(i) for i in range(x.ndim)]), x.dtype, node.name)


def _of_length(g: Any, x: Value, length: Number) -> Value:
    """The last axis cut, or continued by zeros, to a length."""
    last = x.ndim - 1
    size = g.dim(x, last)
    more = apply("max", apply("-", length, size), 0)
    if isinstance(more, Size) or more > 0:
        x = pad(g, x, [0], [more], first_axis=last)
    if is_number(size) and is_number(length) and size <= length:
        return x
    if isinstance(size, Size) and isinstance(length, Size) and size.trials == length.trials:
        return x
    return cut(g, x, last, 0, length)


def _transformed(g: Any, parts: Value, inverse: bool) -> Value:
    """(..., 1 or 2, n) to (..., n, 2): the transforms of real and imaginary parts, joined."""
    last = parts.ndim - 1
    size = g.dim(parts, last)
    sign = -1 if inverse else 1  # the inverse is the conjugate of the transform of the conjugate
    spectra = g.emit("_contrib_fft", [parts])
    spectra = g.reshape(spectra, [*g.dims(parts), 2])
    of_real = _item(g, spectra, last - 1, 0)
    if g.dim(parts, last - 1) == 1:
        y = of_real
        if inverse:
            y = join(g, [cut(g, y, last, 0, 1), calculate(g, "*", cut(g, y, last, 1, 2), -1)], last)
    else:
        of_imaginary = _item(g, spectra, last - 1, 1)
        a, b = (cut(g, of_real, last, i, i + 1) for i in (0, 1))
        c, d = (calculate(g, "*", cut(g, of_imaginary, last, i, i + 1), sign) for i in (0, 1))
        imaginary = calculate(g, "*", calculate(g, "+", b, c), sign)
        y = join(g, [calculate(g, "-", a, d), imaginary], last)
    return calculate(g, "/", y, size) if inverse else y


def _item(g: Any, x: Value, axis: int, index: int) -> Value:
    return g.emit("squeeze", [cut(g, x, axis, index, index + 1)], axis=(axis,))


def _real_inverse(g: Any, parts: Value, length: Number) -> Value:
    """(..., 2, half of the spectrum) to the real signal (..., length, 1)."""
    last = parts.ndim - 1
    half = apply("+", apply("//", length, 2), 1)
    given = _of_length(g, parts, half)
    mirrored = g.emit("reverse", [cut(g, given, last, 1, apply("+", apply("-", length, half), 1))], axis=(last,))
    mirrored = join(
        g, [cut(g, mirrored, last - 1, 0, 1), calculate(g, "*", cut(g, mirrored, last - 1, 1, 2), -1)], last - 1
    )
    whole = join(g, [given, mirrored], last)
    pairs = permute(g, whole, [*range(last - 1), last, last - 1])
    pairs = g.reshape(pairs, [*g.dims(pairs)[:-2], apply("*", length, 2)])
    signal = calculate(g, "/", g.emit("_contrib_ifft", [pairs]), length)
    return g.emit("expand_dims", [signal], axis=signal.ndim)


@form("STFT")
def stft(g: Any, node: Any, x: Value, step: Value, window: Value | None = None, length: Value | None = None) -> Value:
    """The transforms of all frames, which are the columns of a window that slides over the signal."""
    if x.ndim == 2:  # files leave out the axis of the parts of real signals
        x = g.emit("expand_dims", [x], axis=2)
    size: Any = g.dim(x, 1)
    if length is not None:
        size = g.item(length)
    elif window is not None:
        size = g.dim(window, 0)
    stride = g.item(step)
    dtype = x.dtype if x.dtype in ("float32", "float64") else "float32"
    signal = permute(g, g.cast(x, dtype), (0, 2, 1))  # (batch, parts, time)
    shapes = None
    if isinstance(size, Runtime) or isinstance(stride, Runtime):
        frame = g.data_size() if isinstance(size, Runtime) else [size] * g.num_trials
        if isinstance(size, Size):
            frame = size.trials
        planes = apply("*", g.dim(x, 0), g.dim(x, 2))
        planes = planes.trials if isinstance(planes, Size) else [planes] * g.num_trials
        shapes = tuple(zip(planes, frame, g.data_size(), strict=True))
    images = g.reshape(signal, [-1, 1, g.dim(x, 1)])
    frames = g.emit("im2col", [images], kernel=(size,), stride=(stride,), shapes=shapes)
    frames = permute(g, frames, (0, 2, 1))  # (batch * parts, frames, size)
    if window is not None:
        frames = calculate(g, "*", frames, g.cast(window, dtype))
    batch, parts = g.dim(x, 0), g.dim(x, 2)
    frames = g.reshape(frames, [batch, parts, *g.dims(frames)[1:]])
    y = _transformed(g, permute(g, frames, (0, 2, 1, 3)), False)
    if node.attr("onesided", 1):
        y = cut(g, y, 2, 0, apply("+", apply("//", g.dim(y, 2), 2), 1))
    return g.cast(y, x.dtype, node.name)


# ------------------------------------------------------------------------------------------------------------- windows
def _window(onnx_name: str, factors: Sequence[float]) -> None:
    @form(onnx_name)
    def make(g: Any, node: Any, size: Value) -> Value:
        """A sum of cosines whose periods are the whole window, or the distance of its ends, and its parts."""
        length = terms(g, size)[0]
        line = count(g, length, "float64")
        period = length if node.attr("periodic", 1) else calculate(g, "-", length, 1)
        y: Term = factors[0]
        for index, factor in enumerate(factors[1:], 1):
            angle = calculate(g, "/", calculate(g, "*", line, 2 * math.pi * index), period)
            y = calculate(g, "+", calculate(g, "*", g.emit("cos", [angle]), factor), y)
        return g.cast(y, _dtype(node), node.name)


for _name, _factors in {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}.items():
    _window(_name, _factors)


def _dtype(node: Any) -> str:
    code = node.attr("output_datatype", 1)
    if code not in _DTYPES:
        raise refuse(f"output_datatype is {code}", node=node.proto)
    return _DTYPES[code]


@form("MelWeightMatrix")
def mel_weights(g: Any, node: Any, bins: Value, length: Value, rate: Value, lowest: Value, highest: Value) -> Value:
    """Triangles over the elements of a spectrum, at equal distances on the mel scale."""
    number, size, rate_, low, high = (terms(g, value)[0] for value in (bins, length, rate, lowest, highest))
    low, high = (_mel(g, frequency) for frequency in (low, high))
    points = calculate(g, "+", number, 2)
    step = calculate(g, "/", calculate(g, "-", high, low), points)
    mels = calculate(g, "+", calculate(g, "*", count(g, points, "float64"), step), low)
    hertz = calculate(g, "*", g.emit("expm1", [calculate(g, "*", mels, math.log(10) / 2595)]), 700)
    places = calculate(g, "/", calculate(g, "*", hertz, calculate(g, "+", size, 1)), rate_)
    places = g.emit("floor", [places])
    left, center, right = (
        g.reshape(cut(g, places, 0, i, apply("+", g.dim(places, 0), i - 2)), [1, -1]) for i in range(3)
    )
    rows = count(g, _half(g, size), "float64", [-1, 1])
    rising = calculate(g, "/", calculate(g, "-", rows, left), _at_least_one(g, calculate(g, "-", center, left)))
    falling = calculate(g, "/", calculate(g, "-", right, rows), _at_least_one(g, calculate(g, "-", right, center)))
    up = calculate(g, "*", calculate(g, "<=", left, rows), calculate(g, "<", rows, center))
    down = calculate(g, "*", calculate(g, "<", center, rows), calculate(g, "<", rows, right))
    sides = calculate(g, "+", calculate(g, "*", rising, up), calculate(g, "*", falling, down))
    return g.cast(calculate(g, "+", sides, calculate(g, "==", rows, center)), _dtype(node), node.name)


def _mel(g: Any, frequency: Term) -> Term:
    if isinstance(frequency, Value):
        return calculate(g, "*", g.emit("log1p", [calculate(g, "/", frequency, 700)]), 2595 / math.log(10))
    return 2595 * math.log1p(frequency / 700) / math.log(10)


def _half(g: Any, size: Term) -> Term:
    half = calculate(g, "/", size, 2)
    return calculate(g, "+", g.emit("floor", [half]) if isinstance(half, Value) else apply("floor", half), 1)


def _at_least_one(g: Any, distance: Value) -> Value:
    return calculate(g, "max", distance, 1)


@form("ImageDecoder")
def image_decoder(g: Any, node: Any, data: Value) -> Any:
    """Refused: the size of the image is in the data, and a decoder is not part of the graph."""
    raise refuse("images are not decoded in a graph", fix="decode them before, with mx.image.imdecode", node=node.proto)
