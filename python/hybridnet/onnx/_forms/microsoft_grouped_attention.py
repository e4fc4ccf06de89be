"""GroupQueryAttention of ONNX Runtime's domain: several heads of queries share a head of keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arithmetic import calculate, count, cut
from .._builder import Runtime
from .._errors import refuse
from .._heads import EXCLUDED, attend, heads_of, joined_heads, kept_mask, rotated
from .._sizes import Number, apply
from .._standard import standard
from .._table import form
from .._values import Value


@form("GroupQueryAttention", domain="com.microsoft")
def group_query_attention(
    g: Any,
    node: Any,
    query: Value,
    key: Value | None,
    value: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    lengths: Value,
    total: Value,
    cosines: Value | None = None,
    sines: Value | None = None,
    positions: Value | None = None,
    attention_bias: Value | None = None,
    sinks: Value | None = None,
    *others: Value | None,
) -> Any:
    """Attention of new tokens to those of the past and to each other.

    lengths: for each example, the number of tokens with the new ones, less 1. `total` is the largest of these numbers.
    Keys and values of the past are (batch, heads, length, size); the new ones stand behind the last used one. The
    present has the length of past and new tokens, or `total` if that follows from sizes.
    """
    _check(node, others)
    heads, kv_heads = node.attr("num_heads"), node.attr("kv_num_heads")
    query, key, value = _projections(g, query, key, value, heads, kv_heads)
    new = g.dim(query, 2)
    ends = g.reshape(calculate(g, "+", g.cast(lengths, "int64"), 1), [-1, 1])  # (batch, 1)
    prompt = past_key is None or past_key.fixed(2) == 0
    begins = None if prompt else calculate(g, "-", ends, new)
    if node.attr("do_rotary", 0):
        assert cosines is not None and sines is not None
        cosines, sines = _angles(g, (cosines, sines), positions, new, begins)
        interleaved = bool(node.attr("rotary_interleaved", 0))
        part = apply("*", 2, g.dim(cosines, 3))
        query, key = (rotated(g, x, cosines, sines, interleaved, part) for x in (query, key))
    present = key, value
    if past_key is not None and past_value is not None and begins is not None:
        present = _present(g, past_key, key, begins, total), _present(g, past_value, value, begins, total)
    mask = _mask(g, node, new, g.dim(present[0], 2), begins)
    key, value = (
        part if heads == kv_heads else g.emit("repeat", [part], repeats=heads // kv_heads, axis=1) for part in present
    )
    masks = [attention_bias, mask]
    softcap = node.attr("softcap", 0.0)
    mixed, _, _ = attend(g, query, key, value, node.attr("scale"), masks, softcap, _sinks(g, node, sinks))
    return joined_heads(g, mixed, node.name), *present


def _angles(
    g: Any, tables: tuple[Value, Value], positions: Value | None, new: Number, begins: Value | None
) -> tuple[Value, Value]:
    """Cosines and sines of the new tokens: (batch or 1, 1, new, size)."""
    places = _places(g, new, begins) if positions is None else positions
    if begins is None and positions is not None:  # counted from the first one, as ONNX Runtime does
        first = g.reshape(g.emit("slice", [positions], begin=(0, 0), end=(1, 1)), [1, 1])
        places = calculate(g, "+", _places(g, new, None), first)
    cosines, sines = (g.emit("expand_dims", [g.emit("take", [t, places], axis=0)], axis=1) for t in tables)
    return cosines, sines


def _check(node: Any, others: Any) -> None:
    quantized = node.attr("k_quant_type", "NONE") != "NONE" or node.attr("v_quant_type", "NONE") != "NONE"
    if quantized or any(value is not None for value in others):
        raise refuse(
            "caches of bytes, norms of queries and keys, and padded queries are not supported", node=node.proto
        )
    if node.attr("sliding_window_cache", 0) or node.attr("qk_output", 0):
        raise refuse("sliding_window_cache and qk_output are not supported", node=node.proto)


def _projections(
    g: Any, query: Value, key: Value | None, value: Value | None, heads: int, kv_heads: int
) -> tuple[Value, Value, Value]:
    """Queries, keys and values with heads; they may be packed into one tensor."""
    if key is None or value is None:
        size = apply("//", g.dim(query, 2), heads + 2 * kv_heads)
        ends = [apply("*", size, heads), apply("*", size, heads + kv_heads)]
        query, key, value = (cut(g, query, 2, begin, end) for begin, end in zip((0, *ends), (*ends, None), strict=True))
    return heads_of(g, query, heads), heads_of(g, key, kv_heads), heads_of(g, value, kv_heads)


def _places(g: Any, new: Number, begins: Value | None) -> Value:
    """The positions of the new tokens: (batch or 1, new)."""
    row = count(g, new, "int64", (1, -1))
    return row if begins is None else calculate(g, "+", begins, row)


def _present(g: Any, past: Value, fresh: Value, begins: Value, total: Value) -> Value:
    """The past with the new keys or values behind the first `begins` ones of each example."""
    old, new = g.dim(past, 2), g.dim(fresh, 2)
    number = g.item(total)
    whole = apply("+", old, new) if isinstance(number, Runtime) else apply("max", old, number)
    joined = g.emit("Concat", [past, fresh], num_args=2, dim=2)
    place = count(g, whole, "int64", (1, -1))
    moved = calculate(g, "+", calculate(g, "-", place, begins), old)  # places of new tokens in `joined`
    source = g.emit("_npi_where", [g.emit("_npi_less", [place, begins]), place, moved])
    source = calculate(g, "min", source, apply("-", apply("+", old, new), 1))
    heads, size = g.dim(past, 1), g.dim(past, 3)
    index = g.broadcast_to(g.reshape(source, [g.dim(past, 0), 1, whole, 1]), [g.dim(past, 0), heads, whole, size])
    return standard(g, "GatherElements", [joined, index], joined.name, axis=2)


def _mask(g: Any, node: Any, new: Number, keys: Number, begins: Value | None) -> Value | None:
    """Excludes keys behind the query, and those too far before it: (batch or 1, 1, new, keys)."""
    window = node.attr("local_window_size", -1)
    if not node.attr("causal", 1):
        return None
    last = g.reshape(_places(g, new, begins), [-1, 1, new, 1])
    place = count(g, keys, "int64", (1, 1, 1, -1))
    kept = g.emit("_npi_less_equal", [place, last])
    if window > 0:
        near = g.emit("_npi_greater", [place, calculate(g, "-", last, window)])
        kept = g.emit("_npi_bitwise_and", [kept, near])
    return kept_mask(g, kept, EXCLUDED)


def _sinks(g: Any, node: Any, sinks: Value | None) -> Value | None:
    """The score of the key without value: 0 for a smooth softmax."""
    if sinks is not None or node.attr("smooth_softmax", -1) != 1:
        return sinks
    return g.constant(np.zeros(node.attr("num_heads"), np.float32), "sink", trainable=False)


__all__ = ["group_query_attention"]
