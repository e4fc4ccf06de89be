"""Normalizations: of batches, examples, channels, groups and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arithmetic import calculate, cut, total
from .._errors import wrong
from .._sizes import Number, Size, apply
from .._table import form
from .._values import Value
from .._windows import pad

_DTYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}


def _row(g: Any, size: Number, value: float, like: Value, name: str) -> Value:
    """A vector of one value, which training does not change."""
    if isinstance(size, Size):
        return g.emit("_full", [], name=name, shape=(size,), value=value, dtype=like.dtype)
    return g.constant(np.full(int(size), value), name, like.dtype, trainable=False)


def _per_channel(g: Any, value: Value, ndim: int, axis: int = 1) -> Value:
    """A vector of channels as a tensor that broadcasts along the other axes."""
    return g.reshape(value, [g.dim(value, 0) if i == axis else 1 for i in range(ndim)])


# ------------------------------------------------------------------------------------------------------------- batches
@form("BatchNormalization")
def batch_norm(g: Any, node: Any, x: Value, scale: Value, bias: Value, mean: Value, var: Value) -> Any:
    """BatchNorm, whose running statistics are states.

    A node that has outputs for statistics, or gets them from other nodes, is written out.
    """
    trains = bool(node.attr("training_mode", 0)) or (node.version < 14 and any(node.wants(i) for i in range(1, 5)))
    parameters = (scale, bias, mean, var)
    if x.ndim == 1:
        whole = g.reshape(x, [-1, 1])
        results = _batch_norm(g, node, whole, parameters, trains)
        return (g.reshape(results[0], [-1], node.name), *results[1:])
    return _batch_norm(g, node, x, parameters, trains)


def _batch_norm(g: Any, node: Any, x: Value, parameters: Sequence[Value], trains: bool) -> tuple[Value, ...]:
    scale, bias, mean, var = parameters
    epsilon, momentum = node.attr("epsilon", 1e-5), node.attr("momentum", 0.9)
    if any(value.ndim != 1 for value in parameters):  # version 7 without `spatial`: statistics of each element
        axes: tuple[int, ...] = (0,)
        scale, bias, mean, var = (g.reshape(value, [1, *g.dims(value)]) for value in parameters)
    elif trains or not (mean.is_const and var.is_const):
        axes = (0, *range(2, x.ndim))
        scale, bias, mean, var = (_per_channel(g, value, x.ndim) for value in parameters)
    else:
        dtype = "float32" if x.dtype in ("float16", "bfloat16") else x.dtype
        scale, bias, mean, var = (g.cast(value, dtype) for value in (scale, bias, mean, var))
        attributes = {"eps": epsilon, "momentum": momentum, "fix_gamma": False}
        return (g.emit("BatchNorm", [x, scale, bias, g.state(mean), g.state(var)], name=node.name, **attributes),)
    dtype = mean.dtype
    data, scale, bias = (g.cast(value, dtype) for value in (x, scale, bias))
    used, spread = g.emit("moments", [data], axes=axes, keepdims=True) if trains else (mean, var)
    deviation = g.emit("sqrt", [calculate(g, "+", spread, epsilon)])
    y = calculate(g, "*", calculate(g, "-", data, used), calculate(g, "/", scale, deviation))
    y = g.cast(calculate(g, "+", y, bias), x.dtype, node.name)
    if not trains:
        return (y,)
    found = (_running(g, mean, used, momentum), _running(g, var, spread, momentum), used, spread)
    return (
        y,
        *(
            g.reshape(value, g.dims(given))
            for value, given in zip(found, [*parameters[2:], *parameters[2:]], strict=True)
        ),
    )


def _running(g: Any, old: Value, new: Value, momentum: float) -> Value:
    return calculate(g, "+", calculate(g, "*", old, momentum), calculate(g, "*", new, 1 - momentum))


# ------------------------------------------------------------------------------------------------ channels and groups
@form("InstanceNormalization")
def instance_norm(g: Any, node: Any, x: Value, scale: Value, bias: Value) -> Value:
    """Each channel of each example."""
    return g.emit("InstanceNorm", [x, scale, bias], name=node.name, eps=node.attr("epsilon", 1e-5))


@form("GroupNormalization")
def group_norm(g: Any, node: Any, x: Value, scale: Value, bias: Value) -> Value:
    """GroupNorm. Since version 21 scale and bias are those of channels, which it does not have."""
    groups, epsilon = node.attr("num_groups"), node.attr("epsilon", 1e-5)
    if node.version < 21:
        return g.emit("GroupNorm", [x, scale, bias], name=node.name, num_groups=groups, eps=epsilon)
    if not isinstance(g.dim(x, 1), Size) and g.dim(x, 1) == groups:
        return g.emit("InstanceNorm", [x, scale, bias], name=node.name, eps=epsilon)
    plain = (_row(g, groups, 1.0, x, "ones"), _row(g, groups, 0.0, x, "zeros"))
    y = g.emit("GroupNorm", [x, *plain], name=node.name, num_groups=groups, eps=epsilon)
    y = calculate(g, "*", y, _per_channel(g, scale, x.ndim))
    return calculate(g, "+", y, _per_channel(g, bias, x.ndim))


# ---------------------------------------------------------------------------------------------------------------- rows
def _as_rows(g: Any, x: Value, axis: int) -> Value:
    """All axes from `axis` on joined to one."""
    return x if axis == x.ndim - 1 else g.reshape(x, [*g.dims(x)[:axis], total("*", g.dims(x)[axis:])])


def _fits(g: Any, value: Value | None, x: Value, axis: int) -> bool:
    """Whether a factor or summand has one element for each element of a row."""
    return value is None or (value.ndim == x.ndim - axis and value.shapes == tuple(s[axis:] for s in x.shapes))


@form("LayerNormalization")
def layer_norm(g: Any, node: Any, x: Value, scale: Value, bias: Value | None = None) -> Any:
    """LayerNorm of rows. A scale or bias that is not one row is applied after it."""
    axis, epsilon = node.attr("axis", -1) % x.ndim, node.attr("epsilon", 1e-5)
    rows = _as_rows(g, x, axis)
    size = g.dim(rows, axis)
    inside = _fits(g, scale, x, axis) and _fits(g, bias, x, axis) and scale.dtype == x.dtype
    gamma = g.reshape(scale, [size]) if inside and scale.ndim != 1 else scale
    beta = _row(g, size, 0.0, x, "zeros") if bias is None else bias
    if inside and bias is not None and bias.ndim != 1:
        beta = g.reshape(bias, [size])
    if not inside:
        gamma, beta = _row(g, size, 1.0, x, "ones"), _row(g, size, 0.0, x, "zeros")
    with_statistics = node.wants(1) or node.wants(2)
    made = g.emit("LayerNorm", [rows, gamma, beta], name=node.name, eps=epsilon, output_mean_var=with_statistics)
    y, *statistics = made if with_statistics else (made,)
    y = y if rows is x else g.reshape(y, g.dims(x), node.name)
    if not inside:
        y = calculate(g, "*", y, scale)
        y = y if bias is None else calculate(g, "+", y, bias)
    if not with_statistics:
        return y
    shape = [*g.dims(x)[:axis], *[1] * (x.ndim - axis)]
    dtype = _DTYPES.get(node.attr("stash_type", 1), "float32")
    mean, deviation = (g.reshape(g.cast(value, dtype), shape) for value in statistics)
    return y, mean, g.emit("reciprocal", [deviation])


@form("RMSNormalization")
def rms_norm(g: Any, node: Any, x: Value, scale: Value) -> Value:
    """Rows divided by the root of their mean square. A scale that is not one row is applied after it."""
    axis, epsilon = node.attr("axis", -1) % x.ndim, node.attr("epsilon", 1e-5)
    rows = _as_rows(g, x, axis)
    size = g.dim(rows, axis)
    inside = _fits(g, scale, x, axis) and scale.dtype == x.dtype
    gamma = g.reshape(scale, [size]) if inside else _row(g, size, 1.0, x, "ones")
    y = g.emit("_contrib_rms_norm", [rows, gamma], name=node.name, eps=epsilon)
    y = y if rows is x else g.reshape(y, g.dims(x), node.name)
    return y if inside else calculate(g, "*", g.cast(y, scale.dtype), scale)


# --------------------------------------------------------------------------------------------------------------- others
@form("LRN")
def lrn(g: Any, node: Any, x: Value) -> Value:
    """LRN has odd windows: for even ones the squares of the channels around are added."""
    size, alpha, beta, knorm = (
        node.attr("size"),
        node.attr("alpha", 1e-4),
        node.attr("beta", 0.75),
        node.attr("bias", 1.0),
    )
    if size % 2:
        return g.emit("LRN", [x], name=node.name, alpha=alpha, beta=beta, knorm=knorm, nsize=size)
    rest = [0] * (x.ndim - 2)
    squares = pad(g, g.emit("square", [x]), [(size - 1) // 2, *rest], [size // 2, *rest], first_axis=1)
    channels = g.dim(x, 1)
    parts = [cut(g, squares, 1, begin, apply("+", channels, begin)) for begin in range(size)]
    sums = g.emit("add_n", parts, num_args=size)
    base = calculate(g, "+", calculate(g, "*", sums, alpha / size), knorm)
    return calculate(g, "*", x, g.emit("_power_scalar", [base], scalar=-beta), node.name)


@form("MeanVarianceNormalization")
def mean_variance_norm(g: Any, node: Any, x: Value) -> Value:
    """Mean 0 and variance 1 over the axes."""
    axes = node.attr("axes") or [0, 2, 3]
    mean, variance = g.emit("moments", [x], axes=tuple(axes), keepdims=True)
    deviation = calculate(g, "+", g.emit("sqrt", [variance]), 1e-9)
    return calculate(g, "/", calculate(g, "-", x, mean), deviation, node.name)


@form("LpNormalization")
def lp_norm(g: Any, node: Any, x: Value) -> Value:
    """Rows divided by their norm; rows of zeros stay."""
    axis, power = node.attr("axis", -1) % x.ndim, node.attr("p", 2)
    if power not in (1, 2):
        raise wrong(f"p is {power}", because="norms 1 and 2 are defined", node=node.proto)
    norm = g.emit("norm", [x], ord=power, axis=(axis,), keepdims=True)
    is_zero = calculate(g, "==", norm, 0)
    return calculate(g, "/", x, calculate(g, "+", norm, is_zero), node.name)
