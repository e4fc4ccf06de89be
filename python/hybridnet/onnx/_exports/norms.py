"""Normalization layers, in their form for prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._export_errors import refuse_use
from .._export_table import export_form
from .._export_values import Tensor, product


# ---------------------------------------------------------------------------------------------------------- batch norm
def batch_normalized(g: Any, node: Any, inputs: Sequence[Tensor]) -> Tensor:
    """Normalizes channels by the moving statistics."""
    x, gamma, beta, mean, variance = inputs
    p = node.params
    axis = p["axis"] % x.ndim
    if p["fix_gamma"]:
        gamma = g.full(gamma.dims, 1, gamma.dtype)
    dtype = x.dtype
    if gamma.dtype != dtype:
        x = g.cast(x, gamma.dtype)
    eps = float(p["eps"])
    if axis == 1:
        made = g.emit("BatchNormalization", x, gamma, beta, mean, variance, epsilon=eps)
        made.spec = x.spec
        return g.cast(made, dtype)
    factor = g.emit("Div", gamma, g.emit("Sqrt", g.emit("Add", variance, eps)))
    shift = g.emit("Sub", beta, g.emit("Mul", mean, factor))
    after = range(1, x.ndim - axis)
    factor, shift = (g.unsqueeze(value, after) for value in (factor, shift))
    return g.cast(g.emit("Add", g.emit("Mul", x, factor), shift), dtype)


def _with_statistics(g: Any, node: Any, output: Tensor) -> list[Tensor | None]:
    mean, variance = node.inputs[3:5]
    second: Tensor | None = variance
    if node.op != "_contrib_SyncBatchNorm":
        deviation = g.emit("Sqrt", g.emit("Add", variance, float(node.params["eps"]))) if node.reads(2) else None
        second = g.emit("Reciprocal", deviation) if deviation is not None else None
    return [output, mean, second, mean, variance]


def _check_prediction(node: Any) -> None:
    if node.train and not node.params.get("use_global_stats"):
        raise refuse_use(node, "statistics of batches are for training", fix="export in prediction mode")


@export_form("BatchNorm", "_contrib_SyncBatchNorm")
def _batch_norm(g: Any, node: Any) -> list[Tensor | None]:
    _check_prediction(node)
    params = {"axis": 1, **node.params}
    node.params.update(params)
    return _with_statistics(g, node, batch_normalized(g, node, node.inputs))


@export_form("_contrib_BatchNormWithReLU")
def _batch_norm_relu(g: Any, node: Any) -> list[Tensor | None]:
    _check_prediction(node)
    return _with_statistics(g, node, g.emit("Relu", batch_normalized(g, node, node.inputs)))


# ---------------------------------------------------------------------------------------------------------- layer norm
def _along(g: Any, x: Tensor, values: Tensor, axis: int) -> Tensor:
    """One number per element of an axis, so that it broadcasts against x."""
    return g.unsqueeze(values, range(1, x.ndim - axis))


def standardized(g: Any, x: Tensor, axes: Sequence[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(variance + eps) over axes; the mean and the root, with sizes 1 there."""
    mean = g.reduce("Mean", x, axes, keepdims=True)
    distance = g.emit("Sub", x, mean)
    variance = g.reduce("Mean", g.emit("Mul", distance, distance), axes, keepdims=True)
    root = g.emit("Sqrt", g.emit("Add", variance, eps))
    return g.emit("Div", distance, root), mean, root


@export_form("LayerNorm")
def _layer_norm(g: Any, node: Any) -> Any:
    x, gamma, beta = node.inputs
    axis, eps = node.params["axis"] % x.ndim, float(node.params["eps"])
    if g.opset >= 17 and axis == x.ndim - 1 and not (node.reads(1) or node.reads(2)):
        return g.emit("LayerNormalization", x, gamma, beta, axis=-1, epsilon=eps, spec=x.spec)
    made, mean, root = standardized(g, x, [axis], eps)
    scaled = g.emit("Mul", made, _along(g, x, gamma, axis))
    return g.emit("Add", scaled, _along(g, x, beta, axis)), mean, root


