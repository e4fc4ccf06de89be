"""Random numbers. Seeds of the file are not used: hybridnet.random.seed sets the numbers of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arithmetic import calculate
from .._node import dtype_of
from .._table import form


@form("RandomNormal")
def random_normal(g: Any, node: Any) -> Any:
    mean, scale = node.attr("mean", 0.0), node.attr("scale", 1.0)
    return _drawn(g, node, "_random_normal", loc=mean, scale=scale)


@form("RandomUniform")
def random_uniform(g: Any, node: Any) -> Any:
    low, high = node.attr("low", 0.0), node.attr("high", 1.0)
    return _drawn(g, node, "_random_uniform", low=low, high=high)


def _drawn(g: Any, node: Any, op: str, **distribution: float) -> Any:
    dtype = dtype_of(node.attr("dtype", 1), node.proto)
    return g.emit(op, [], name=node.name, shape=tuple(node.attr("shape")), dtype=dtype, **distribution)


@form("RandomNormalLike")
def random_normal_like(g: Any, node: Any, like: Any) -> Any:
    mean, scale = node.attr("mean", 0.0), node.attr("scale", 1.0)
    return g.emit("_random_normal_like", [_in_dtype(g, node, like)], name=node.name, loc=mean, scale=scale)


@form("RandomUniformLike")
def random_uniform_like(g: Any, node: Any, like: Any) -> Any:
    low, high = node.attr("low", 0.0), node.attr("high", 1.0)
    return g.emit("_random_uniform_like", [_in_dtype(g, node, like)], name=node.name, low=low, high=high)


def _in_dtype(g: Any, node: Any, like: Any) -> Any:
    return g.cast(like, dtype_of(node.attr("dtype"), node.proto)) if node.has("dtype") else like


@form("Bernoulli")
def bernoulli(g: Any, node: Any, probability: Any) -> Any:
    """1 with the probability, 0 otherwise."""
    dtype = dtype_of(node.attr("dtype"), node.proto) if node.has("dtype") else probability.dtype
    drawn = g.emit("_random_uniform_like", [probability], low=0.0, high=1.0)
    return g.cast(g.emit("_npi_less", [drawn, probability]), dtype, node.name)


@form("Multinomial")
def multinomial(g: Any, node: Any, logits: Any) -> Any:
    """Classes by their unnormalized logarithms of probabilities."""
    dtype = dtype_of(node.attr("dtype", 6), node.proto)
    probabilities = g.emit("softmax", [logits], axis=-1)
    drawn = g.emit("_sample_multinomial", [probabilities], shape=(node.attr("sample_size", 1),), dtype="int32")
    return g.cast(drawn, dtype, node.name)


@form("Dropout")
def dropout(g: Any, node: Any, x: Any, ratio: Any = None, training: Any = None) -> Any:
    """Drops elements while the imported net is trained, and, if the file sets training_mode, in prediction, too."""
    ratio = g.constant(np.array(node.attr("ratio", 0.5), "float32"), "ratio") if ratio is None else ratio
    always = training is not None and training.is_const and bool(training.const)
    if ratio.is_const and (always or training is None or training.is_const):
        return _dropout(g, node, x, float(ratio.const), "always" if always else "training")
    if training is None or (training.is_const and not always):
        return x, g.cast(g.emit("ones_like", [x]), "bool")  # the identity; dropout needs a constant ratio
    return _dropout_by_values(g, node, x, g.cast(ratio, x.dtype), None if always else training)


def _dropout(g: Any, node: Any, x: Any, p: float, mode: str) -> Any:
    if not node.wants(1):
        return g.emit("Dropout", [x], name=node.name, p=p, mode=mode)
    factor = g.emit("Dropout", [g.emit("ones_like", [x])], p=p, mode=mode)
    kept = g.emit("_npi_not_equal_scalar", [factor], scalar=0)
    return g.emit("broadcast_mul", [x, factor], name=node.name), kept if node.version >= 10 else g.cast(kept, x.dtype)


def _dropout_by_values(g: Any, node: Any, x: Any, ratio: Any, training: Any) -> Any:
    """The ratio, or whether elements are dropped, is known when the graph runs."""
    kept = g.emit("_npi_greater_equal", [g.emit("_random_uniform_like", [x], low=0.0, high=1.0), ratio])
    if training is not None:
        kept = g.emit("_npi_bitwise_or", [kept, g.emit("_npi_bitwise_not", [training])])
        ratio = g.emit("_npi_where_rscalar", [training, ratio], scalar=0.0)
    scaled = calculate(g, "/", x, calculate(g, "-", 1.0, ratio))
    return g.emit("_npi_where_rscalar", [kept, scaled], name=node.name, scalar=0.0), kept
