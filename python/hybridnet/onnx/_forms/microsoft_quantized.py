"""Operators on bytes of ONNX Runtime's domain, which its quantizer writes: bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._arithmetic import calculate
from .._byte_products import multiply_bytes
from .._standard import renamed, standard
from .._table import form
from .._values import Value
from .quantization import dequantize, dequantized, element_of, quantize, quantized
from .quantized_layers import qlinear_conv, scalar

_DOMAIN = "com.microsoft"


@form("QuantizeLinear", domain=_DOMAIN)
def microsoft_quantize(g: Any, node: Any, x: Value, scale: Value, zero: Value | None = None) -> Value:
    return quantize(g, node, x, scale, zero)


@form("DequantizeLinear", domain=_DOMAIN)
def microsoft_dequantize(g: Any, node: Any, x: Value, scale: Value, zero: Value | None = None) -> Value:
    return dequantize(g, node, x, scale, zero)


def _floats(g: Any, x: Value, scale: Value, zero: Value | None) -> Value:
    return dequantized(g, x, scalar(g, scale), None if zero is None else scalar(g, zero))


def _bytes(g: Any, node: Any, y: Value, scale: Value, zero: Value | None, element: str) -> Value:
    steps = calculate(g, "/", y, scalar(g, scale))
    return quantized(g, steps, None if zero is None else scalar(g, zero), element, node.name)


def _around(name: str, of_floats: Callable[[Any, Any, Value], Value]) -> None:
    """Registers QLinear<name>: an operator of dequantized bytes, whose result is quantized."""

    @form(f"QLinear{name}", domain=_DOMAIN)
    def make(
        g: Any,
        node: Any,
        x: Value,
        x_scale: Value,
        x_zero: Value | None,
        y_scale: Value,
        y_zero: Value | None = None,
    ) -> Value:
        y = of_floats(g, node, _floats(g, x, x_scale, x_zero))
        return _bytes(g, node, y, y_scale, y_zero, x.element or x.dtype)


def _softmax(g: Any, node: Any, x: Value) -> Value:
    return g.apply(renamed(g, node, "Softmax", ("opset",), version=node.attr("opset")), [x])


def _pool(g: Any, node: Any, x: Value) -> Value:
    """Average pooling, of images with channels last if an attribute says so."""
    last = bool(node.attr("channels_last", 0))
    kind = "GlobalAveragePool" if "Global" in node.op_type else "AveragePool"
    plain = renamed(g, node, kind, ("channels_last",))
    if not last:
        return g.apply(plain, [x])
    y = g.apply(plain, [g.emit("transpose", [x], axes=(0, x.ndim - 1, *range(1, x.ndim - 1)))])
    return g.emit("transpose", [y], axes=(0, *range(2, x.ndim), 1))


def _mean(g: Any, node: Any, x: Value) -> Value:
    return g.apply(renamed(g, node, "ReduceMean", version=13), [x])


_around("Sigmoid", lambda g, node, x: g.emit("sigmoid", [x]))
_around("LeakyRelu", lambda g, node, x: standard(g, "LeakyRelu", [x], node.name, alpha=node.attr("alpha", 0.01)))
_around("Softmax", _softmax)
_around("AveragePool", _pool)
_around("GlobalAveragePool", _pool)
_around("ReduceMean", _mean)


def _binary(name: str, operator: str) -> None:
    @form(f"QLinear{name}", domain=_DOMAIN)
    def make(
        g: Any,
        node: Any,
        a: Value,
        a_scale: Value,
        a_zero: Value | None,
        b: Value,
        b_scale: Value,
        b_zero: Value | None,
        c_scale: Value,
        c_zero: Value | None = None,
    ) -> Value:
        y = calculate(g, operator, _floats(g, a, a_scale, a_zero), _floats(g, b, b_scale, b_zero))
        return _bytes(g, node, y, c_scale, c_zero, a.element or a.dtype)


_binary("Add", "+")
_binary("Mul", "*")


@form("QLinearConcat", domain=_DOMAIN)
def qlinear_concat(g: Any, node: Any, y_scale: Value, y_zero: Value, *inputs: Value) -> Value:
    """Triples of bytes, scale and zero point; those in steps of the output are not converted."""
    parts = []
    for index in range(0, len(inputs), 3):
        x, scale, zero = inputs[index : index + 3]
        same = scale is y_scale and zero is y_zero
        parts.append(
            x if same else _bytes(g, node, _floats(g, x, scale, zero), y_scale, y_zero, element_of(node, y_zero))
        )
    return standard(g, "Concat", parts, node.name, axis=node.attr("axis"))


@form("QLinearWhere", domain=_DOMAIN)
def qlinear_where(g: Any, node: Any, condition: Value, *inputs: Value) -> Value:
    x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero = inputs
    sides = (
        _bytes(g, node, _floats(g, value, scale, zero), z_scale, z_zero, element_of(node, z_zero))
        for value, scale, zero in ((x, x_scale, x_zero), (y, y_scale, y_zero))
    )
    return standard(g, "Where", [condition, *sides], node.name)


@form("QLinearConv", domain=_DOMAIN)
def microsoft_qlinear_conv(g: Any, node: Any, x: Value, *inputs: Value) -> Value:
    """The standard's operator, of images with channels last if an attribute says so."""
    if not node.attr("channels_last", 0):
        return qlinear_conv(g, node, x, *inputs)
    x = g.emit("transpose", [x], axes=(0, x.ndim - 1, *range(1, x.ndim - 1)))
    y = qlinear_conv(g, node, x, *inputs)
    return g.emit("transpose", [y], axes=(0, *range(2, x.ndim), 1))


