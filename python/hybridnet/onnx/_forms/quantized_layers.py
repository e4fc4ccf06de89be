"""Convolutions and products of bytes: with 32-bit sums as results, and with bytes."""

from __future__ import annotations

from typing import Any

from .._arithmetic import calculate
from .._byte_products import convolve_bytes, multiply_bytes
from .._table import form
from .._values import Value
from .quantization import element_of, quantized


@form("ConvInteger")
def conv_integer(
    g: Any, node: Any, x: Value, weight: Value, zero: Value | None = None, weight_zero: Value | None = None
) -> Value:
    return convolve_bytes(g, node, x, zero, weight, weight_zero)


@form("MatMulInteger")
def matmul_integer(
    g: Any, node: Any, a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None
) -> Value:
    return multiply_bytes(g, node, a, a_zero, b, b_zero)


def scalar(g: Any, value: Value) -> Value:
    """A tensor of one element without axes, or the tensor."""
    return g.emit("_np_reshape", [value], newshape=()) if value.ndim == 1 and value.fixed(0) == 1 else value


def of_channels(g: Any, value: Value, ndim: int) -> Value:
    """One number, or one per channel of an image."""
    value = scalar(g, value)
    return value if value.ndim == 0 else g.reshape(value, [1, -1, *[1] * (ndim - 2)])


@form("QLinearConv")
def qlinear_conv(
    g: Any,
    node: Any,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    weight: Value,
    weight_scale: Value,
    weight_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value | None = None,
) -> Value:
    """Sums in steps of x_scale * weight_scale, per channel, as steps of y_scale."""
    sums = convolve_bytes(g, node, x, x_zero, weight, weight_zero)
    if bias is not None:
        sums = calculate(g, "+", sums, of_channels(g, bias, x.ndim))
    scale = calculate(g, "*", scalar(g, x_scale), scalar(g, weight_scale))
    scale = of_channels(g, calculate(g, "/", scale, scalar(g, y_scale)), x.ndim)
    steps = calculate(g, "*", g.cast(sums, "float32"), scale)
    return quantized(g, steps, scalar(g, y_zero), element_of(node, y_zero), node.name)


@form("QLinearMatMul")
def qlinear_matmul(
    g: Any,
    node: Any,
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    y_scale: Value,
    y_zero: Value,
) -> Value:
    """Sums in steps of a_scale * b_scale as steps of y_scale; scales are numbers, per row of a, or per column of b."""
    sums = multiply_bytes(g, node, a, a_zero, b, b_zero)
    rows, columns = (g.cast(scalar(g, scale), "float32") for scale in (a_scale, b_scale))
    if rows.ndim == 1:
        rows = g.reshape(rows, [-1, 1])
    scale = calculate(g, "/", calculate(g, "*", rows, columns), g.cast(scalar(g, y_scale), "float32"))
    steps = calculate(g, "*", g.cast(sums, "float32"), scale)
    return quantized(g, steps, scalar(g, y_zero), element_of(node, y_zero), node.name)


__all__ = ["conv_integer", "matmul_integer", "of_channels", "qlinear_conv", "qlinear_matmul", "scalar"]