@export_form("_contrib_rms_norm")
def _rms_norm(g: Any, node: Any) -> Any:
    x, gamma = node.inputs
    axis, eps = node.params["axis"] % x.ndim, float(node.params["eps"])
    if g.opset >= 23 and axis == x.ndim - 1 and not node.reads(1):
        return g.emit("RMSNormalization", x, gamma, axis=-1, epsilon=eps, spec=x.spec)
    wide = g.cast(x, node.outputs[1].dtype)
    squares = g.reduce("Mean", g.emit("Mul", wide, wide), [axis], keepdims=True)
    root = g.emit("Sqrt", g.emit("Add", squares, eps))
    made = g.cast(g.emit("Div", wide, root), x.dtype)
    return g.emit("Mul", made, _along(g, x, gamma, axis)), root


# ------------------------------------------------------------------------------------------------ groups of one example
def _grouped(g: Any, x: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float) -> Tensor:
    rest = x.dim(1) // groups if groups else 1
    rows = g.reshape(x, [x.dim(0), groups, product([rest, *x.dims[2:]])])
    made = g.emit("InstanceNormalization", rows, gamma, beta, epsilon=eps, spec=rows.spec)
    return g.reshape(made, x.dims)


def _moments(g: Any, node: Any, groups: int, root: bool) -> list[Tensor]:
    """Mean, and standard deviation or variance, of each group."""
    x, eps = node.inputs[0], float(node.params["eps"])
    rows = g.reshape(x, [x.dim(0), groups, product([x.dim(1) // groups, *x.dims[2:]])])
    mean = g.reduce("Mean", rows, [2], keepdims=True)
    distance = g.emit("Sub", rows, mean)
    variance = g.reduce("Mean", g.emit("Mul", distance, distance), [2], keepdims=True)
    second = g.emit("Sqrt", g.emit("Add", variance, eps)) if root else variance
    return [g.squeeze(mean, [2]), g.squeeze(second, [2])]


@export_form("GroupNorm")
def _group_norm(g: Any, node: Any) -> list[Tensor]:
    x, gamma, beta = node.inputs
    groups = int(node.params["num_groups"])
    made = _grouped(g, x, gamma, beta, groups, float(node.params["eps"]))
    return [made, *(_moments(g, node, groups, root=True) if node.reads(1) or node.reads(2) else [])]


@export_form("InstanceNorm")
def _instance_norm(g: Any, node: Any) -> list[Tensor]:
    x, gamma, beta = node.inputs
    eps = float(node.params["eps"])
    if x.ndim == 2:
        made = _grouped(g, x, gamma, beta, int(x.dim(1)), eps)
    else:
        made = g.emit("InstanceNormalization", x, gamma, beta, epsilon=eps, spec=x.spec)
    return [made, *(_moments(g, node, int(x.dim(1)), root=False) if node.reads(1) or node.reads(2) else [])]


@export_form("L2Normalization")
def _l2_normalization(g: Any, node: Any) -> list[Tensor]:
    x, p = node.inputs[0], node.params
    axes = {"instance": range(1, x.ndim), "channel": [1], "spatial": range(2, x.ndim)}[p["mode"]]
    squares = g.reduce("Sum", g.emit("Mul", x, x), axes, keepdims=True)
    root = g.emit("Sqrt", g.emit("Add", squares, p["eps"]))
    return [g.emit("Div", x, root), *([g.reshape(root, node.dims(1))] if node.reads(1) else [])]


@export_form("LRN")
def _lrn(g: Any, node: Any) -> list[Tensor]:
    x, p = node.inputs[0], node.params
    if node.reads(1):
        raise refuse_use(node, "the base of the power is for gradients")
    attributes = {"alpha": p["alpha"], "beta": p["beta"], "bias": p["knorm"], "size": int(p["nsize"])}
    rank = x.ndim
    image = g.reshape(x, [*x.dims, *[1] * (4 - rank)]) if rank < 4 else x  # runtimes take four axes
    return [g.reshape(g.emit("LRN", image, spec=image.spec, **attributes), x.dims)]
