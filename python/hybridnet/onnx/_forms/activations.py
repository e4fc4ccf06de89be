"""Activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arithmetic import calculate, total
from .._element_types import wrapped
from .._table import form

# The constants of Selu that LeakyReLU(act_type=selu) uses; ONNX's defaults are these, rounded to float32.
_SELU = (1.6732632423543772, 1.0507009873554805)


def _leaky(g: Any, node: Any, x: Any, act_type: str, slope: float | None = None) -> Any:
    given = {} if slope is None else {"slope": slope}
    return g.emit("LeakyReLU", [x], name=node.name, act_type=act_type, **given)


def _times(g: Any, x: Any, number: float) -> Any:
    return x if number == 1 else g.emit("_mul_scalar", [x], scalar=number)


@form("LeakyRelu")
def leaky_relu(g: Any, node: Any, x: Any) -> Any:
    return _leaky(g, node, x, "leaky", node.attr("alpha", 0.01))


@form("Elu")
def elu(g: Any, node: Any, x: Any) -> Any:
    return _leaky(g, node, x, "elu", node.attr("alpha", 1.0))


@form("Selu")
def selu(g: Any, node: Any, x: Any) -> Any:
    """gamma * elu(x); the constants of the paper are one operator."""
    old = node.version < 6
    alpha = node.attr("alpha", 1.6732 if old else _SELU[0])
    gamma = node.attr("gamma", 1.0507 if old else _SELU[1])
    if all(math.isclose(given, known, rel_tol=1e-6) for given, known in zip((alpha, gamma), _SELU, strict=True)):
        return _leaky(g, node, x, "selu")
    return _times(g, _leaky(g, node, x, "elu", alpha), gamma)


@form("Celu")
def celu(g: Any, node: Any, x: Any) -> Any:
    """alpha * elu(x / alpha)"""
    alpha = node.attr("alpha", 1.0)
    return _times(g, _leaky(g, node, _times(g, x, 1 / alpha), "elu", 1.0), alpha)


@form("PRelu")
def prelu(g: Any, node: Any, x: Any, slope: Any) -> Any:
    """x above 0, otherwise slope * x. A slope per channel is a parameter of one operator."""
    if node.version < 7 and slope.ndim == 1 and x.ndim > 2 and slope.fixed(0) != 1:
        slope = g.reshape(slope, [slope.fixed(0), *[1] * (x.ndim - 2)])
    if not x.dtype.startswith(("float", "bfloat")):
        below = calculate(g, "*", slope, calculate(g, "min", x, 0))
        return wrapped(g, calculate(g, "+", calculate(g, "max", x, 0), below, node.name), x.element)
    channels = x.fixed(1) if x.ndim > 1 else None
    behind = (channels, *[1] * (x.ndim - 2))
    if channels is not None and slope.shape in (behind, (1, *behind)):
        return g.emit("LeakyReLU", [x, g.reshape(slope, [channels])], name=node.name, act_type="prelu")
    above = g.emit("_npi_greater_scalar", [x], scalar=0.0)
    factor = g.emit("_npi_where_lscalar", [above, g.cast(slope, x.dtype)], scalar=1.0)
    return g.emit("broadcast_mul", [x, factor], name=node.name)


@form("ThresholdedRelu")
def thresholded_relu(g: Any, node: Any, x: Any) -> Any:
    above = g.emit("_npi_greater_scalar", [x], scalar=node.attr("alpha", 1.0))
    return g.emit("_npi_where_rscalar", [above, x], name=node.name, scalar=0.0)


@form("Shrink")
def shrink(g: Any, node: Any, x: Any) -> Any:
    """x + bias below -lambd, x - bias above lambd, 0 between."""
    limit, bias = node.attr("lambd", 0.5), node.attr("bias", 0.0)
    below, above = g.emit("_npi_less_scalar", [x], scalar=-limit), g.emit("_npi_greater_scalar", [x], scalar=limit)
    raised, lowered = x, x
    if bias:
        wide = x if x.dtype.startswith(("float", "bfloat")) else g.cast(x, "float64")
        raised, lowered = (g.cast(calculate(g, sign, wide, bias), x.dtype) for sign in "+-")
    nothing = g.emit("zeros_like", [x])
    outer = g.emit("where", [above, lowered, nothing])
    return g.emit("where", [below, raised, outer], name=node.name)


@form("HardSigmoid")
def hard_sigmoid(g: Any, node: Any, x: Any) -> Any:
    alpha, beta = node.attr("alpha", 0.2), node.attr("beta", 0.5)
    return g.emit("hard_sigmoid", [x], name=node.name, alpha=alpha, beta=beta)


@form("HardSwish")
def hard_swish(g: Any, node: Any, x: Any) -> Any:
    gate = g.emit("hard_sigmoid", [x], alpha=1 / 6, beta=0.5)
    return g.emit("broadcast_mul", [x, gate], name=node.name)


@form("Softplus")
def softplus(g: Any, node: Any, x: Any) -> Any:
    return g.emit("Activation", [x], name=node.name, act_type="softrelu")


@form("Mish")
def mish(g: Any, node: Any, x: Any) -> Any:
    """x * tanh(softplus(x))"""
    gate = g.emit("tanh", [g.emit("Activation", [x], act_type="softrelu")])
    return g.emit("broadcast_mul", [x, gate], name=node.name)


@form("Gelu")
def gelu(g: Any, node: Any, x: Any) -> Any:
    if node.attr("approximate", "none") == "tanh":
        return gelu_by_tanh(g, x, node.name)
    return _leaky(g, node, x, "gelu")


def gelu_by_tanh(g: Any, x: Any, name: str = "") -> Any:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), which plans run as one operator."""
    cubic = calculate(g, "+", x, calculate(g, "*", g.emit("_power_scalar", [x], scalar=3), 0.044715))
    gate = g.emit("tanh", [calculate(g, "*", cubic, math.sqrt(2 / math.pi))])
    return calculate(g, "*", calculate(g, "*", x, 0.5), calculate(g, "+", gate, 1.0), name)