# ------------------------------------------------------------------------------------------------------------- products
@form("QGemm", domain=_DOMAIN)
def qgemm(
    g: Any,
    node: Any,
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    c: Value | None = None,
    y_scale: Value | None = None,
    y_zero: Value | None = None,
) -> Value:
    """Sums and C in steps of alpha * a_scale * b_scale, as bytes in steps of y_scale or as floats."""
    if node.attr("transA", 0):
        a = g.emit("transpose", [a], axes=(1, 0))
    if node.attr("transB", 0):
        b = (
            g.derived(b, "transposed", lambda array: np.ascontiguousarray(array.T))
            if b.is_const
            else g.emit("transpose", [b], axes=(1, 0))
        )
    sums = multiply_bytes(g, node, a, a_zero, b, b_zero)
    if c is not None:
        sums = calculate(g, "+", sums, c)
    scale = calculate(g, "*", scalar(g, a_scale), scalar(g, b_scale))
    alpha = node.attr("alpha", 1.0)
    scale = scale if alpha == 1 else calculate(g, "*", scale, alpha)
    y = g.cast(sums, "float32")
    if y_scale is None or y_zero is None:
        return calculate(g, "*", y, scale, node.name)
    steps = calculate(g, "*", y, calculate(g, "/", scale, scalar(g, y_scale)))
    return quantized(g, steps, scalar(g, y_zero), element_of(node, y_zero), node.name)


def _scaled(g: Any, node: Any, sums: Value, scale: Value, bias: Value | None) -> Value:
    y = calculate(g, "*", g.cast(sums, "float32"), scale, node.name)
    return y if bias is None else calculate(g, "+", y, bias, node.name)


@form("MatMulIntegerToFloat", domain=_DOMAIN)
def matmul_integer_to_float(
    g: Any,
    node: Any,
    a: Value,
    b: Value,
    a_scale: Value,
    b_scale: Value,
    a_zero: Value | None = None,
    b_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:
    sums = multiply_bytes(g, node, a, a_zero, b, b_zero)
    rows = scalar(g, a_scale)
    rows = g.reshape(rows, [-1, 1]) if rows.ndim == 1 else rows
    return _scaled(g, node, sums, calculate(g, "*", rows, scalar(g, b_scale)), bias)


@form("DynamicQuantizeMatMul", domain=_DOMAIN)
def dynamic_quantize_matmul(
    g: Any,
    node: Any,
    a: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:
    """The product of A as bytes over its range, and the bytes B."""
    found, scale, zero = standard(g, "DynamicQuantizeLinear", [a], node.name, outputs=3)
    sums = multiply_bytes(g, node, found, zero, b, b_zero)
    return _scaled(g, node, sums, calculate(g, "*", scale, scalar(g, b_scale)), bias)


@form("MatMulInteger16", domain=_DOMAIN)
def matmul_integer16(g: Any, node: Any, a: Value, b: Value) -> Value:
    return multiply_bytes(g, node, a, None, b, None)


@form("MulInteger", domain=_DOMAIN)
def mul_integer(g: Any, node: Any, a: Value, a_zero: Value | None, b: Value, b_zero: Value | None = None) -> Value:
    """The 32-bit products of bytes."""

    def whole(x: Value, zero: Value | None) -> Value:
        x = g.cast(x, "int32")
        return x if zero is None else calculate(g, "-", x, g.cast(scalar(g, zero), "int32"))

    return calculate(g, "*", whole(a, a_zero), whole(b, b_zero), node.name)


@form("ReduceSumInteger", domain=_DOMAIN)
def reduce_sum_integer(g: Any, node: Any, x: Value) -> Value:
    axes: Sequence[int] = node.attr("axes")
    return g.emit(
        "_np_sum",
        [g.cast(x, "int32")],
        name=node.name,
        axis=tuple(axes),
        keepdims=bool(node.attr("keepdims", 1)),
        dtype="int32",
    )


@form("NhwcMaxPool", domain=_DOMAIN)
def nhwc_max_pool(g: Any, node: Any, x: Value) -> Value:
    """MaxPool of images of bytes with channels last."""
    image = g.emit("transpose", [x], axes=(0, x.ndim - 1, *range(1, x.ndim - 1)))
    y = g.apply(renamed(g, node, "MaxPool"), [image])
    y = y[0] if isinstance(y, tuple) else y
    return g.emit("transpose", [y], axes=(0, *range(2, x.ndim), 1))


__all__ = [
    "dynamic_quantize_matmul",
    "matmul_integer16",
    "matmul_integer_to_float",
    "microsoft_dequantize",
    "microsoft_qlinear_conv",
    "microsoft_quantize",
    "mul_integer",
    "nhwc_max_pool",
    "qgemm",
    "qlinear_concat",
    "qlinear_where",
    "reduce_sum_integer",
]
