"""Products of matrices, dense layers and attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._export_errors import refuse_use
from .._export_table import export_form
from .._export_values import Number, Open, Tensor, product


@export_form("FullyConnected")
def _fully_connected(g: Any, node: Any) -> Tensor:
    x, weight, *bias = node.inputs
    bias = [g.reshape(b, [weight.dim(0)]) for b in bias]
    if node.params["flatten"] and x.ndim != 2:
        x = g.reshape(x, [x.dim(0), product(x.dims[1:])])
    if x.ndim == 2 and x.dtype.startswith(("float", "bfloat")):
        return g.emit("Gemm", x, weight, *bias, transB=1)
    made = g.matmul(x, g.transpose(weight, [1, 0]))
    return g.emit("Add", made, bias[0]) if bias else made


def _matrix(g: Any, x: Tensor, transposed: bool) -> Tensor:
    return g.swap_last(x) if transposed else x


@export_form("dot")
def _dot(g: Any, node: Any) -> Tensor:
    """Contracts the last axis of a with the first of b, or, transposed, the first with the last."""
    a, b = node.inputs
    ta, tb = node.params["transpose_a"], node.params["transpose_b"]
    is_float = a.dtype.startswith("float")
    if a.ndim == 2 and b.ndim == 2:
        if (ta or tb) and is_float:
            return g.emit("Gemm", a, b, transA=int(ta), transB=int(tb))
        return g.matmul(_matrix(g, a, ta), _matrix(g, b, tb))
    if b.ndim == 2 and a.ndim > 2 and not ta:
        return g.matmul(a, _matrix(g, b, tb))
    a_outer, a_inner = (a.dims[1:], a.dim(0)) if ta else (a.dims[:-1], a.dim(-1))
    b_outer, b_inner = (b.dims[:-1], b.dim(-1)) if tb else (b.dims[1:], b.dim(0))
    left = g.reshape(a, [a_inner, product(a_outer)] if ta else [product(a_outer), a_inner])
    right = g.reshape(b, [product(b_outer), b_inner] if tb else [b_inner, product(b_outer)])
    return g.reshape(g.matmul(_matrix(g, left, ta), _matrix(g, right, tb)), node.dims())


@export_form("batch_dot")
def _batch_dot(g: Any, node: Any) -> Tensor:
    a, b = node.inputs
    p = node.params
    return g.matmul(_matrix(g, a, p["transpose_a"]), _matrix(g, b, p["transpose_b"]))


def scaled(g: Any, x: Tensor, factor: float) -> Tensor:
    """x times a number."""
    return x if factor == 1 else g.emit("Mul", x, factor)


@export_form("_scaled_product")
def _scaled_product(g: Any, node: Any) -> Tensor:
    a, b, *addend = node.inputs
    p = node.params
    made = scaled(g, g.matmul(_matrix(g, a, p["transpose_a"]), _matrix(g, b, p["transpose_b"])), p["alpha"])
    return g.emit("Add", made, addend[0]) if addend else made


def _rows_last(g: Any, x: Tensor, axis: int) -> Tensor:
    """Matrices whose rows are along another axis than the last but one."""
    return g.move_axis(x, axis, -2)


@export_form("_linalg_gemm2", "_linalg_gemm")
def _gemm(g: Any, node: Any) -> Tensor:
    a, b, *c = node.inputs
    p = node.params
    axis = p["axis"]
    a, b = (_rows_last(g, x, axis) for x in (a, b))
    made = scaled(g, g.matmul(_matrix(g, a, p["transpose_a"]), _matrix(g, b, p["transpose_b"])), p["alpha"])
    if c:
        made = g.emit("Add", made, scaled(g, _rows_last(g, c[0], axis), p["beta"]))
    return g.move_axis(made, -2, axis)


@export_form("_linalg_syrk")
def _syrk(g: Any, node: Any) -> Tensor:
    a, p = node.inputs[0], node.params
    left, right = (g.swap_last(a), a) if p["transpose"] else (a, g.swap_last(a))
    return scaled(g, g.matmul(left, right), p["alpha"])


@export_form("khatri_rao")
def _khatri_rao(g: Any, node: Any) -> Tensor:
    made, *others = node.inputs
    for other in others:
        pairs = g.emit("Mul", g.unsqueeze(made, [1]), g.unsqueeze(other, [0]))
        made = g.reshape(pairs, [pairs.dim(0) * pairs.dim(1), pairs.dim(2)])
    return made


# ----------------------------------------------------------------------------------------------------------- attention
def _part(g: Any, x: Tensor, heads: int, parts: int, part: int) -> Tensor:
    """One of the vectors of each head of (length, batch, heads * parts * size), as (batch * heads, length, size)."""
    length, batch, width = x.dims
    size = width // (heads * parts)
    if parts > 1:
        x = g.reshape(x, [length, batch, heads, parts, size])
        x = g.squeeze(g.slice(x, 3, part, part + 1), [3])
        x = g.reshape(x, [length, batch * heads, size])
    else:
        x = g.reshape(x, [length, batch * heads, size])
    return g.transpose(x, [1, 0, 2])


def _scores(g: Any, a: Tensor, b: Tensor, heads: int, parts: Sequence[int], part: Sequence[int]) -> Tensor:
    left, right = _part(g, a, heads, parts[0], part[0]), _part(g, b, heads, parts[1], part[1])
    left = _over_root(g, left)
    return g.matmul(left, g.transpose(right, [0, 2, 1]))


def _over_root(g: Any, x: Tensor) -> Tensor:
    size = x.dim(-1)
    if isinstance(size, Open):
        return g.emit("Div", x, g.emit("Sqrt", g.number(size, x.dtype)))
    return g.emit("Mul", x, 1 / math.sqrt(max(size, 1)))


def _mixed(g: Any, values: Tensor, weights: Tensor, heads: int, batch: Number) -> Tensor:
    made = g.transpose(g.matmul(weights, values), [1, 0, 2])
    return g.reshape(made, [made.dim(0), batch, made.dim(2) * heads])


@export_form("_contrib_interleaved_matmul_selfatt_qk")
def _self_scores(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    return _scores(g, x, x, node.params["heads"], (3, 3), (0, 1))


@export_form("_contrib_interleaved_matmul_encdec_qk")
def _cross_scores(g: Any, node: Any) -> Tensor:
    queries, keys_values = node.inputs
    return _scores(g, queries, keys_values, node.params["heads"], (1, 2), (0, 0))


@export_form("_contrib_interleaved_matmul_selfatt_valatt")
def _self_values(g: Any, node: Any) -> Tensor:
    x, weights = node.inputs
    heads = node.params["heads"]
    return _mixed(g, _part(g, x, heads, 3, 2), weights, heads, x.dim(1))


@export_form("_contrib_interleaved_matmul_encdec_valatt")
def _cross_values(g: Any, node: Any) -> Tensor:
    x, weights = node.inputs
    heads = node.params["heads"]
    return _mixed(g, _part(g, x, heads, 2, 1), weights, heads, x.dim(1))


def _attention_mask(g: Any, scores: Tensor, mask: Tensor | None, p: Any) -> Tensor | None:
    """A mask of the keys that each query reads; None: it reads all."""
    kept = None
    if p["mask_type"] == "kept":
        kept = g.truth(mask)
    if p["mask_type"] == "lengths":
        lengths = g.cast(mask, "int64")
        lengths = g.unsqueeze(lengths, range(lengths.ndim, scores.ndim))
        kept = g.emit("Less", g.iota(scores.dim(-1)), lengths)
    if p["causal"]:
        rows = g.unsqueeze(g.iota(scores.dim(-2)), [1])
        below = g.emit("LessOrEqual", g.iota(scores.dim(-1)), rows)
        kept = below if kept is None else g.emit("And", kept, below)
    return kept


@export_form("_contrib_flash_attention", "_flash_attention")
def _flash_attention(g: Any, node: Any) -> list[Tensor]:
    """Attention as single operators, which runtimes fuse. A query that reads no key gives zero."""
    p = node.params
    if p.get("parts") or p.get("heads_inside") or p.get("heads", 1) != 1:
        raise refuse_use(node, "a pass made it for projections that several heads share", fix="export the source graph")
    query, key, value, *mask = node.inputs
    query = scaled(g, query, p["scale"]) if p["scale"] is not None else _over_root(g, query)
    scores = g.matmul(query, g.swap_last(key))
    if p["mask_type"] == "added":
        scores = g.emit("Add", scores, mask[0])
    kept = _attention_mask(g, scores, mask[0] if mask else None, p)
    if kept is not None:
        scores = g.where(kept, scores, -math.inf)
    weights = g.emit("Softmax", scores, axis=-1)
    if kept is not None or p["mask_type"] == "added":
        largest = g.reduce("Max", scores, [-1], keepdims=True)
        weights = g.where(g.emit("Equal", largest, -math.inf), 0, weights)
    made = [g.matmul(weights, value)]
    if node.reads(1):
        sums = g.reduce("LogSumExp", scores, [-1], keepdims=False)
        made.append(g.where(g.emit("Equal", g.reduce("Max", scores, [-1], keepdims=False), -math.inf), math.inf, sums))
    return made
