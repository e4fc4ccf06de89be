"""Attention, rotary embeddings, and linear attention."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._arithmetic import Term, calculate, count, cut, join, permute
from .._errors import refuse, wrong
from .._sizes import Number, Size, apply
from .._table import form
from .._values import Value

_DTYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}


# ----------------------------------------------------------------------------------------------------------- attention
@dataclass
class _Masks:
    """The keys that a query attends to.

    `first` and `behind`: the keys first <= j < behind, as tensors (batch or 1, 1, queries or 1); None: no limit.
    `kept`: 1 for keys that take part, `added`: terms added to the scores; both broadcast to the scores.
    `causal`: query i attends to the keys 0 to i only.
    """

    first: Value | None = None
    behind: Value | None = None
    kept: Value | None = None
    added: Value | None = None
    causal: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether all queries attend to all keys."""
        return not self.causal and self.first is self.behind is self.kept is self.added is None


@form("Attention")
def attention(
    g: Any,
    node: Any,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    lengths: Value | None = None,
) -> Any:
    """One attention operator with its masks; written out if values in between are read, or limited by softcap."""
    joined = query.ndim == 3
    if joined:
        heads, others = node.attr("q_num_heads"), node.attr("kv_num_heads")
        if not heads or not others:
            raise wrong("q_num_heads and kv_num_heads are needed for inputs of 3 axes", node=node.proto)
        query, key, value = (_split(g, x, n) for x, n in ((query, heads), (key, others), (value, others)))
    if past_key is not None and past_value is not None:
        key, value = join(g, [past_key, key], 2), join(g, [past_value, value], 2)
    present = (key, value)
    masks = _masks(g, node, query, key, mask, past_key, lengths)
    scale = node.attr("scale")
    scale = _default_scale(g, query) if scale is None else scale
    value = g.cast(value, query.dtype)
    if node.attr("softcap", 0.0) or node.wants(3) or _wants_precision(node, query):
        y, scores = _written_out(g, node, query, key, value, masks, scale)
    else:
        y, scores = _fused(g, node, query, key, value, masks, scale), None
    if joined:
        y = permute(g, y, (0, 2, 1, 3))
        y = g.reshape(y, [*g.dims(y)[:2], apply("*", g.dim(y, 2), g.dim(y, 3))], node.name)
    return (y, *present, scores)[: max(node.num_outputs, 1)]


def _split(g: Any, x: Value, heads: int) -> Value:
    """(batch, length, heads * size) to (batch, heads, length, size)."""
    size = apply("//", g.dim(x, 2), heads)
    return permute(g, g.reshape(x, [g.dim(x, 0), g.dim(x, 1), heads, size]), (0, 2, 1, 3))


def _default_scale(g: Any, query: Value) -> float:
    size = query.fixed(3)
    if size is None:
        raise refuse("the size of a query is not known while the file is imported", fix="set the attribute scale")
    return 1 / math.sqrt(size)


def _wants_precision(node: Any, query: Value) -> bool:
    """Whether the softmax is computed in a wider dtype than the operator would use."""
    return _DTYPES.get(node.attr("softmax_precision", 0)) == "float64" and query.dtype != "float64"


def _masks(
    g: Any, node: Any, query: Value, key: Value, mask: Value | None, past: Value | None, lengths: Value | None
) -> _Masks:
    queries, keys = g.dim(query, 2), g.dim(key, 2)
    left, right = node.attr("left_window_size", -1), node.attr("right_window_size", -1)
    causal = bool(node.attr("is_causal", 0))
    masks = _Masks()
    if mask is not None:
        mask = _widened(g, mask, keys)
        if mask.dtype == "bool":
            masks.kept = mask
        else:
            masks.added = g.cast(mask, query.dtype)
    if lengths is not None:
        lengths = g.reshape(g.cast(lengths, "int64"), [-1, 1, 1])
        masks.behind = lengths
    if causal and past is None and lengths is None and left < 0 and right < 0:
        masks.causal = True
        return masks
    if not causal and left < 0 and right < 0:
        return masks
    offset: Term = 0
    if lengths is not None:
        offset = calculate(g, "-", lengths, queries)
    elif past is not None:
        offset = g.dim(past, 2)
    place = calculate(g, "+", count(g, queries, "int64", [1, 1, -1]), offset)
    reach = 0 if causal else right
    if reach >= 0:
        behind = calculate(g, "max", calculate(g, "+", place, reach + 1), 0)
        behind = calculate(g, "min", behind, keys)
        masks.behind = behind if masks.behind is None else calculate(g, "min", behind, masks.behind)
    if left >= 0:
        masks.first = calculate(g, "-", place, left)
    return masks


