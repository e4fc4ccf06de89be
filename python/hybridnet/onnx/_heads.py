"""Attention with heads: queries, keys and values as (batch, heads, length, size)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ._arithmetic import calculate, count, cut
from ._sizes import Number, apply
from ._values import Value

__all__ = ["EXCLUDED", "attend", "causal_mask", "heads_of", "joined_heads", "key_mask", "rotated"]

# Added to scores of keys that never take part. Finite, so that rows without keys give no NaN.
EXCLUDED = -3.0e38


def heads_of(g: Any, x: Value, heads: int) -> Value:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    batch, length, size = g.dims(x)
    return g.emit("transpose", [g.reshape(x, [batch, length, heads, apply("//", size, heads)])], axes=(0, 2, 1, 3))


def joined_heads(g: Any, x: Value, name: str = "") -> Value:
    """(batch, heads, length, size) as (batch, length, heads * size)."""
    batch, heads, length, size = g.dims(x)
    transposed = g.emit("transpose", [x], axes=(0, 2, 1, 3))
    return g.reshape(transposed, [batch, length, apply("*", heads, size)], name)


def attend(
    g: Any,
    query: Value,
    key: Value,
    value: Value,
    scale: float | None,
    masks: Sequence[Value | None] = (),
    softcap: float = 0.0,
    sinks: Value | None = None,
) -> tuple[Value, Value, Value]:
    """The mixed values, the scores (scaled, capped and masked), and the weights.

    masks: summands of the scores. softcap: the scores stay between -softcap and softcap. sinks: (heads,), scores of
    a key without value.
    """
    factor = scale or 1 / math.sqrt(query.shapes[0][-1])
    scores = calculate(g, "*", g.emit("batch_dot", [query, key], transpose_b=True), factor)
    if softcap:
        scores = calculate(g, "*", g.emit("tanh", [calculate(g, "/", scores, softcap)]), softcap)
    mask: Value | None = None
    for part in masks:
        if part is not None:
            mask = part if mask is None else calculate(g, "+", mask, part)
    if mask is not None:
        scores = calculate(g, "+", scores, g.cast(mask, scores.dtype))
    weights = g.emit("softmax", [scores], axis=-1) if sinks is None else _with_sink(g, scores, sinks)
    return g.emit("batch_dot", [weights, value]), scores, weights


def _with_sink(g: Any, scores: Value, sinks: Value) -> Value:
    """Softmax over the keys and a sink per head, whose weight is left out."""
    sink = g.reshape(g.cast(sinks, scores.dtype), [1, g.dim(scores, 1), 1, 1])
    zeros = g.emit("_mul_scalar", [g.emit("slice_axis", [scores], axis=3, begin=0, end=1)], scalar=0.0)
    whole = g.emit("Concat", [scores, calculate(g, "+", zeros, sink)], num_args=2, dim=3)
    weights = g.emit("softmax", [whole], axis=-1)
    return g.emit("slice_axis", [weights], axis=3, begin=0, end=g.dim(scores, 3))


def causal_mask(g: Any, queries: Number, keys: Number, past: Number, filtered: float) -> Value:
    """0 for keys up to the position of the query, `filtered` for later ones: (queries, keys)."""
    rows = count(g, queries, "int32", (-1, 1))
    last = calculate(g, "+", rows, past)
    return kept_mask(g, g.emit("_npi_less_equal", [count(g, keys, "int32", (1, -1)), last]), filtered)


def kept_mask(g: Any, kept: Value, filtered: float) -> Value:
    """0 where an element is true, else `filtered`."""
    return calculate(g, "*", g.emit("_rminus_scalar", [g.cast(kept, "float32")], scalar=1.0), filtered)


def key_mask(g: Any, mask: Value, batch: Number, keys: Number, filtered: float) -> Value:
    """A summand of the scores from a mask of keys that is not 0 where a key takes part.

    mask: (batch, keys), (batch, queries, keys), (batch,) numbers of keys, or (2 * batch,) their ends and starts.
    """
    if mask.ndim > 1:
        made = kept_mask(g, g.emit("_npi_greater_scalar", [mask], scalar=0), filtered)
        for _ in range(4 - mask.ndim):
            made = g.emit("expand_dims", [made], axis=1)
        return made
    numbers = count(g, keys, "int32", (1, 1, 1, -1))
    both = g.dim(mask, 0) != batch and not _is_same(g.dim(mask, 0), batch)
    ends = g.emit("slice_axis", [mask], axis=0, begin=0, end=batch) if both else mask
    kept = g.emit("_npi_less", [numbers, g.reshape(g.cast(ends, "int32"), [-1, 1, 1, 1])])
    if both:
        starts = g.emit("slice_axis", [mask], axis=0, begin=batch, end=apply("*", 2, batch))
        begins = g.reshape(g.cast(starts, "int32"), [-1, 1, 1, 1])
        kept = g.emit("_npi_bitwise_and", [kept, g.emit("_npi_greater_equal", [numbers, begins])])
    return kept_mask(g, kept, filtered)


def _is_same(a: Number, b: Number) -> bool:
    return getattr(a, "trials", None) == getattr(b, "trials", 0)


def rotated(
    g: Any, x: Value, cosines: Value, sines: Value, interleaved: bool, size: Number | None = None, name: str = ""
) -> Value:
    """Pairs of elements rotated by angles: x (batch, heads, length, size), cosines (batch or 1, 1, length, size / 2).

    Pairs are neighbors if interleaved, else an element of the first and one of the second half. size: of the part
    that is rotated; None: all.
    """
    whole, rest = x, None
    if size is not None and size != g.dim(x, 3):
        x, rest = cut(g, whole, 3, 0, size), cut(g, whole, 3, size, None)
    one, other = _halves(g, x, interleaved)
    first = calculate(g, "-", calculate(g, "*", one, cosines), calculate(g, "*", other, sines))
    second = calculate(g, "+", calculate(g, "*", one, sines), calculate(g, "*", other, cosines))
    if interleaved:
        made = g.emit("_npi_stack", [first, second], num_args=2, axis=4)
        made = g.reshape(made, g.dims(x), name)
    else:
        made = g.emit("Concat", [first, second], name=name, num_args=2, dim=3)
    return made if rest is None else g.emit("Concat", [made, rest], name=name, num_args=2, dim=3)


def _halves(g: Any, x: Value, interleaved: bool) -> tuple[Value, Value]:
    half = apply("//", g.dim(x, 3), 2)
    if not interleaved:
        return cut(g, x, 3, 0, half), cut(g, x, 3, half, None)
    pairs = g.reshape(x, [*g.dims(x)[:3], half, 2])
    one, other = g.emit("_split_v2", [pairs], axis=4, indices=(0, 1))
    return g.emit("_np_squeeze", [one], axis=4), g.emit("_np_squeeze", [other], axis=4)
