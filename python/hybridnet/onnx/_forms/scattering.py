"""Tensors with elements replaced, or combined with others, at positions that a tensor of indices names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arithmetic import calculate, count, cut, join, total
from .._axes import axis_of
from .._errors import described, refuse, wrong
from .._guards import guarded
from .._sizes import Number, is_number
from .._table import form
from .._values import Value
from .gathering import places_along, tuples_first

# Products with several factors for one element are computed factor by factor.
_MOST_FACTORS = 64


@form("Scatter", "ScatterElements")
def scatter_elements(g: Any, node: Any, x: Any, indices: Any, updates: Any) -> Any:
    """The element at an index along an axis is replaced by, or combined with, that of the updates, per position."""
    axis = axis_of(node.attr("axis", 0), x.ndim, node)
    return (_along_axis(g, node, x, indices, updates, axis, node.attr("reduction", "none")),)


def _along_axis(g: Any, node: Any, x: Value, indices: Value, updates: Value, axis: int, reduction: str) -> Value:
    if reduction == "none":
        return _written(g, x, updates, places_along(g, indices, axis), node.name)
    if reduction == "add":
        if all(is_number(size) for size in g.dims(x)):
            return _added(g, x, updates, places_along(g, indices, axis), node.name)
        return _summed(g, node, x, indices, updates, axis)
    if reduction in ("max", "min"):
        return _extreme(g, x, indices, updates, axis, reduction, node.name)
    if reduction == "mul":
        return _multiplied(g, node, x, indices, updates, axis)
    raise refuse(f"reduction '{reduction}' is not supported", node=node.proto)


def _written(g: Any, x: Value, updates: Value, places: list[Value], name: str = "") -> Value:
    """x with updates at places; the last one of several stays."""
    made: Value = g.emit("_advanced_index_set", [x, updates, *places], name=name, num_args=2 + len(places), axis=0)
    return made


def _added(g: Any, x: Value, updates: Value, places: list[Value], name: str) -> Value:
    shape = tuple(g.dims(x))
    if x.dtype == "bool":
        raise refuse("sums of bool are not supported")
    rows = [g.broadcast_to(g.cast(place, "int64"), g.dims(updates)) for place in places]
    tuples = g.emit("_npi_stack", rows, num_args=len(rows), axis=0)
    terms = g.emit("_backward_gather_nd", [updates, tuples], shape=shape)
    return calculate(g, "+", x, terms, name)


def _extreme(g: Any, x: Value, indices: Value, updates: Value, axis: int, reduction: str, name: str) -> Value:
    """The largest of an element and its updates is the last one if they are written in rising order."""
    sign = reduction == "min" and updates.dtype in ("float32", "float64", "float16", "bfloat16")
    rising = g.emit("negative", [updates]) if sign else updates  # orders NaN last, too
    ascending = reduction == "max" or sign
    order = g.emit("argsort", [rising], axis=axis, is_ascend=ascending, dtype="int64")
    around = places_along(g, order, axis)
    ordered = [
        g.emit("_advanced_index_get", [value, *around], num_args=1 + len(around), axis=0)
        for value in (updates, indices)
    ]
    extremes = _written(g, x, ordered[0], places_along(g, ordered[1], axis))
    op = "broadcast_maximum" if reduction == "max" else "broadcast_minimum"
    made: Value = g.emit(op, [x, extremes], name=name)
    return made


def _summed(g: Any, node: Any, x: Value, indices: Value, updates: Value, axis: int) -> Value:
    """Sums in a tensor of open sizes: those of the updates with the same number of their element."""
    dims = g.dims(x)
    row: Any = None
    for place, size in zip(places_along(g, _inside(g, node, indices, dims[axis]), axis), dims, strict=True):
        row = place if row is None else calculate(g, "+", calculate(g, "*", row, size), place)
    # A zero for the last element gives the sums the length of the tensor.
    last = g.emit("_minus_scalar", [g.reshape(g.emit("size_array", [x]), [1])], scalar=1)
    rows = join(g, [g.reshape(row, [-1]), last], 0)
    terms = join(g, [g.reshape(updates, [-1]), g.constant([0], "zero", x.dtype, trainable=False)], 0)
    lengths = [(math.prod(shape),) for shape in x.shapes]
    sums = g.emit("_npi_bincount", [rows, terms], has_weights=True, shapes=lengths, dtype=x.dtype)
    made: Value = calculate(g, "+", x, g.reshape(sums, dims), node.name)
    return made


def _inside(g: Any, node: Any, indices: Value, size: Number) -> Value:
    """Indices along an axis from its start, int64; a run with others than the axis has fails."""
    indices = g.cast(indices, "int64")
    is_negative = g.cast(calculate(g, "<", indices, 0), "int64")
    places = calculate(g, "+", indices, calculate(g, "*", is_negative, size))
    low, high = calculate(g, "<=", 0, places), calculate(g, "<", places, size)
    message = f"{described(node.proto)}: an index is outside of its axis"
    return guarded(g, places, calculate(g, "*", low, high), message)


def _multiplied(g: Any, node: Any, x: Value, indices: Value, updates: Value, axis: int) -> Value:
    """Position by position along the axis, where no element is named twice."""
    size = indices.fixed(axis)
    if size is None or size > _MOST_FACTORS:
        raise refuse(
            f"reduction 'mul' of {'an open number of' if size is None else size} updates along axis {axis}",
            because=f"products are computed update by update, up to {_MOST_FACTORS}",
            node=node.proto,
        )
    for number in range(size):
        places = places_along(g, cut(g, indices, axis, number, number + 1), axis)
        old = g.emit("_advanced_index_get", [x, *places], num_args=1 + len(places), axis=0)
        factor = cut(g, updates, axis, number, number + 1)
        x = _written(g, x, calculate(g, "*", old, factor), places, node.name)
    return x


@form("ScatterND")
def scatter_nd(g: Any, node: Any, x: Any, indices: Any, updates: Any) -> Any:
    """Slices at tuples of indices, which are the last axis of `indices`, are replaced or combined with updates."""
    reduction, depth = node.attr("reduction", "none"), indices.fixed(-1)
    if depth is None or depth > x.ndim:
        raise wrong(f"indices of shape {indices.shape} for {x.ndim} axes", node=node.proto)
    if indices.ndim == 1:
        indices = g.emit("expand_dims", [indices], axis=0)
        updates = g.emit("expand_dims", [updates], axis=0)
    if reduction == "none":
        rows = tuple(of[:-1] + own[depth:] for of, own in zip(indices.shapes, x.shapes, strict=True))
        # A number of rows that follows from data may have been assumed anew for the updates: the run compares them.
        known = {} if updates.shapes == rows else {"shapes": x.shapes, "dtype": x.dtype}
        return g.emit("_scatter_set_nd", [x, updates, tuples_first(g, indices)], name=node.name, shape=(), **known)
    if reduction == "add" and all(is_number(size) for size in g.dims(x)):
        terms = g.emit("_backward_gather_nd", [updates, tuples_first(g, indices)], shape=tuple(g.dims(x)))
        return calculate(g, "+", x, terms, node.name)
    return (_slices(g, node, x, indices, updates, depth, reduction),)


def _slices(g: Any, node: Any, x: Value, indices: Value, updates: Value, depth: int, reduction: str) -> Value:
    """The tuples as row numbers of a matrix, whose columns are the elements of the slices."""
    dims = g.dims(x)
    width = total("*", [1, *dims[depth:]])
    matrix = g.reshape(x, [-1, width])
    rows = _row_numbers(g, node, indices, dims[:depth])
    rows = g.broadcast_to(g.reshape(rows, [-1, 1]), [total("*", [1, *g.dims(indices)[:-1]]), width])
    made = _along_axis(g, node, matrix, rows, g.reshape(updates, [-1, width]), 0, reduction)
    result: Value = g.reshape(made, dims, node.name)
    return result


def _row_numbers(g: Any, node: Any, indices: Value, sizes: list[Number]) -> Value:
    """Tuples of indices as indices of the merged axes."""
    row: Any = g.constant(np.zeros((), "int64"), "row")
    for number, size in enumerate(sizes):
        column = _inside(g, node, cut(g, indices, indices.ndim - 1, number, number + 1), size)
        row = calculate(g, "+", calculate(g, "*", row, size), column)
    return row


@form("TensorScatter")
def tensor_scatter(g: Any, node: Any, cache: Any, update: Any, write_indices: Any = None) -> Any:
    """A cache with an update written along an axis, from an index of each batch on; circular: beyond the end at 0."""
    axis = axis_of(node.attr("axis", -2), cache.ndim, node)
    ndim = axis + 1
    if axis == 0:
        raise wrong("the axis is that of the batch", node=node.proto)
    place = count(g, g.dim(update, axis), "int64", (*[1] * axis, -1))
    if write_indices is not None:
        start = g.reshape(g.cast(write_indices, "int64"), [-1, *[1] * axis])
        place = calculate(g, "+", place, start)
    if node.attr("mode", "linear") == "circular":
        place = calculate(g, "%", place, g.dim(cache, axis))
    around = [
        count(g, g.dim(update, number), "int64", tuple(-1 if other == number else 1 for other in range(ndim)))
        for number in range(axis)
    ]
    return (_written(g, cache, update, [*around, place], node.name),)


__all__ = ["scatter_elements", "scatter_nd", "tensor_scatter"]
