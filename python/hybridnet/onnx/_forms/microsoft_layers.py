"""Layers of ONNX Runtime's domain that join a product with an activation, and its activations."""

from __future__ import annotations

from typing import Any

from .._arithmetic import calculate, cut
from .._sizes import apply
from .._standard import activate, renamed, standard
from .._table import form
from .._values import Value
from .activations import gelu_by_tanh

_DOMAIN = "com.microsoft"


# ---------------------------------------------------------------------------------------------- layers and activation
@form("FusedConv", "NhwcFusedConv", "NhwcConv", domain=_DOMAIN)
def fused_conv(
    g: Any, node: Any, x: Value, weight: Value, bias: Value | None = None, addend: Value | None = None
) -> Value:
    """activation(conv + addend); the variants with channels last are transposed around it."""
    last = node.op_type.startswith("Nhwc")
    plain = renamed(g, node, "Conv", ("activation", "activation_params"))
    y = g.apply(plain, [_channels_first(g, x) if last else x, weight, bias])
    if addend is not None:
        y = calculate(g, "+", y, _channels_first(g, addend) if last else addend)
    parameters = [*(node.attr("activation_params") or []), None, None]
    y = activate(g, node, y, node.attr("activation", ""), parameters[0], parameters[1])
    return _channels_last(g, y) if last else y


def _channels_first(g: Any, x: Value) -> Value:
    return g.emit("transpose", [x], axes=(0, x.ndim - 1, *range(1, x.ndim - 1)))


def _channels_last(g: Any, x: Value) -> Value:
    return g.emit("transpose", [x], axes=(0, *range(2, x.ndim), 1))


@form("FusedGemm", domain=_DOMAIN)
def fused_gemm(g: Any, node: Any, a: Value, b: Value, c: Value | None = None) -> Value:
    """activation(alpha * A B + beta * C)"""
    names = ("activation", "activation_alpha", "activation_beta", "activation_gamma")
    y = g.apply(renamed(g, node, "Gemm", names), [a, b, c])
    return activate(g, node, y, *(node.attr(name, "" if name == "activation" else None) for name in names[:3]))


@form("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=_DOMAIN)
def fused_matmul(g: Any, node: Any, a: Value, b: Value) -> Value:
    """alpha * A B of transposed matrices."""
    a = _transposed(g, a, node.attr("transA", 0), node.attr("transBatchA", 0))
    b = _transposed(g, b, node.attr("transB", 0), node.attr("transBatchB", 0))
    y = standard(g, "MatMul", [a, b], node.name)
    alpha = node.attr("alpha", 1.0)
    y = y if alpha == 1 else calculate(g, "*", y, alpha, node.name)
    return activate(
        g, node, y, node.attr("activation", ""), node.attr("activation_alpha"), node.attr("activation_beta")
    )


def _transposed(g: Any, x: Value, matrices: int, stack: int) -> Value:
    """Transposes the last two axes if `matrices`; moves the first axis behind the other batch axes if `stack`."""
    order = list(range(x.ndim))
    if stack and x.ndim > 2:
        order = [*order[1:-1], 0, order[-1]]
    if matrices and x.ndim > 1:
        order = [*order[:-2], order[-1], order[-2]]
    return x if order == list(range(x.ndim)) else g.emit("transpose", [x], axes=tuple(order))


@form("GemmFastGelu", domain=_DOMAIN)
def gemm_fast_gelu(g: Any, node: Any, x: Value, weight: Value, bias: Value | None = None) -> Value:
    return fast_gelu(g, node, standard(g, "MatMul", [x, weight], node.name), bias)


# ---------------------------------------------------------------------------------------------------------- activations
@form("Gelu", domain=_DOMAIN)
def gelu(g: Any, node: Any, x: Value) -> Value:
    return g.emit("LeakyReLU", [x], name=node.name, act_type="gelu")


@form("BiasGelu", domain=_DOMAIN)
def bias_gelu(g: Any, node: Any, x: Value, bias: Value) -> Value:
    return gelu(g, node, calculate(g, "+", x, bias))


@form("FastGelu", domain=_DOMAIN)
def fast_gelu(g: Any, node: Any, x: Value, bias: Value | None = None) -> Value:
    """Gelu by tanh."""
    x = x if bias is None else calculate(g, "+", x, bias)
    return gelu_by_tanh(g, x, node.name)


@form("QuickGelu", domain=_DOMAIN)
def quick_gelu(g: Any, node: Any, x: Value) -> Value:
    return activate(g, node, x, "QuickGelu", node.attr("alpha", 1.702))


@form("ScaledSiLU", domain=_DOMAIN)
def scaled_silu(g: Any, node: Any, x: Value, scale: Value | None = None) -> Value:
    """y * sigmoid(y) of y = scale * x"""
    alpha = node.attr("alpha", 1.0)
    if scale is not None:
        x = g.cast(calculate(g, "*", x, g.cast(scale, x.dtype)), x.dtype)
    elif alpha != 1:
        x = calculate(g, "*", x, alpha)
    return activate(g, node, x, "Silu")


@form("BiasSplitGelu", domain=_DOMAIN)
def bias_split_gelu(g: Any, node: Any, x: Value, bias: Value) -> Value:
    """The left half of x + bias times gelu of the right half."""
    x = calculate(g, "+", x, bias)
    half = apply("//", g.dim(x, -1), 2)
    left, right = cut(g, x, x.ndim - 1, 0, half), cut(g, x, x.ndim - 1, half, None)
    return calculate(g, "*", left, gelu(g, node, right), node.name)


@form("BiasAdd", domain=_DOMAIN)
def bias_add(g: Any, node: Any, x: Value, bias: Value, skip: Value) -> Value:
    return calculate(g, "+", calculate(g, "+", x, bias), skip, node.name)


@form("BiasSoftmax", domain=_DOMAIN)
def bias_softmax(g: Any, node: Any, x: Value, bias: Value) -> Value:
    """Softmax of x + bias over the axes from `axis` on; the bias lacks axes in front, or between them and `axis`."""
    axis = node.attr("axis", 1) % x.ndim
    if node.attr("is_inner_broadcast") and bias.ndim < x.ndim:
        missing = x.ndim - bias.ndim
        bias = g.reshape(bias, [*g.dims(bias)[: axis - missing], *[1] * missing, *g.dims(bias)[axis - missing :]])
    sums = calculate(g, "+", x, bias)
    if axis == x.ndim - 1:
        return g.emit("softmax", [sums], name=node.name, axis=axis)
    rows = g.emit("softmax", [g.reshape(sums, [*g.dims(x)[:axis], -1])], axis=axis)
    return g.reshape(rows, g.dims(x), node.name)


__all__ = [
    "bias_add",
    "bias_gelu",
    "bias_softmax",
    "bias_split_gelu",
    "fast_gelu",
    "fused_conv",
    "fused_gemm",
    "fused_matmul",
    "gelu",
    "gemm_fast_gelu",
    "quick_gelu",
    "scaled_silu",
]
