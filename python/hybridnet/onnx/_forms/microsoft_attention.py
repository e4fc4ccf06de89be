"""Attention of ONNX Runtime's domain: with the projections inside, or of projected queries, keys and values."""

from __future__ import annotations

from typing import Any

from .._arithmetic import calculate, count, cut
from .._byte_products import multiply_bytes
from .._errors import refuse
from .._heads import EXCLUDED, attend, causal_mask, heads_of, joined_heads, key_mask, rotated
from .._sizes import apply
from .._standard import standard
from .._table import form
from .._values import Value
from .quantized_layers import scalar

_DOMAIN = "com.microsoft"


def _refuse_shared_buffers(node: Any, *inputs: Any) -> None:
    if node.attr("past_present_share_buffer", 0) or any(value is not None for value in inputs):
        raise refuse(
            "past and present in one buffer are not supported",
            because="operators of a graph do not write into their inputs",
            fix="export the model without shared buffers",
            node=node.proto,
        )


@form("Attention", domain=_DOMAIN)
def attention(
    g: Any,
    node: Any,
    x: Value,
    weights: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    past: Value | None = None,
    attention_bias: Value | None = None,
    past_length: Value | None = None,
) -> Any:
    """Projections of x to queries, keys and values, and attention."""
    _refuse_shared_buffers(node, past_length)
    projected = standard(g, "MatMul", [x, weights], node.name)
    if bias is not None:
        projected = calculate(g, "+", projected, bias)
    return _self_attention(g, node, projected, mask, past, attention_bias)


@form("QAttention", domain=_DOMAIN)
def qattention(
    g: Any,
    node: Any,
    x: Value,
    weights: Value,
    bias: Value,
    scale: Value,
    weight_scale: Value,
    mask: Value | None = None,
    zero: Value | None = None,
    weight_zero: Value | None = None,
    past: Value | None = None,
) -> Any:
    """Attention whose projections multiply bytes."""
    _refuse_shared_buffers(node)
    sums = multiply_bytes(g, node, x, zero, weights, weight_zero)
    steps = calculate(g, "*", scalar(g, scale), scalar(g, weight_scale))
    projected = calculate(g, "+", calculate(g, "*", g.cast(sums, "float32"), steps), bias)
    return _self_attention(g, node, projected, mask, past, None)


def _self_attention(
    g: Any, node: Any, projected: Value, mask: Value | None, past: Value | None, attention_bias: Value | None
) -> Any:
    if node.attr("do_rotary", 0):
        raise refuse("do_rotary is not supported for Attention", node=node.proto)
    sizes = node.attr("qkv_hidden_sizes")
    if not sizes:
        third = apply("//", g.dim(projected, 2), 3)
        sizes = [third] * 3
    ends = [sizes[0], apply("+", sizes[0], sizes[1]), None]
    parts = [cut(g, projected, 2, begin, end) for begin, end in zip((0, *ends[:2]), ends, strict=True)]
    query, key, value = (heads_of(g, part, node.attr("num_heads")) for part in parts)
    old = None if past is None else [g.emit("_np_squeeze", [part], axis=0) for part in _two(g, past)]
    y, key, value, scores = _mixed(g, node, query, key, value, old, mask, attention_bias)
    if not node.wants(1):
        return y
    return y, g.emit("_npi_stack", [key, value], num_args=2, axis=0, name=node.name), None, scores


def _two(g: Any, past: Value) -> list[Value]:
    return [cut(g, past, 0, index, index + 1) for index in range(2)]


def _mixed(
    g: Any,
    node: Any,
    query: Value,
    key: Value,
    value: Value,
    past: Any,
    mask: Value | None,
    attention_bias: Value | None,
) -> tuple[Value, Value, Value, Value]:
    """The output, the keys and values with those of the past, and the scores."""
    filtered = node.attr("mask_filter_value", -10000.0)
    length = 0
    if past is not None:
        length = g.dim(past[0], 2)
        key, value = (
            g.emit("Concat", [old, new], num_args=2, dim=2) for old, new in zip(past, (key, value), strict=True)
        )
    masks = [attention_bias]
    if mask is not None:
        if mask.ndim > 3:
            raise refuse("masks with 4 axes are not supported", node=node.proto)
        masks.append(key_mask(g, mask, g.dim(query, 0), g.dim(key, 2), filtered))
    if node.attr("unidirectional", 0):
        masks.append(causal_mask(g, g.dim(query, 2), g.dim(key, 2), length, EXCLUDED))
    y, scores, _ = attend(g, query, key, value, node.attr("scale"), masks)
    return joined_heads(g, y, node.name), key, value, scores