def _swish(g: Any, x: Any, alpha: float, name: str = "") -> Any:
    """x * sigmoid(alpha * x); plans run it as one operator if alpha is 1."""
    return g.emit("broadcast_mul", [x, g.emit("sigmoid", [_times(g, x, alpha)])], name=name)


@form("Swish")
def swish(g: Any, node: Any, x: Any) -> Any:
    return _swish(g, x, node.attr("alpha", 1.0), node.name)


@form("SwiGLU")
def swiglu(g: Any, node: Any, gate: Any, x: Any) -> Any:
    return g.emit("broadcast_mul", [_swish(g, gate, node.attr("alpha", 1.0)), x], name=node.name)


@form("Clip")
def clip(g: Any, node: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    """Limits, as numbers or as tensors; NaN stays. The upper limit counts where it is below the lower one."""
    if node.version < 11:
        low, high = (
            g.constant(np.array(node.attr(name)), name, x.dtype) if node.has(name) else None for name in ("min", "max")
        )
    if low is None and high is None:
        return x
    limits = [_number(limit) for limit in (low, high)]
    if None not in limits:
        return g.emit("clip", [x], name=node.name, a_min=limits[0], a_max=limits[1])
    if low is not None:
        x = g.arithmetic(node.name, ("broadcast_maximum", "_maximum_scalar", "_maximum_scalar"), x, low)
    if high is not None:
        x = g.arithmetic(node.name, ("broadcast_minimum", "_minimum_scalar", "_minimum_scalar"), x, high)
    return x


def _limit(g: Any, node: Any, name: str, dtype: str) -> Any:
    return g.constant(np.array(node.attr(name)), name, dtype) if node.has(name) else None


def _number(limit: Any) -> float | None:
    """A limit as a parameter, if it is known and float64 holds it."""
    if limit is None or not limit.is_const or limit.const.size != 1:
        return None
    number = limit.const.reshape(-1)[0].item()
    return number if float(number) == number else None


@form("Softmax", "LogSoftmax")
def softmax(g: Any, node: Any, x: Any) -> Any:
    op = "softmax" if node.op_type == "Softmax" else "log_softmax"
    return _along_axis(g, node, x, lambda data, axis: g.emit(op, [data], name=node.name, axis=axis))


@form("Hardmax")
def hardmax(g: Any, node: Any, x: Any) -> Any:
    """1 at the first largest element, 0 elsewhere."""

    def rows(data: Any, axis: int) -> Any:
        last = data.ndim - 1
        data = g.emit("SwapAxis", [data], dim1=axis, dim2=last) if axis != last else data
        places = g.emit("_npi_argmax", [data], axis=last)
        hot = g.emit("one_hot", [places], depth=g.dim(data, last), dtype=x.dtype)
        return g.emit("SwapAxis", [hot], dim1=axis, dim2=last) if axis != last else hot

    return _along_axis(g, node, x, rows)


def _along_axis(g: Any, node: Any, x: Any, make: Any) -> Any:
    """make(data, axis) for one axis; before opset 13 the axes from `axis` on are one."""
    if node.version >= 13:
        return make(x, node.attr("axis", -1) % max(x.ndim, 1))
    axis = node.attr("axis", 1)
    axis += x.ndim if axis < 0 else 0
    large = [number for number in range(axis, x.ndim) if x.fixed(number) != 1]
    if axis < x.ndim and len(large) <= 1:
        return make(x, large[0] if large else axis)
    sizes = g.dims(x)
    front, behind = total("*", [1, *sizes[:axis]]), total("*", [1, *sizes[axis:]])
    return _reshaped(g, make(_reshaped(g, x, (front, behind)), 1), tuple(sizes), node.name)


def _reshaped(g: Any, x: Any, sizes: tuple[Any, ...], name: str = "") -> Any:
    """Without -1, which stands for no certain size if there are no elements."""
    return g.emit("_np_reshape", [x], name=name, view=True, newshape=sizes)