def _widened(g: Any, mask: Value, keys: Number) -> Value:
    """A mask for fewer keys excludes the others."""
    own = g.dim(mask, mask.ndim - 1)
    same = own.trials == keys.trials if isinstance(own, Size) and isinstance(keys, Size) else own is keys or own == keys
    if same or (not isinstance(own, Size) and own == 1 and mask.dtype != "bool"):
        return mask
    widths = (*[0] * (2 * mask.ndim - 1), apply("max", apply("-", keys, own), 0))
    return g.emit(
        "Pad", [mask], mode="constant", pad_width=widths, constant_value=0 if mask.dtype == "bool" else float("-inf")
    )


def _allowed(g: Any, masks: _Masks, query: Value, key: Value) -> Value | None:
    """1 for the keys of each query, 0 for others, as int32; from all but `added`."""
    line = count(g, g.dim(key, 2), "int64", [1, 1, 1, -1])
    behind = masks.behind
    if masks.causal:
        behind = calculate(g, "+", count(g, g.dim(query, 2), "int64", [1, 1, -1]), 1)
    flags = []
    if behind is not None:
        flags.append(calculate(g, "<", line, g.emit("expand_dims", [behind], axis=3)))
    if masks.first is not None:
        flags.append(calculate(g, "<=", g.emit("expand_dims", [masks.first], axis=3), line))
    flags = [g.cast(flag, "int32") for flag in (*flags, masks.kept) if flag is not None]
    if not flags:
        return None
    result = flags[0]
    for flag in flags[1:]:
        result = calculate(g, "*", result, flag)
    return result


def _minus_infinity(g: Any, allowed: Value, dtype: str) -> Value:
    """0 where a flag is 1, minus infinity where it is 0."""
    zero = g.constant([0.0], "zero", dtype, trainable=False)
    return g.emit("_npi_where_rscalar", [allowed, zero], scalar=float("-inf"))


def _fused(g: Any, node: Any, query: Value, key: Value, value: Value, masks: _Masks, scale: float) -> Value:
    groups, heads = apply("//", g.dim(query, 1), g.dim(key, 1)), g.dim(key, 1)
    grouped = isinstance(groups, Size) or groups != 1
    inputs, attributes = [], {"scale": scale}
    if masks.added is not None:
        allowed = _allowed(g, masks, query, key) if masks.first is not None or masks.behind is not None else None
        mask = masks.added
        if allowed is not None:
            mask = calculate(g, "+", mask, _minus_infinity(g, allowed, mask.dtype))
        inputs, attributes = [mask], {**attributes, "mask_type": "added", "causal": masks.causal}
    elif masks.kept is not None or masks.first is not None:
        limits = masks.first is not None or masks.behind is not None
        mask = g.cast(_allowed(g, masks, query, key), "bool") if limits else masks.kept
        inputs, attributes = [mask], {**attributes, "mask_type": "kept", "causal": masks.causal}
    elif masks.behind is not None:
        inputs, attributes = [masks.behind], {**attributes, "mask_type": "lengths"}
    elif masks.causal:
        attributes["causal"] = True
    shape = g.dims(query)
    folds = grouped and (masks.is_empty or (attributes.get("mask_type") == "lengths" and g.dim(masks.behind, 2) == 1))
    if folds:  # the queries of a group are rows of one product
        query = g.reshape(query, [shape[0], heads, apply("*", groups, shape[2]), shape[3]])
    elif grouped:
        key, value = (g.emit("repeat", [x], repeats=groups, axis=1) for x in (key, value))
    if masks.is_empty and query.dtype in ("float32", "float64"):
        y = _products(g, node, query, key, value, scale)
    else:
        y = g.emit("_contrib_flash_attention", [query, key, value, *inputs], name=node.name, **attributes)
    return g.reshape(y, [*shape[:3], g.dim(value, 3)], node.name) if folds else y


