"""NumPy references of the attention operators of src/ops/attention, after MXNet's documentation."""

from __future__ import annotations

import numpy as np

from .attributes import value


def _part(projection, heads, parts, which):
    """Extracts one part: (length, batch, heads * parts * size) to (batch * heads, length, size)."""
    length, batch, _ = projection.shape
    split = np.asarray(projection, "float64").reshape(length, batch, heads, parts, -1)[:, :, :, which]
    return split.transpose(1, 2, 0, 3).reshape(batch * heads, length, -1)


def _joined(matrices, heads, parts=1, which=0):
    """Inverse of _part(); other parts are zero."""
    batch, (length, size) = matrices.shape[0] // heads, matrices.shape[1:]
    out = np.zeros((length, batch, heads, parts, size))
    out[:, :, :, which] = matrices.reshape(batch, heads, length, size).transpose(2, 0, 1, 3)
    return out.reshape(length, batch, -1)


def _scores(a, b):
    return a @ b.transpose(0, 2, 1)


def _self_scores(inputs, attrs):
    heads = value(attrs, "heads")
    queries, keys = (_part(inputs[0], heads, 3, k) for k in (0, 1))
    return [(_scores(queries, keys) / np.sqrt(max(queries.shape[-1], 1))).astype(inputs[0].dtype)]


def _cross_scores(inputs, attrs):
    heads = value(attrs, "heads")
    queries, keys = _part(inputs[0], heads, 1, 0), _part(inputs[1], heads, 2, 0)
    return [(_scores(queries, keys) / np.sqrt(max(queries.shape[-1], 1))).astype(inputs[0].dtype)]


def _values(parts):
    def reference(inputs, attrs):
        heads = value(attrs, "heads")
        mixed = np.asarray(inputs[1], "float64") @ _part(inputs[0], heads, parts, parts - 1)
        return [_joined(mixed, heads).astype(inputs[0].dtype)]

    return reference


def _general_scores(inputs, attrs):
    heads = value(attrs, "heads")
    a = _part(inputs[0], heads, value(attrs, "parts_a", 1), value(attrs, "part_a", 0))
    b = _part(inputs[1], heads, value(attrs, "parts_b", 1), value(attrs, "part_b", 0))
    return [(value(attrs, "scale", 1.0) * _scores(a, b)).astype(inputs[0].dtype)]


def _general_mix(inputs, attrs):
    heads, scores = value(attrs, "heads"), np.asarray(inputs[0], "float64")
    values = _part(inputs[1], heads, value(attrs, "parts_values", 1), value(attrs, "part_values", 0))
    mixed = (scores.transpose(0, 2, 1) if value(attrs, "transpose", False) else scores) @ values
    out = _joined(value(attrs, "scale", 1.0) * mixed, heads, value(attrs, "parts_out", 1), value(attrs, "part_out", 0))
    return [out.astype(inputs[0].dtype)]


def _attended(query, key, values, attrs, mask=None):
    """Returns the output and the logarithms of the sums of e^scores; all operands are (batch..., length, size)."""
    query, key, values = (np.asarray(x, "float64") for x in (query, key, values))
    scale = attrs.get("scale", "None")
    scores = query @ np.swapaxes(key, -1, -2)
    scores = scores * (1 / np.sqrt(max(query.shape[-1], 1)) if scale == "None" else float(scale))
    kind = attrs.get("mask_type", "none")
    if kind == "added":
        scores = scores + np.asarray(mask, "float64")
    elif kind == "kept":
        scores = np.where(np.asarray(mask) != 0, scores, -np.inf)
    elif kind == "lengths":
        scores = np.where(np.arange(scores.shape[-1]) < np.asarray(mask)[..., None], scores, -np.inf)
    if value(attrs, "causal", False):
        scores = np.where(np.tril(np.ones(scores.shape[-2:])) != 0, scores, -np.inf)
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    top[~np.isfinite(top)] = 0
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    empty = total == 0
    sums = np.where(empty, np.inf, top + np.log(np.where(empty, 1, total)))[..., 0]
    return weights / np.where(empty, 1, total) @ values, sums


