"""Activations, softmax, and output layers whose losses are in their gradients."""

from __future__ import annotations

import math
from typing import Any

from .._export_errors import refuse_use
from .._export_table import export_form
from .._export_values import Tensor, product

_ACTIVATIONS = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign",
}  # fmt: skip


@export_form("Activation")
def _activation(g: Any, node: Any) -> Tensor:
    return g.emit(_ACTIVATIONS[node.params["act_type"]], node.inputs[0])


@export_form("_silu")
def _silu(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    return g.emit("Mul", x, g.emit("Sigmoid", x))


@export_form("_contrib_hard_swish")
def _hard_swish(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    if g.opset >= 14:
        return g.emit("HardSwish", x)
    return g.emit("Mul", x, g.emit("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def gelu(g: Any, x: Tensor) -> Tensor:
    """x times the normal distribution function; runtimes fuse this form where the opset has no Gelu."""
    if g.opset >= 20:
        return g.emit("Gelu", x)
    grown = g.emit("Add", g.emit("Erf", g.emit("Div", x, math.sqrt(2))), 1)
    return g.emit("Mul", g.emit("Mul", x, grown), 0.5)


@export_form("_gelu_tanh")
def _gelu_tanh(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    if g.opset >= 20:
        return g.emit("Gelu", x, approximate="tanh")
    cube = g.emit("Mul", g.emit("Mul", g.emit("Mul", x, x), x), 0.044715)
    argument = g.emit("Mul", g.emit("Add", x, cube), math.sqrt(2 / math.pi))
    return g.emit("Mul", g.emit("Mul", x, 0.5), g.emit("Add", g.emit("Tanh", argument), 1))


@export_form("LeakyReLU", "_plain_leaky_relu")
def _leaky_relu(g: Any, node: Any) -> Any:
    x, p = node.inputs[0], node.params
    kind = p["act_type"]
    if kind == "gelu":
        return gelu(g, x)
    if kind == "elu":
        return g.emit("Elu", x, alpha=p["slope"])
    if kind == "selu":
        return g.emit("Selu", x, alpha=1.6732632423543772, gamma=1.0507009873554805)
    if kind == "prelu":
        return _prelu(g, x, node.inputs[1])
    if kind == "rrelu":
        if node.train:
            raise refuse_use(node, "random slopes are for training", fix="export in prediction mode")
        slope = (p["lower_bound"] + p["upper_bound"]) / 2
        slopes = [g.full(x.dims, slope, x.dtype)] if node.reads(1) else []
        return [g.emit("LeakyRelu", x, alpha=slope), *slopes]
    return g.emit("LeakyRelu", x, alpha=p["slope"])


def _prelu(g: Any, x: Tensor, slope: Tensor) -> Tensor:
    """A slope per channel, the second axis."""
    if slope.ndim == 1 and slope.dim(0) != 1 and x.ndim > 2:
        slope = g.unsqueeze(slope, range(1, x.ndim - 1))
    return g.emit("PRelu", x, slope)


# ------------------------------------------------------------------------------------------------------------- softmax
def _softmax_form(name: str, op: str, sign: int = 1) -> None:
    def form(g: Any, node: Any) -> Tensor:
        x, p = node.inputs[0], node.params
        axis = p["axis"] % x.ndim
        target = node.outputs[0].dtype
        if "float64" in (target, x.dtype):
            x = g.cast(x, "float64")
        elif target == "float32":
            x = g.cast(x, target)
        temperature = p.get("temperature")
        if temperature not in (None, 1):
            x = g.emit("Div", x, temperature)
        if sign < 0:
            x = g.emit("Neg", x)
        if len(node.inputs) == 1:
            return g.emit(op, x, axis=axis)
        inside = _within_length(g, x, node.inputs[1], axis)
        made = g.emit(op, g.where(inside, x, -math.inf), axis=axis)
        return g.where(inside, made, 0)

    export_form(name)(form)


def _within_length(g: Any, x: Tensor, lengths: Tensor, axis: int) -> Tensor:
    places = g.unsqueeze(g.iota(x.dim(axis)), range(1, x.ndim - axis))
    sizes = [1 if other == axis else x.dim(other) for other in range(x.ndim)]
    return g.emit("Less", places, g.reshape(g.cast(lengths, "int64"), sizes))


_softmax_form("softmax", "Softmax")
_softmax_form("log_softmax", "LogSoftmax")
_softmax_form("softmin", "Softmax", -1)


@export_form("SoftmaxActivation")
def _softmax_activation(g: Any, node: Any) -> Tensor:
    return g.emit("Softmax", node.inputs[0], axis=1 if node.params["mode"] == "channel" else -1)


# ------------------------------------------------------------------------------------------------------- output layers
@export_form("SoftmaxOutput")
def _softmax_output(g: Any, node: Any) -> Tensor:
    """The label is read in training alone."""
    x, p = node.inputs[0], node.params
    if p["multi_output"]:
        return g.emit("Softmax", x, axis=1)
    if p["preserve_shape"] or x.ndim <= 2:
        return g.emit("Softmax", x, axis=-1)
    rows = g.reshape(x, [x.dim(0), product(x.dims[1:])])
    return g.reshape(g.emit("Softmax", rows, axis=-1), x.dims)


@export_form("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput")
def _regression_output(g: Any, node: Any) -> Tensor:
    first: Tensor = node.inputs[0]
    return first


@export_form("LogisticRegressionOutput")
def _logistic_output(g: Any, node: Any) -> Tensor:
    return g.emit("Sigmoid", node.inputs[0])


@export_form("softmax_cross_entropy")
def _softmax_cross_entropy(g: Any, node: Any) -> Tensor:
    """A label that is no class has the least probability."""
    x, label = node.inputs
    rows = g.emit("LogSoftmax", x, axis=-1)
    classes = g.cast(g.unsqueeze(label, [1]), "int64")
    is_class = g.emit("Equal", classes, g.iota(x.dim(1)))
    chosen = g.reduce("Max", g.where(is_class, rows, -math.inf), [1], keepdims=False)
    least = g.emit("Max", chosen, math.log(1e-8))
    return g.emit("Neg", g.reduce("Sum", least, [0], keepdims=True))


@export_form("Dropout")
def _dropout(g: Any, node: Any) -> Any:
    x, p = node.inputs[0], node.params
    if node.train or p["mode"] == "always":
        return _random_dropout(g, node)
    if node.reads(1):
        return x, g.full([size if axis not in _masked(p, x) else 1 for axis, size in enumerate(x.dims)], 1, "uint8")
    return x


def _masked(p: Any, x: Tensor) -> set[int]:
    return {axis % x.ndim for axis in p["axes"]}


def _random_dropout(g: Any, node: Any) -> Any:
    x, p = node.inputs[0], node.params
    if p["p"] >= 1:
        return g.emit("Mul", x, 0), g.full(node.dims(1), 0, "uint8")
    like = g.full([1 if axis in _masked(p, x) else size for axis, size in enumerate(x.dims)], 0, "float32")
    drawn = g.emit("RandomUniformLike", like, low=0.0, high=1.0)
    drawn.spec = like.spec
    kept = g.emit("GreaterOrEqual", drawn, p["p"])
    factor = g.where(kept, g.like(x, 1 / (1 - p["p"])), 0)
    return g.emit("Mul", x, factor), g.cast(kept, "uint8")