def _products(g: Any, node: Any, query: Value, key: Value, value: Value, scale: float) -> Value:
    """Two products, of which the optimizer makes one attention where that is faster."""
    scores = calculate(g, "*", g.emit("batch_dot", [query, key], transpose_b=True), scale)
    return g.emit("batch_dot", [g.emit("softmax", [scores], axis=-1), value], name=node.name)


def _written_out(
    g: Any, node: Any, query: Value, key: Value, value: Value, masks: _Masks, scale: float
) -> tuple[Value, Value]:
    """Attention and its fourth output: the scores at one of four points."""
    groups = apply("//", g.dim(query, 1), g.dim(key, 1))
    if isinstance(groups, Size) or groups != 1:
        key, value = (g.emit("repeat", [x], repeats=groups, axis=1) for x in (key, value))
    dtype, mode, cap = query.dtype, node.attr("qk_matmul_output_mode", 0), node.attr("softcap", 0.0)
    root = math.sqrt(scale)
    raw = g.emit("batch_dot", [calculate(g, "*", query, root), calculate(g, "*", key, root)], transpose_b=True)
    capped = raw
    if cap:
        capped = calculate(g, "*", g.emit("tanh", [calculate(g, "/", raw, cap)]), cap)
    allowed = _allowed(g, masks, query, key)
    bias = None if allowed is None else _minus_infinity(g, allowed, dtype)
    if masks.added is not None:
        bias = masks.added if bias is None else calculate(g, "+", masks.added, bias)
    biased = capped if bias is None else calculate(g, "+", capped, bias)
    weights = g.emit("softmax", [g.cast(biased, _DTYPES.get(node.attr("softmax_precision", 0), dtype))], axis=-1)
    if bias is not None:  # a query that attends to no key gives zeros
        best = g.emit("max", [bias], axis=(-1,), keepdims=True)
        attends = calculate(g, "<", float("-inf"), best)
        zero = g.constant([0.0], "zero", weights.dtype, trainable=False)
        weights = g.emit("_npi_where", [attends, weights, zero])
    weights = g.cast(weights, dtype)
    y = g.emit("batch_dot", [weights, value], name=node.name)
    return y, {0: raw, 1: capped, 2: biased, 3: weights}[mode]


# ---------------------------------------------------------------------------------------------------------- embeddings
@form("RotaryEmbedding")
def rotary_embedding(g: Any, node: Any, x: Value, cosines: Value, sines: Value, places: Value | None = None) -> Value:
    """Pairs of elements of each head, rotated by the angles of their place in the sequence."""
    joined, interleaved = x.ndim == 3, bool(node.attr("interleaved", 0))
    shape = g.dims(x)
    if joined:
        heads = node.attr("num_heads", 0)
        if not heads:
            raise wrong("num_heads is needed for an input of 3 axes", node=node.proto)
        x = g.reshape(x, [shape[0], shape[1], heads, apply("//", shape[2], heads)])
    if places is not None:
        cosines, sines = (g.emit("take", [table, places], axis=0, mode="clip") for table in (cosines, sines))
    # (batch, length, size) to a tensor that broadcasts along the heads
    cosines, sines = (g.emit("expand_dims", [table], axis=2 if joined else 1) for table in (cosines, sines))
    size = g.dim(x, 3)
    rotary_size = node.attr("rotary_embedding_dim", 0) or size
    half = apply("//", rotary_size, 2)
    if interleaved:
        pairs = x if rotary_size is size else cut(g, x, 3, 0, rotary_size)
        pairs = g.reshape(pairs, [*g.dims(x)[:3], half, 2])
        first, second = (g.emit("squeeze", [cut(g, pairs, 4, i, i + 1)], axis=(4,)) for i in (0, 1))
    else:
        first, second = cut(g, x, 3, 0, half), cut(g, x, 3, half, apply("*", half, 2))
    real = calculate(g, "-", calculate(g, "*", cosines, first), calculate(g, "*", sines, second))
    imaginary = calculate(g, "+", calculate(g, "*", sines, first), calculate(g, "*", cosines, second))
    if interleaved:
        made = g.reshape(g.emit("stack", [real, imaginary], axis=4, num_args=2), [*g.dims(x)[:3], rotary_size])
        parts = [made]
    else:
        parts = [real, imaginary]
    if rotary_size is not size:
        parts.append(cut(g, x, 3, rotary_size, size))
    y = join(g, parts, 3)
    return g.reshape(y, shape, node.name) if joined else y
