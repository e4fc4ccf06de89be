"""What the operators of src/ops/index compute, in NumPy."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _resolve(indices, size, mode):
    ids = np.asarray(indices).astype("int64")
    return ids % size if mode == "wrap" else np.clip(ids, 0, size - 1)


def _take(inputs, attrs):
    data, indices = inputs
    axis = value(attrs, "axis", 0)
    return [np.take(data, _resolve(indices, data.shape[axis], attrs.get("mode", "clip")), axis=axis)]


def _backward_take(inputs, attrs):
    grads, indices = inputs
    axis, shape = value(attrs, "axis"), tuple_value(attrs, "shape")
    ids = _resolve(indices, shape[axis], attrs.get("mode", "clip"))
    out = np.zeros(shape, grads.dtype)
    moved = np.moveaxis(out, axis, 0)
    before = tuple(range(axis))
    flat = np.transpose(grads, tuple(range(axis, axis + ids.ndim)) + before + tuple(range(axis + ids.ndim, grads.ndim)))
    np.add.at(moved, ids.reshape(-1), flat.reshape((ids.size,) + moved.shape[1:]))
    return [out]


def _embedding(inputs, attrs):
    indices, weight = inputs
    return [weight[_resolve(indices, weight.shape[0], "clip")]]


def _one_hot(inputs, attrs):
    ids = np.asarray(inputs[0]).astype("int64")
    depth = value(attrs, "depth")
    hit = ids[..., None] == np.arange(depth)
    out = np.where(hit, value(attrs, "on_value", 1.0), value(attrs, "off_value", 0.0))
    return [out.astype(attrs.get("dtype", "float32"))]


def _pick(inputs, attrs):
    data, index = inputs
    axis = value(attrs, "axis", -1)
    if axis is None:
        return [data.reshape(-1)[_resolve(index, data.size, attrs.get("mode", "clip"))]]
    if index.ndim < data.ndim:
        index = np.expand_dims(index, axis)
    out = np.take_along_axis(data, _resolve(index, data.shape[axis], attrs.get("mode", "clip")), axis)
    return [out if value(attrs, "keepdims", False) else out.squeeze(axis)]


def _batch_take(inputs, attrs):
    return _pick(inputs, {"axis": "1"})


def _gather_along_axis(inputs, attrs):
    outer, rows, inner, count = (value(attrs, k) for k in ("outer", "rows", "inner", "count"))
    ids = _resolve(inputs[1], rows, attrs.get("mode", "clip")).reshape(outer, count, inner)
    return [np.take_along_axis(inputs[0].reshape(outer, rows, inner), ids, 1).reshape(tuple_value(attrs, "shape"))]


def _scatter_along_axis(inputs, attrs):
    outer, rows, inner, count = (value(attrs, k) for k in ("outer", "rows", "inner", "count"))
    ids = _resolve(inputs[1], rows, attrs.get("mode", "clip")).reshape(outer, count, inner)
    out = np.zeros((outer, rows, inner), inputs[0].dtype)
    o, _, i = np.ogrid[:outer, :count, :inner]
    np.add.at(out, (o, ids, i), inputs[0].reshape(outer, count, inner))
    return [out.reshape(tuple_value(attrs, "shape"))]


REFERENCES = {
    "take": _take,
    "_backward_take": _backward_take,
    "Embedding": _embedding,
    "_contrib_SparseEmbedding": _embedding,
    "one_hot": _one_hot,
    "pick": _pick,
    "batch_take": _batch_take,
    "_gather_along_axis": _gather_along_axis,
    "_scatter_along_axis": _scatter_along_axis,
}
