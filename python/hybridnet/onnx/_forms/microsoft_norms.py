"""Normalizations of ONNX Runtime's domain: with sums or embeddings before them, and with activations after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._arithmetic import calculate, cut
from .._standard import standard
from .._table import form
from .._values import Value

_DOMAIN = "com.microsoft"


def _sum(g: Any, values: Sequence[Value | None]) -> Value:
    made: Value | None = None
    for value in values:
        if value is not None:
            made = value if made is None else calculate(g, "+", made, value)
    assert made is not None
    return made


@form("SkipLayerNormalization", domain=_DOMAIN)
def skip_layer_norm(
    g: Any,
    node: Any,
    x: Value,
    skip: Value,
    gamma: Value,
    beta: Value | None = None,
    bias: Value | None = None,
) -> Any:
    """LayerNorm of x + skip + bias; the sum is output 3."""
    total = _sum(g, [x, skip, bias])
    wanted = node.wants(1) or node.wants(2)
    made = standard(
        g,
        "LayerNormalization",
        [total, gamma, beta],
        node.name,
        outputs=3 if wanted else 1,
        epsilon=node.attr("epsilon", 1e-12),
    )
    y, mean, deviation = made if isinstance(made, tuple) else (made, None, None)
    return y, mean, deviation, total


@form("SkipSimplifiedLayerNormalization", domain=_DOMAIN)
def skip_rms_norm(g: Any, node: Any, x: Value, skip: Value, gamma: Value, bias: Value | None = None) -> Any:
    """RMSNorm of x + skip + bias; the sum is output 3."""
    total = _sum(g, [x, skip, bias])
    y, factor = _rms_norm(g, node, total, gamma, node.attr("epsilon", 1e-12), -1, node.wants(2))
    return y, None, factor, total


@form("SimplifiedLayerNormalization")
@form("SimplifiedLayerNormalization", domain=_DOMAIN)
def simplified_layer_norm(g: Any, node: Any, x: Value, gamma: Value) -> Any:
    """RMSNorm. Output 1 is the factor of each row."""
    return _rms_norm(g, node, x, gamma, node.attr("epsilon", 1e-5), node.attr("axis", -1), node.wants(1))


def _rms_norm(g: Any, node: Any, x: Value, gamma: Value, epsilon: float, axis: int, with_factor: bool) -> Any:
    y = standard(g, "RMSNormalization", [x, gamma], node.name, axis=axis, epsilon=epsilon)
    if not with_factor:
        return y, None
    axes = tuple(range(axis % x.ndim, x.ndim))
    squares = g.emit("mean", [g.emit("square", [g.cast(x, "float32")])], axis=axes, keepdims=True)
    return y, g.emit("rsqrt", [calculate(g, "+", squares, epsilon)])


@form("EmbedLayerNormalization", domain=_DOMAIN)
def embed_layer_norm(
    g: Any,
    node: Any,
    words: Value,
    segments: Value | None,
    word_table: Value,
    position_table: Value,
    segment_table: Value | None,
    gamma: Value,
    beta: Value,
    mask: Value | None = None,
    positions: Value | None = None,
) -> Any:
    """LayerNorm of the sum of the embeddings of words, positions and segments; the numbers of words; the sum."""
    if positions is None:
        rows = cut(g, position_table, 0, 0, g.dim(words, 1))
    else:
        rows = _rows(g, position_table, positions)
    parts = [_rows(g, word_table, words), rows]
    if segments is not None and segment_table is not None:
        parts.append(_rows(g, segment_table, segments))
    total = _sum(g, parts)
    y = standard(g, "LayerNormalization", [total, gamma, beta], node.name, epsilon=node.attr("epsilon", 1e-12))
    if not node.wants(1):
        return y, None, total
    ones = g.emit("zeros_like", [words]) if mask is None else mask
    counts = g.emit("_np_sum", [g.cast(ones, "int32")], axis=1, dtype="int32")
    return y, counts, total


def _rows(g: Any, table: Value, numbers: Value) -> Value:
    return g.emit("take", [table, numbers], axis=0, mode="clip")


@form("GroupNorm", domain=_DOMAIN)
def group_norm(g: Any, node: Any, x: Value, gamma: Value, beta: Value) -> Value:
    """GroupNorm with one factor per channel, then SiLU if the attribute `activation` is 1."""
    last = bool(node.attr("channels_last", 1))
    if last:
        x = g.emit("transpose", [x], axes=(0, x.ndim - 1, *range(1, x.ndim - 1)))
    gamma, beta = (g.cast(value, x.dtype) for value in (gamma, beta))
    y = standard(
        g,
        "GroupNormalization",
        [x, gamma, beta],
        node.name,
        num_groups=node.attr("groups"),
        epsilon=node.attr("epsilon", 1e-5),
    )
    if node.attr("activation", 0):
        y = calculate(g, "*", y, g.emit("sigmoid", [y]))
    return g.emit("transpose", [y], axes=(0, *range(2, x.ndim), 1)) if last else y


@form("SkipGroupNorm", domain=_DOMAIN)
def skip_group_norm(
    g: Any, node: Any, x: Value, gamma: Value, beta: Value, skip: Value, bias: Value | None = None
) -> Any:
    """GroupNorm of x + skip + bias, and the sum."""
    last = bool(node.attr("channels_last", 1))
    middle = [1] * (x.ndim - 2)
    if skip.ndim == 2:
        sizes = g.dims(skip)
        skip = g.reshape(skip, [sizes[0], *middle, sizes[1]] if last else [*sizes, *middle])
    if bias is not None and not last:
        bias = g.reshape(bias, [g.dim(bias, 0), *middle])
    total = _sum(g, [x, skip, bias])
    return group_norm(g, node, total, gamma, beta), total


__all__ = [
    "embed_layer_norm",
    "group_norm",
    "simplified_layer_norm",
    "skip_group_norm",
    "skip_layer_norm",
    "skip_rms_norm",
]
