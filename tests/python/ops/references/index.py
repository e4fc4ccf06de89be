"""NumPy references of the operators of src/ops/index."""

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
    np.add.at(moved, ids.reshape(-1), flat.reshape((ids.size, *moved.shape[1:])))
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


def _tuples(indices):
    return tuple(np.asarray(indices).astype("int64"))


def _gather_nd(inputs, attrs):
    data, indices = inputs
    if not len(indices):  # no axis is indexed: every element of the result is all of data
        return [np.broadcast_to(data, indices.shape[1:] + data.shape)]
    return [data[_tuples(indices)]]


def _backward_gather_nd(inputs, attrs):
    out = np.zeros(tuple_value(attrs, "shape"), inputs[0].dtype)
    np.add.at(out, _tuples(inputs[1]), inputs[0])
    return [out]


def _scatter_nd(inputs, attrs):
    out = np.zeros(tuple_value(attrs, "shape"), inputs[0].dtype)
    out[_tuples(inputs[1])] = inputs[0]
    return [out]


def _scatter_set_nd(inputs, attrs):
    out = inputs[0].copy()
    out[_tuples(inputs[2])] = inputs[1]
    return [out]


def _advanced_key(arrays, axis):
    return (slice(None),) * axis + tuple(np.asarray(i).astype("int64") for i in arrays)


def _advanced_index_get(inputs, attrs):
    return [inputs[0][_advanced_key(inputs[1:], value(attrs, "axis", 0))]]


def _backward_advanced_index(inputs, attrs):
    out = np.zeros(tuple_value(attrs, "shape"), inputs[0].dtype)
    np.add.at(out, _advanced_key(inputs[1:], value(attrs, "axis", 0)), inputs[0])
    return [out]


def _advanced_index_set(inputs, attrs):
    out = inputs[0].copy()
    out[_advanced_key(inputs[2:], value(attrs, "axis", 0))] = inputs[1]
    return [out]


def _backward_advanced_index_set(inputs, attrs):
    key = _advanced_key(inputs[1:], value(attrs, "axis", 0))
    numbers = np.arange(inputs[0].size).reshape(inputs[0].shape)
    slots = np.arange(numbers[key].size).reshape(numbers[key].shape)
    last = np.full(inputs[0].shape, -1)
    last[key] = slots
    return [np.where(last[key] == slots, inputs[0][key], 0).astype(inputs[0].dtype)]


def _backward_index_copy(inputs, attrs):
    return _backward_advanced_index_set(inputs, attrs)


def _order(data, axis, ascending):
    """Indices of a stable sort; equal elements keep their order in descending sorts, too."""
    if ascending:
        return np.argsort(data, axis=axis, kind="stable")
    last = data.shape[axis] - 1
    return np.flip(last - np.argsort(np.flip(data, axis), axis=axis, kind="stable"), axis)


def _sorted(inputs, attrs, ascending_by_default):
    (data,) = inputs
    axis = value(attrs, "axis", -1)
    if axis is None:
        data, axis = data.reshape(-1), 0
    return data, axis, _order(data, axis, value(attrs, "is_ascend", ascending_by_default))


def _sort(inputs, attrs):
    data, axis, order = _sorted(inputs, attrs, True)
    return [np.take_along_axis(data, order, axis)]


def _argsort(inputs, attrs):
    return [_sorted(inputs, attrs, True)[2].astype(attrs.get("dtype", "float32"))]


def _topk(inputs, attrs):
    data, axis, order = _sorted(inputs, attrs, False)
    order = np.take(order, np.arange(value(attrs, "k", 1)), axis)
    values, indices = np.take_along_axis(data, order, axis), order.astype(attrs.get("dtype", "float32"))
    kind = attrs.get("ret_typ", "indices")
    if kind == "mask":
        mask = np.zeros_like(data)
        np.put_along_axis(mask, order, 1, axis)
        return [mask.reshape(inputs[0].shape)]
    return {"value": [values], "indices": [indices], "both": [values, indices]}[kind]