def _matrices(inputs, attrs):
    """Returns queries, keys, values and mask from the inputs of fused attention."""
    parts, heads = value(attrs, "parts", 0), value(attrs, "heads", 1)
    count = 4 - parts if parts else 3
    mask = inputs[count] if value(attrs, "mask_type", "none") != "none" else None
    if value(attrs, "heads_inside", False):
        three = np.split(inputs[0], 3, axis=-2) if parts else inputs[:3]
        return *(np.swapaxes(x, -3, -2) for x in three), mask
    if not parts:
        query, *keys = inputs[:3]
        return query, *(np.repeat(x, value(attrs, "shared", 1), axis=-3) if x.ndim > 2 else x for x in keys), mask
    last = inputs[count - 1]
    query = _part(inputs[0], heads, 3 if parts == 3 else 1, 0)
    return query, _part(last, heads, parts, parts - 2), _part(last, heads, parts, parts - 1), mask


def _flash_attention(inputs, attrs):
    query, key, values, mask = _matrices(inputs, attrs)
    out, sums = _attended(query, key, values, attrs, mask)
    if value(attrs, "heads_inside", False):
        out = np.swapaxes(out, -3, -2)
    elif value(attrs, "parts", 0):
        out = _joined(out, value(attrs, "heads", 1))
    dtype = inputs[0].dtype
    return [out.astype(dtype), sums.astype("float64" if dtype == np.float64 else "float32")]


def _ordered_rows(inputs, attrs):
    data, order = inputs
    axis = value(attrs, "axis") % data.ndim
    entries = np.clip(order, 0, max(len(data) - 1, 0))
    entries = entries.reshape([size if i in (0, axis) else 1 for i, size in enumerate(data.shape)])
    return [np.take_along_axis(data, np.broadcast_to(entries, data.shape), axis=0)]


def _ordered_attention(inputs, attrs):
    query, key, values, *mask, order = inputs
    axis = {"axis": "-3" if value(attrs, "heads_inside", False) else "-2"}
    key, values = (_ordered_rows([x, order], axis)[0] for x in (key, values))
    return _flash_attention([query, key, values, *mask], attrs)


def _backward_flash_attention(inputs, attrs):
    """Gradients by the formulas of algorithm 4 of FlashAttention, for any output and log_sums."""
    query, key, values, out, sums, dy = (np.asarray(x, "float64") for x in inputs)
    scale = 1 / np.sqrt(max(query.shape[-1], 1))
    weights = np.exp(scale * query @ np.swapaxes(key, -1, -2) - sums[..., None])
    of_scores = weights * (dy @ np.swapaxes(values, -1, -2) - (dy * out).sum(-1, keepdims=True)) * scale
    results = of_scores @ key, np.swapaxes(of_scores, -1, -2) @ query, np.swapaxes(weights, -1, -2) @ dy
    return [r.astype(inputs[0].dtype) for r in results]


def _khatri_rao(inputs, attrs):
    out = inputs[0]
    for matrix in inputs[1:]:
        out = (out[:, None] * matrix[None]).reshape(-1, matrix.shape[1])
    return [out]


REFERENCES = {
    "_contrib_interleaved_matmul_selfatt_qk": _self_scores,
    "_contrib_interleaved_matmul_encdec_qk": _cross_scores,
    "_contrib_interleaved_matmul_selfatt_valatt": _values(3),
    "_contrib_interleaved_matmul_encdec_valatt": _values(2),
    "_attention_scores": _general_scores,
    "_attention_mix": _general_mix,
    "_contrib_flash_attention": _flash_attention,
    "_flash_attention": _flash_attention,
    "_ordered_attention": _ordered_attention,
    "_ordered_rows": _ordered_rows,
    "_backward_flash_attention": _backward_flash_attention,
    "khatri_rao": _khatri_rao,
}
