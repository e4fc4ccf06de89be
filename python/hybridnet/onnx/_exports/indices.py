"""Elements and slices selected by index, and sequences of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._export_errors import refuse_use
from .._export_table import export_form
from .._export_values import Number, Spec, Tensor, product


def as_int64(g: Any, x: Tensor) -> Tensor:
    """Indices as int64."""
    return g.cast(x, "int64")


def in_range(g: Any, indices: Tensor, size: Number, mode: str) -> Tensor:
    """Indices of an axis, by the rule for those that are out of range; negative ones count from the end for raise."""
    indices = indices if indices.dtype in ("int32", "int64") else as_int64(g, indices)
    if mode == "raise":
        return indices
    if mode == "wrap":
        return g.emit("Mod", indices, g.number(size, indices.dtype))
    return g.emit("Clip", indices, 0, g.number(size - 1, indices.dtype))


def gather(g: Any, x: Tensor, indices: Tensor, axis: int, spec: Spec | None = None) -> Tensor:
    """Slices of x along an axis."""
    if indices.dtype not in ("int32", "int64"):
        indices = as_int64(g, indices)
    return g.emit("Gather", x, indices, axis=axis, spec=spec)


@export_form("take")
def _take(g: Any, node: Any) -> Tensor:
    x, indices = node.inputs
    axis = node.params["axis"] % x.ndim
    return gather(g, x, in_range(g, indices, x.dim(axis), node.params["mode"]), axis)


@export_form("Embedding", "_contrib_SparseEmbedding")
def _embedding(g: Any, node: Any) -> Tensor:
    indices, weight = node.inputs
    return gather(g, weight, in_range(g, indices, weight.dim(0), "clip"), 0)


def along(g: Any, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """One element of x per index along an axis; the other sizes are equal."""
    return g.emit("GatherElements", x, as_int64(g, indices), axis=axis, spec=indices.spec)


@export_form("pick")
def _pick(g: Any, node: Any) -> Tensor:
    x, indices = node.inputs
    p = node.params
    if p["axis"] is None:
        x, axis = g.flat(x), 0
        indices = g.reshape(indices, [1])
    else:
        axis = p["axis"] % x.ndim
        indices = g.reshape(indices, [*x.dims[:axis], 1, *x.dims[axis + 1 :]])
    made = along(g, x, in_range(g, indices, x.dim(axis), p["mode"]), axis)
    return g.reshape(made, node.dims())


@export_form("batch_take")
def _batch_take(g: Any, node: Any) -> Tensor:
    x, indices = node.inputs
    places = in_range(g, g.unsqueeze(indices, [1]), x.dim(1), "clip")
    return g.squeeze(along(g, x, places, 1), [1])


@export_form("_gather_along_axis")
def _gather_along_axis(g: Any, node: Any) -> Tensor:
    x, indices = node.inputs
    p = node.params
    outer, rows, inner, count = (p[name] for name in ("outer", "rows", "inner", "count"))
    x = g.reshape(x, node.explained([outer, rows, inner]))
    indices = g.reshape(indices, node.explained([outer, count, inner]))
    return g.reshape(along(g, x, in_range(g, indices, rows, p["mode"]), 1), node.dims())


@export_form("_contrib_count_sketch")
def _count_sketch(g: Any, node: Any) -> Tensor:
    """A product with a matrix whose rows hold a sign at one place."""
    x, places, signs = node.inputs
    size = node.dims()[-1]
    places = in_range(g, as_int64(g, g.flat(places)), size, "wrap")  # negative ones count from the end
    is_place = g.emit("Equal", g.unsqueeze(places, [1]), g.iota(size, places.dtype))
    rows = g.emit("Mul", g.cast(is_place, x.dtype), g.unsqueeze(g.flat(signs), [1]))
    return g.matmul(x, rows)


@export_form("_log_softmax_pick")
def _log_softmax_pick(g: Any, node: Any) -> Tensor:
    x, indices = node.inputs
    if node.reads(1):
        raise refuse_use(node, "the logarithms of the sums are for gradients")
    rows = g.emit("LogSoftmax", x, axis=-1)
    indices = g.reshape(indices, [*x.dims[:-1], 1])
    made = along(g, rows, in_range(g, indices, x.dim(-1), node.params["mode"]), x.ndim - 1)
    return g.reshape(made, node.dims())


@export_form("one_hot")
def _one_hot(g: Any, node: Any) -> Tensor:
    """Comparison with all indices: an index that is out of range, or negative, gives a row of off_value."""
    p = node.params
    indices = as_int64(g, node.inputs[0])
    places = g.iota(node.dims()[-1])
    dtype = node.outputs[0].dtype
    is_hot = g.emit("Equal", g.unsqueeze(indices, [indices.ndim]), places)
    if (p["on_value"], p["off_value"]) == (1, 0):
        return g.cast(is_hot, dtype)
    return g.where(is_hot, g.const(p["on_value"], dtype), g.const(p["off_value"], dtype))


# -------------------------------------------------------------------------------------------------------------- tuples
def _tuples_last(g: Any, indices: Tensor) -> Tensor:
    """Indices of axis m in row m, as tuples in the last axis."""
    return g.move_axis(as_int64(g, indices), 0, -1)


@export_form("gather_nd")
def _gather_nd(g: Any, node: Any) -> Tensor:
    x, indices = node.inputs
    return g.reshape(g.emit("GatherND", x, _tuples_last(g, indices)), node.dims())


def _scatter(g: Any, x: Tensor, indices: Tensor, values: Tensor, **attributes: Any) -> Tensor:
    tuples = _tuples_last(g, indices)
    depth = tuples.dim(-1)
    sizes = [*tuples.dims[:-1], *x.dims[int(depth) :]]
    return g.emit("ScatterND", x, tuples, g.reshape(values, sizes), spec=x.spec, **attributes)


@export_form("scatter_nd")
def _scatter_nd(g: Any, node: Any) -> Tensor:
    values, indices = node.inputs
    return _scatter(g, g.full(node.dims(), 0, values.dtype), indices, values)


@export_form("_scatter_set_nd")
def _scatter_set_nd(g: Any, node: Any) -> Tensor:
    x, values, indices = node.inputs
    return _scatter(g, x, indices, values)


def _common_tuples(g: Any, arrays: Sequence[Tensor]) -> Tensor:
    """Index arrays, broadcast together, as tuples in the last axis."""
    arrays = [as_int64(g, array) for array in arrays]
    if len(arrays) > 1 and len({array.shapes for array in arrays}) > 1:
        total = arrays[0]
        for array in arrays[1:]:
            total = g.emit("Add", total, array)
        arrays = [g.expand(array, total.dims) for array in arrays]
    return g.concat([g.unsqueeze(array, [array.ndim]) for array in arrays], arrays[0].ndim)


def _front(g: Any, x: Tensor, axis: int, count: int) -> tuple[Tensor, list[int]]:
    order = [*range(axis, axis + count), *range(axis), *range(axis + count, x.ndim)]
    return g.transpose(x, order), order


@export_form("_advanced_index_get")
def _advanced_index_get(g: Any, node: Any) -> Tensor:
    x, *arrays = node.inputs
    axis = node.params["axis"]
    if len(arrays) == 1:
        return gather(g, x, as_int64(g, arrays[0]), axis)
    tuples = _common_tuples(g, arrays)
    moved, _ = _front(g, x, axis, len(arrays))
    spec = Spec([(*t[:-1], *s[len(arrays) :]) for t, s in zip(tuples.shapes, moved.shapes, strict=True)], x.dtype)
    made = g.emit("GatherND", moved, tuples, spec=spec)
    common = tuples.ndim - 1
    order = [*range(common, common + axis), *range(common), *range(common + axis, made.ndim)]
    return g.transpose(made, order)


@export_form("_advanced_index_set")
def _advanced_index_set(g: Any, node: Any) -> Tensor:
    x, value, *arrays = node.inputs
    axis = node.params["axis"]
    tuples = _common_tuples(g, arrays)
    common = tuples.ndim - 1
    moved, order = _front(g, x, axis, len(arrays))
    sizes = [*x.dims[:axis], *tuples.dims[:-1], *x.dims[axis + len(arrays) :]]
    value = g.expand(value, sizes)
    value = g.transpose(value, [*range(axis, axis + common), *range(axis), *range(axis + common, len(sizes))])
    made = g.emit("ScatterND", moved, tuples, g.cast(value, x.dtype), spec=moved.spec)
    return g.transpose(made, [order.index(i) for i in range(x.ndim)])


@export_form("_ravel_multi_index")
def _ravel_multi_index(g: Any, node: Any) -> Tensor:
    indices, sizes = as_int64(g, node.inputs[0]), node.params["shape"]
    steps = [product(sizes[axis + 1 :]) for axis in range(len(sizes))]
    steps = g.reshape(g.vector(steps), [len(sizes), *[1] * (indices.ndim - 1)])
    made = g.reduce("Sum", g.emit("Mul", indices, steps), [0], keepdims=False)
    return g.reshape(made, node.dims())


def unraveled(g: Any, indices: Tensor, sizes: Sequence[Number]) -> list[Tensor]:
    """Flat indices as one array of indices for each axis."""
    rest, made = as_int64(g, indices), []
    for size in reversed(sizes[1:]):
        divisor = g.number(size, "int64")
        made.append(g.emit("Mod", rest, divisor))
        rest = g.emit("Div", rest, divisor)
    return [rest, *reversed(made)]


@export_form("_unravel_index")
def _unravel_index(g: Any, node: Any) -> Tensor:
    parts = unraveled(g, node.inputs[0], node.params["shape"])
    return g.concat([g.unsqueeze(part, [0]) for part in parts], 0)


@export_form("_npi_unravel_index")
def _unravel_axes(g: Any, node: Any) -> list[Tensor]:
    return unraveled(g, node.inputs[0], node.params["shape"])


@export_form("_contrib_index_array")
def _index_array(g: Any, node: Any) -> Tensor:
    x, axes = node.inputs[0], node.params["axes"]
    axes = range(x.ndim) if axes is None else axes
    parts = []
    for axis in axes:
        axis = axis % x.ndim
        places = g.reshape(g.iota(x.dim(axis)), [*[1] * axis, x.dim(axis), *[1] * (x.ndim - axis - 1)])
        parts.append(g.unsqueeze(g.expand(places, x.dims), [x.ndim]))
    return g.concat(parts, x.ndim) if parts else g.full(node.dims(), 0, "int64")


# --------------------------------------------------------------------------------------------------------------- rows
def _set_rows(g: Any, x: Tensor, indices: Tensor, rows: Tensor) -> Tensor:
    return g.emit("ScatterND", x, g.unsqueeze(as_int64(g, indices), [1]), rows, spec=x.spec)


@export_form("_contrib_index_copy")
def _index_copy(g: Any, node: Any) -> Tensor:
    x, indices, slices = node.inputs
    axis = node.params["axis"] % x.ndim
    swapped = list(range(x.ndim))
    swapped[0], swapped[axis] = axis, 0
    return g.transpose(_set_rows(g, g.transpose(x, swapped), indices, g.transpose(slices, swapped)), swapped)


@export_form("_sparse_retain")
def _sparse_retain(g: Any, node: Any) -> Tensor:
    x, indices = node.inputs
    return _set_rows(g, g.full(x.dims, 0, x.dtype), indices, gather(g, x, as_int64(g, indices), 0))


@export_form("fill_element_0index")
def _fill_element(g: Any, node: Any) -> Tensor:
    x, values, indices = node.inputs
    places = g.unsqueeze(as_int64(g, indices), [1])
    return g.emit("ScatterElements", x, places, g.unsqueeze(values, [1]), axis=1, spec=x.spec)


@export_form("_rows_before")
def _rows_before(g: Any, node: Any) -> Tensor:
    rows, initial = node.inputs
    if node.params["reverse"]:
        return g.concat([g.slice(rows, 0, 1, None), initial], 0)
    return g.concat([initial, g.slice(rows, 0, 0, rows.dim(0) - 1)], 0)


# --------------------------------------------------------------------------------------------------------- data decide
@export_form("_contrib_boolean_mask")
def _boolean_mask(g: Any, node: Any) -> Tensor:
    x, mask = node.inputs
    return g.emit("Compress", x, g.truth(mask), axis=node.params["axis"] % x.ndim)


@export_form("_npx_nonzero")
def _nonzero(g: Any, node: Any) -> Tensor:
    return g.emit("Transpose", g.emit("NonZero", node.inputs[0]), perm=[1, 0])


@export_form("_npi_unique")
def _unique(g: Any, node: Any) -> list[Tensor]:
    p = node.params
    axis = p["axis"]
    x = node.inputs[0]
    values, *others = g.emit("Unique", x if axis is not None else g.flat(x), axis=axis, sorted=1, outputs=4)
    for other in others:
        other.dtype = "int64"
    wanted = zip(others, ("return_index", "return_inverse", "return_counts"), strict=True)
    return [values, *[other for other, name in wanted if p[name]]]


@export_form("_npi_bincount")
def _bincount(g: Any, node: Any) -> Tensor:
    numbers = as_int64(g, node.inputs[0])
    least = node.params["minlength"]
    largest = g.emit("ReduceMax", numbers, keepdims=1)
    length = g.emit("Max", g.emit("Add", largest, 1), least)
    dtype = node.outputs[0].dtype
    compute = "float32" if dtype in ("float16", "bfloat16") else dtype
    zeros = g.full_of(length, 0, compute)
    weights = node.inputs[1] if len(node.inputs) > 1 else g.full(numbers.dims, 1, "int64")
    if g.opset < 16:
        raise refuse_use(node, f"opset {g.opset} has no sums of scattered elements", fix="opset_version=16 or more")
    return g.emit("ScatterElements", zeros, numbers, g.cast(weights, compute), axis=0, reduction="add")


@export_form("_histogram")
def _histogram(g: Any, node: Any) -> tuple[Tensor, Tensor]:
    """Counts by comparison with the edges; each bin includes its lower edge, the last one its upper edge, too."""
    import numpy as np

    p = node.params
    x = g.flat(node.inputs[0])
    if p["bin_cnt"] is not None:
        low, high = p["range"]
        edges = g.const(np.linspace(low, high, p["bin_cnt"] + 1))
    else:
        edges = node.inputs[1]
    dtype = "float64"
    column, bounds = g.unsqueeze(g.cast(x, dtype), [1]), g.cast(edges, dtype)
    below = g.cast(g.emit("GreaterOrEqual", column, bounds), "int64")
    sums = g.reduce("Sum", below, [0], keepdims=False)
    counts = g.emit("Sub", g.slice(sums, 0, 0, sums.dim(0) - 1), g.slice(sums, 0, 1, None))
    last = g.slice(bounds, 0, -1, None)
    at_end = g.reduce("Sum", g.cast(g.emit("Equal", g.cast(x, dtype), last), "int64"), [0], keepdims=True)
    is_last = g.cast(g.emit("Equal", g.iota(counts.dim(0)), g.number(counts.dim(0) - 1, "int64")), "int64")
    return g.emit("Add", counts, g.emit("Mul", is_last, at_end)), edges


@export_form("_npi_searchsorted")
def _searchsorted(g: Any, node: Any) -> Tensor:
    """The number of elements that are smaller, or not larger."""
    bounds, values = node.inputs
    op = "LessOrEqual" if node.params["right"] else "Less"
    smaller = g.cast(g.emit(op, bounds, g.unsqueeze(values, [values.ndim])), "int64")
    return g.reduce("Sum", smaller, [values.ndim], keepdims=False)


@export_form("_insertion_places")
def _insertion_places(g: Any, node: Any) -> Tensor:
    places = as_int64(g, node.inputs[0])
    size = g.number(node.params["size"], "int64")
    return g.where(g.emit("Less", places, 0), g.emit("Add", places, size), places)


# ----------------------------------------------------------------------------------------------------------- sequences
def _lengths(g: Any, node: Any, x: Tensor, axis: int, least: int) -> Tensor | None:
    """The lengths of sequences, limited to the time axis."""
    if not node.params["use_sequence_length"]:
        return None
    steps = g.number(x.dim(axis), "int64")
    return g.emit("Clip", as_int64(g, g.flat(node.inputs[1])), least, steps)


@export_form("SequenceMask")
def _sequence_mask(g: Any, node: Any) -> Tensor:
    x, axis = node.inputs[0], node.params["axis"]
    if not node.params["use_sequence_length"]:
        return x
    lengths = as_int64(g, node.inputs[1])
    times = g.unsqueeze(g.iota(x.dim(axis)), [1 - axis])
    inside = g.emit("Less", times, g.unsqueeze(lengths, [axis]))
    inside = g.unsqueeze(inside, range(2, x.ndim))
    return g.where(inside, x, node.params["value"])


@export_form("SequenceLast")
def _sequence_last(g: Any, node: Any) -> Tensor:
    x, axis = node.inputs[0], node.params["axis"]
    lengths = _lengths(g, node, x, axis, 1)
    if lengths is None:
        return g.reshape(g.slice(x, axis, -1, None), node.dims())
    rows = x if axis == 1 else g.move_axis(x, 1, 0)
    places = g.unsqueeze(g.emit("Sub", lengths, 1), [1])
    return g.reshape(g.emit("GatherND", rows, places, batch_dims=1), node.dims())


@export_form("SequenceReverse")
def _sequence_reverse(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    lengths = _lengths(g, node, x, 0, 0)
    if lengths is None:
        return g.slice(x, 0, None, None, -1, x.spec)
    return g.emit("ReverseSequence", x, lengths, time_axis=0, batch_axis=1, spec=x.spec)


@export_form("_contrib_getnnz")
def _getnnz(g: Any, node: Any) -> Tensor:
    x, axis = node.inputs[0], node.params["axis"]
    count = g.cast(g.emit("Not", g.emit("Equal", x, 0)), "int64")
    axes = range(x.ndim) if axis is None else [axis]
    return g.reshape(g.reduce("Sum", count, axes, keepdims=False), node.dims())


@export_form("_contrib_arange_like")
def _arange_like(g: Any, node: Any) -> Tensor:
    """Ranges of integer dtypes have integer steps."""
    p = node.params
    sizes, dtype = node.dims(), node.outputs[0].dtype
    places = g.iota(product(sizes))
    if p["repeat"] != 1:
        places = g.emit("Div", places, p["repeat"])
    start, step, wide = p["start"], p["step"], "float64" if dtype == "float64" else "float32"
    if not dtype.startswith(("float", "bfloat")):
        start, step, wide = int(start), int(step), "int64"
    made = g.cast(places, wide)
    if step != 1:
        made = g.emit("Mul", made, step)
    if start != 0:
        made = g.emit("Add", made, start)
    return g.reshape(g.cast(made, dtype), sizes)
