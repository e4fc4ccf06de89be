"""Operators on images with the channels last: (height, width, channels), or a batch of those."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._export_errors import does_not_follow
from .._export_table import export_form
from .._export_values import Open, Tensor


@export_form("_image_to_tensor")
def _to_tensor(g: Any, node: Any) -> Tensor:
    x = g.cast(g.move_axis(node.inputs[0], -1, -3), "float32")
    return g.emit("Div", x, 255)


@export_form("_image_normalize")
def _normalize(g: Any, node: Any) -> Tensor:
    x, p = node.inputs[0], node.params
    channels = int(x.dim(-3))
    mean, deviation = (
        g.const(np.resize(np.asarray(p[name], dtype="float64"), channels).reshape(channels, 1, 1), x.dtype)
        for name in ("mean", "std")
    )
    return g.emit("Div", g.emit("Sub", x, mean), deviation)


@export_form("_image_crop")
def _crop(g: Any, node: Any) -> Tensor:
    x, p = node.inputs[0], node.params
    rank = x.ndim
    begins = [p["y"], p["x"]]
    ends = [p["y"] + p["height"], p["x"] + p["width"]]
    return g.slices(x, [rank - 3, rank - 2], begins, ends, [1, 1])


def _flip(name: str, axis: int) -> None:
    export_form(name)(lambda g, node: g.slice(node.inputs[0], node.inputs[0].ndim + axis, None, None, -1))


_flip("_image_flip_left_right", -2)
_flip("_image_flip_top_bottom", -3)


def _coin(g: Any) -> Tensor:
    """True or false with equal probability, shape (1,)."""
    drawn = g.emit("RandomUniform", shape=[1], dtype="float32", high=1.0, low=0.0)
    drawn.spec = g.const([0.0]).spec
    return g.emit("Less", drawn, 0.5)


def _random_flip(name: str, axis: int) -> None:
    def form(g: Any, node: Any) -> list[Tensor]:
        x = node.inputs[0]
        coin = _coin(g)
        return [g.where(coin, g.slice(x, x.ndim + axis, None, None, -1), x), g.cast(coin, "int32")]

    export_form(name)(form)


_random_flip("_image_random_flip_left_right", -2)
_random_flip("_image_random_flip_top_bottom", -3)


@export_form("_image_reverse_if")
def _reverse_if(g: Any, node: Any) -> Tensor:
    x, condition = node.inputs
    return g.where(condition, g.slice(x, node.params["axis"] % x.ndim, None, None, -1), x)


# -------------------------------------------------------------------------------------------------------------- resize
def _weight(method: int, distance: float) -> float:
    d = abs(distance)
    if method == 2:  # cubic convolution with a = -0.75
        return 1.25 * d**3 - 2.25 * d**2 + 1 if d <= 1 else -0.75 * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0
    if method == 4:  # Lanczos over 8 pixels
        return float(np.sinc(d) * np.sinc(d / 4)) if d < 4 else 0.0
    return max(1 - d, 0.0)


def _axis_matrix(old: int, new: int, method: int) -> np.ndarray:
    """Weights of the old pixels in each new pixel, along one axis: kernels are not widened, as in OpenCV."""
    scale, matrix = old / new, np.zeros((new, old))
    for i in range(new):
        if method == 0:
            matrix[i, min(int(i * scale), old - 1)] = 1.0
        elif method == 3 and new < old:
            for j in range(old):
                matrix[i, j] = max(min(j + 1, (i + 1) * scale) - max(j, i * scale), 0.0)
        else:
            center = (i + 0.5) * scale - 0.5
            first = math.floor(center)
            for j in range(first - 4, first + 6):
                matrix[i, min(max(j, 0), old - 1)] += _weight(method, center - j)
        matrix[i] /= matrix[i].sum()
    return matrix


@export_form("_image_resize")
def _resize(g: Any, node: Any) -> Tensor:
    """Products with a matrix for each axis."""
    x, method = node.inputs[0], int(node.params["interp"])
    sizes, old = node.dims()[-3:-1], x.dims[-3:-1]
    if any(isinstance(size, Open) for size in (*sizes, *old)):
        raise does_not_follow("the matrix that resizes images", old)
    compute = x.dtype if x.dtype in ("float32", "float64") else "float32"
    image = g.move_axis(g.cast(x, compute), -1, -3)
    rows, columns = (_axis_matrix(int(a), int(b), method) for a, b in zip(old, sizes, strict=True))
    made = g.matmul(g.matmul(g.const(rows, compute), image), g.const(columns.T, compute))
    made = g.move_axis(made, -3, -1)
    if x.dtype.startswith(("int", "uint")):
        limits = np.iinfo(x.dtype)
        made = g.emit("Clip", g.emit("Round", made), float(limits.min), float(limits.max))
    return g.cast(made, x.dtype)


# -------------------------------------------------------------------------------------------------------------- colors
_PRINCIPAL = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
_VARIANCES = np.array([55.46, 4.794, 1.148])
_LUMINANCE = np.array([0.299, 0.587, 0.114])


def _stored(g: Any, x: Tensor, dtype: str) -> Tensor:
    """Back in the dtype of the image: bytes are limited to [0, 255]."""
    if dtype == "uint8":
        x = g.emit("Clip", x, 0, 255)
    return g.cast(x, dtype)


def _wide(g: Any, x: Tensor) -> Tensor:
    return x if x.dtype in ("float32", "float64") else g.cast(x, "float32")


@export_form("_image_adjust_lighting")
def _adjust_lighting(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    if x.dim(-1) == 1:
        return x
    shift = _PRINCIPAL @ (_VARIANCES * np.asarray(node.params["alpha"]))
    wide = _wide(g, x)
    return _stored(g, g.emit("Add", wide, g.const(shift, wide.dtype)), x.dtype)


def _drawn(g: Any, low: float, high: float, dtype: str) -> Tensor:
    made = g.emit("RandomUniform", shape=[1], dtype="float32", low=float(low), high=float(high))
    made.spec = g.const([0.0]).spec
    return g.cast(made, dtype)


@export_form("_image_random_lighting")
def _random_lighting(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    if x.dim(-1) == 1:
        return x
    wide = _wide(g, x)
    amounts = g.emit("RandomNormal", shape=[3], dtype="float32", mean=0.0, scale=float(node.params["alpha_std"]))
    amounts.spec = g.const([0.0] * 3).spec
    shift = g.matmul(g.const(_PRINCIPAL * _VARIANCES, "float32"), g.unsqueeze(amounts, [1]))
    return _stored(g, g.emit("Add", wide, g.cast(g.squeeze(shift, [1]), wide.dtype)), x.dtype)


def _luminance(g: Any, x: Tensor) -> Tensor:
    if x.dim(-1) == 1:
        return x
    return g.reduce("Sum", g.emit("Mul", x, g.const(_LUMINANCE, x.dtype)), [-1], keepdims=True)


def scale_contrast(g: Any, x: Tensor, factor: Tensor) -> Tensor:
    """Scales the distance from the mean luminance of the image."""
    mean = g.reduce("Mean", _luminance(g, x), range(x.ndim), keepdims=True)
    return g.emit("Add", g.emit("Mul", g.emit("Sub", x, mean), factor), mean)


def scale_saturation(g: Any, x: Tensor, factor: Tensor) -> Tensor:
    """Scales the distance from the luminance of each pixel."""
    gray = _luminance(g, x)
    return g.emit("Add", g.emit("Mul", g.emit("Sub", x, gray), factor), gray)


def _scale(g: Any, x: Tensor, factor: Tensor) -> Tensor:
    return g.emit("Mul", x, factor)


def rotate_hue(g: Any, x: Tensor, turns: Tensor) -> Tensor:
    """Rotates hues by a part of the color circle; the largest and the smallest color of a pixel stay the same."""
    if x.dim(-1) == 1:
        return x
    red, green, blue = g.split(x, x.ndim - 1, [1, 1, 1])
    low, high = g.reduce("Min", x, [-1], keepdims=True), g.reduce("Max", x, [-1], keepdims=True)
    chroma = g.emit("Sub", high, low)
    divisor = g.where(g.emit("Equal", chroma, 0), 1, chroma)

    def sector(a: Tensor, b: Tensor, start: float) -> Tensor:
        return g.emit("Add", g.emit("Div", g.emit("Sub", a, b), divisor), start)

    is_green = g.emit("Equal", high, green)
    hue = g.where(is_green, sector(blue, red, 2), sector(red, green, 4))
    hue = g.where(g.emit("Equal", high, red), sector(green, blue, 6), hue)
    hue = g.emit("Add", hue, g.emit("Mul", turns, 6))
    parts = []
    for center in (0, 2, 4):  # red, green and blue
        place = g.emit("Mod", g.emit("Add", hue, 12 + 3 - center), 6, fmod=1)
        share = g.emit("Clip", g.emit("Sub", 2, g.emit("Abs", g.emit("Sub", place, 3))), 0, 1)
        parts.append(g.emit("Add", g.emit("Mul", chroma, share), low))
    return g.concat(parts, x.ndim - 1)


def _random_change(name: str, change: Any) -> None:
    def form(g: Any, node: Any) -> Tensor:
        x, p = node.inputs[0], node.params
        wide = _wide(g, x)
        return _stored(g, change(g, wide, _drawn(g, p["min_factor"], p["max_factor"], wide.dtype)), x.dtype)

    export_form(name)(form)


_random_change("_image_random_brightness", _scale)
_random_change("_image_random_contrast", scale_contrast)
_random_change("_image_random_saturation", scale_saturation)
_random_change("_image_random_hue", rotate_hue)


@export_form("_image_random_color_jitter")
def _random_jitter(g: Any, node: Any) -> Tensor:
    """Changes in one order: ONNX has no choice of an order."""
    x, p = node.inputs[0], node.params
    wide = _wide(g, x)
    for name, change, center in (
        ("brightness", _scale, 1.0), ("contrast", scale_contrast, 1.0), ("saturation", scale_saturation, 1.0),
        ("hue", rotate_hue, 0.0),
    ):  # fmt: skip
        if p[name] > 0:
            wide = change(g, wide, _drawn(g, center - p[name], center + p[name], wide.dtype))
    return _stored(g, wide, x.dtype)
