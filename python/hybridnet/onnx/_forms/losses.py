"""Losses of classification."""

from __future__ import annotations

from typing import Any

from .._arithmetic import calculate
from .._table import form


@form("NegativeLogLikelihoodLoss")
def negative_log_likelihood(g: Any, node: Any, log_probability: Any, target: Any, weight: Any = None) -> Any:
    return _loss(g, node, log_probability, target, weight)


@form("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(g: Any, node: Any, scores: Any, target: Any, weight: Any = None) -> Any:
    log_probability = g.emit("log_softmax", [scores], axis=1)
    return _loss(g, node, log_probability, target, weight), log_probability


def _loss(g: Any, node: Any, log_probability: Any, target: Any, weight: Any) -> Any:
    """Weighted losses of the targets' classes, as they are, their sum, or their sum divided by that of the weights."""
    reduction = node.attr("reduction", "mean")
    counted = None
    if node.has("ignore_index"):
        counted = g.emit("_npi_not_equal_scalar", [target], scalar=node.attr("ignore_index"))
        target = calculate(g, "*", target, g.cast(counted, target.dtype))  # a class that exists
    losses = g.emit("negative", [g.emit("pick", [log_probability, target], axis=1)])
    weights = None
    if weight is not None:
        weights = g.emit("take", [weight, target])
        losses = calculate(g, "*", losses, weights)
    if counted is not None:
        losses = _where(g, counted, losses)
        weights = g.cast(counted, losses.dtype) if weights is None else _where(g, counted, weights)
    if reduction == "none":
        return losses
    if reduction == "mean" and weights is None:
        return g.emit("_npi_mean", [losses], name=node.name)
    total = g.emit("_np_sum", [losses], name=node.name)
    return calculate(g, "/", total, g.emit("_np_sum", [weights]), node.name) if reduction == "mean" else total


def _where(g: Any, condition: Any, x: Any) -> Any:
    return g.emit("_npi_where_rscalar", [condition, x], scalar=0.0)