def _lengths(inputs, attrs, axis):
    data = inputs[0]
    if not value(attrs, "use_sequence_length", False):
        return np.full(data.shape[1 - axis], data.shape[axis])
    return inputs[1].astype("int64")


def _sequence_mask(inputs, attrs):
    axis = value(attrs, "axis", 0)
    out = inputs[0].copy()
    moved = np.moveaxis(out, axis, 0)
    for n, length in enumerate(_lengths(inputs, attrs, axis)):
        moved[length:, n] = value(attrs, "value", 0.0)
    return [out]


def _sequence_last(inputs, attrs):
    axis = value(attrs, "axis", 0)
    moved = np.moveaxis(inputs[0], axis, 0)
    return [np.stack([moved[length - 1, n] for n, length in enumerate(_lengths(inputs, attrs, axis))])]


def _backward_sequence_last(inputs, attrs):
    axis = value(attrs, "axis", 0)
    out = np.zeros(tuple_value(attrs, "shape"), inputs[0].dtype)
    moved = np.moveaxis(out, axis, 0)
    for n, length in enumerate(_lengths([out, *inputs[1:]], attrs, axis)):
        moved[length - 1, n] = inputs[0][n]
    return [out]


def _sequence_reverse(inputs, attrs):
    out = inputs[0].copy()
    for n, length in enumerate(_lengths(inputs, attrs, 0)):
        out[:length, n] = inputs[0][:length, n][::-1]
    return [out]


def _boolean_mask(inputs, attrs):
    return [np.compress(inputs[1] != 0, inputs[0], axis=value(attrs, "axis", 0))]


def _backward_boolean_mask(inputs, attrs):
    out = np.zeros(tuple_value(attrs, "shape"), inputs[0].dtype)
    np.moveaxis(out, value(attrs, "axis", 0), 0)[inputs[1] != 0] = np.moveaxis(inputs[0], value(attrs, "axis", 0), 0)
    return [out]


def _index_copy(inputs, attrs):
    out, axis = inputs[0].copy(), value(attrs, "axis", 0)
    np.moveaxis(out, axis, 0)[inputs[1].astype("int64")] = np.moveaxis(inputs[2], axis, 0)
    return [out]


def _index_array(inputs, attrs):
    axes = tuple_value(attrs, "axes", tuple(range(inputs[0].ndim)))
    grid = np.indices(inputs[0].shape)
    return [np.stack([grid[axis] for axis in axes], axis=-1)]


def _histogram(inputs, attrs):
    low, high = tuple_value(attrs, "range")
    counts, edges = np.histogram(inputs[0].astype("float64"), value(attrs, "bin_cnt"), (low, high))
    return [counts.astype("int64"), edges.astype(inputs[0].dtype)]


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
    "gather_nd": _gather_nd,
    "_backward_gather_nd": _backward_gather_nd,
    "scatter_nd": _scatter_nd,
    "_scatter_set_nd": _scatter_set_nd,
    "_advanced_index_get": _advanced_index_get,
    "_backward_advanced_index": _backward_advanced_index,
    "_advanced_index_set": _advanced_index_set,
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
    "SequenceMask": _sequence_mask,
    "SequenceLast": _sequence_last,
    "_backward_SequenceLast": _backward_sequence_last,
    "SequenceReverse": _sequence_reverse,
    "_contrib_boolean_mask": _boolean_mask,
    "_backward_boolean_mask": _backward_boolean_mask,
    "_contrib_index_copy": _index_copy,
    "_backward_index_copy": _backward_index_copy,
    "_backward_advanced_index_set": _backward_advanced_index_set,
    "_contrib_index_array": _index_array,
    "_ravel_multi_index": lambda inputs, attrs: [
        np.ravel_multi_index(tuple(inputs[0].astype("int64")), tuple_value(attrs, "shape")).astype(inputs[0].dtype)
    ],
    "_unravel_index": lambda inputs, attrs: [
        np.stack(np.unravel_index(inputs[0].astype("int64"), tuple_value(attrs, "shape"))).astype(inputs[0].dtype)
    ],
    "_histogram": _histogram,
}