@form("MultiHeadAttention", domain=_DOMAIN)
def multi_head_attention(
    g: Any,
    node: Any,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    bias: Value | None = None,
    mask: Value | None = None,
    attention_bias: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    past_length: Value | None = None,
    indirection: Value | None = None,
) -> Any:
    """Attention of projected queries, keys and values, which may be packed into one tensor."""
    _refuse_shared_buffers(node, past_length, indirection)
    heads = node.attr("num_heads")
    if query.ndim == 5:
        query, key, value = (_unpacked(g, query, index) for index in range(3))
    elif key is not None and key.ndim == 5:
        key, value = (_unpacked(g, key, index) for index in range(2))
    assert key is not None and value is not None
    if bias is not None:
        query, key, value = _with_bias(g, (query, key, value), bias)
    query, key, value = (part if part.ndim == 4 else heads_of(g, part, heads) for part in (query, key, value))
    past = None if past_key is None else (past_key, past_value)
    return _mixed(g, node, query, key, value, past, mask, attention_bias)


def _unpacked(g: Any, x: Value, index: int) -> Value:
    """Part `index` of (batch, length, heads, parts, size) as (batch, length, heads * size)."""
    part = cut(g, x, 3, index, index + 1)
    batch, length, heads, _, size = g.dims(part)
    return g.reshape(part, [batch, length, apply("*", heads, size)])


def _with_bias(g: Any, parts: tuple[Value, ...], bias: Value) -> list[Value]:
    """The projections plus their part of the bias; keys and values of another layer have theirs already."""
    made, begin = [], 0
    for part in parts:
        width = g.dim(part, 2) if part.ndim == 3 else apply("*", g.dim(part, 1), g.dim(part, 3))
        end = apply("+", begin, width)
        made.append(calculate(g, "+", part, cut(g, bias, 0, begin, end)) if part.ndim == 3 else part)
        begin = end
    return made


@form("RotaryEmbedding", domain=_DOMAIN)
def rotary_embedding(g: Any, node: Any, x: Value, positions: Value, cosines: Value, sines: Value) -> Value:
    """Rotates pairs of elements by the angles of their positions. positions: (batch, length); (1,): the first one."""
    part = node.attr("rotary_embedding_dim", 0)
    size = part or apply("*", 2, g.dim(cosines, 1))
    heads = node.attr("num_heads", 0)
    stacked = x.ndim == 4
    if stacked:
        whole = x
    elif part and heads:
        whole = heads_of(g, x, heads)
    else:
        batch, length, hidden = g.dims(x)
        split = g.reshape(x, [batch, length, apply("//", hidden, size), size])
        whole = g.emit("transpose", [split], axes=(0, 2, 1, 3))
    cosines, sines = (_angles(g, table, positions, g.dim(whole, 2)) for table in (cosines, sines))
    interleaved = bool(node.attr("interleaved", 0))
    made = rotated(g, whole, cosines, sines, interleaved, part or None, node.name)
    return made if stacked else joined_heads(g, made, node.name)


def _angles(g: Any, table: Value, positions: Value, length: Any) -> Value:
    """Rows of a table of cosines or sines for positions, as (batch or 1, 1, length, size)."""
    if positions.ndim == 1:
        numbers = calculate(g, "+", count(g, length, "int64"), g.cast(positions, "int64"))
        positions = g.reshape(numbers, [1, -1])
    rows = g.emit("take", [table, positions], axis=0, mode="clip")
    return g.emit("expand_dims", [rows], axis=1)


__all__ = ["attention", "multi_head_attention", "qattention", "rotary_embedding"]
