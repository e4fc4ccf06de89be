"""Elements in order: the largest ones, unique ones, and the reverse order of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arithmetic import cut, permute
from .._axes import axis_of
from .._builder import is_known
from .._sizes import Size
from .._table import form
from .._values import Value


@form("TopK")
def top_k(g: Any, node: Any, x: Any, k: Any = None) -> Any:
    """The k largest or smallest elements along an axis, in order, and their indices."""
    axis = axis_of(node.attr("axis", -1), x.ndim, node)
    number = node.attr("k") if k is None else g.item(k)
    settings = {"axis": axis, "ret_typ": "both", "is_ascend": not node.attr("largest", 1), "dtype": "int64"}
    if isinstance(number, Size):  # with the positions, which the gradient reads
        return g.emit("topk", [x], name=node.name, outputs=3, k=number, **settings)[:2]
    if is_known(number) and number > 0:
        return g.emit("topk", [x], name=node.name, k=int(number), **settings)
    ordered = g.emit("topk", [x], k=0, **settings)  # all of them
    if is_known(number):
        return tuple(cut(g, value, axis, 0, 0, node.name) for value in ordered)
    sizes = g.data_size(k)
    shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for shape, size in zip(x.shapes, sizes, strict=True)]
    return tuple(
        g.emit("slice_axis", [value], name=node.name, axis=axis, begin=0, end=number, shapes=shapes)
        for value in ordered
    )


@form("Unique")
def unique(g: Any, node: Any, x: Any) -> Any:
    """Unique elements, or slices of an axis; their first indices; the index of each element's value; their counts."""
    axis = axis_of(node.attr("axis"), x.ndim, node) if node.has("axis") else None
    count = g.data_size()
    if axis is None:
        total = [int(np.prod(shape)) for shape in x.shapes]
        shapes = [(size,) for size in count]
    else:
        total = [shape[axis] for shape in x.shapes]
        shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for shape, size in zip(x.shapes, count, strict=True)]
    one_each = [(size,) for size in count]
    values, first, inverse, counts = g.emit(
        "_npi_unique",
        [x],
        name=node.name,
        outputs=4,
        shapes=[shapes, one_each, [(size,) for size in total], one_each],
        dtype=[x.dtype, "int64", "int64", "int64"],
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=axis,
    )
    if node.attr("sorted", 1):
        return values, first, inverse, counts
    order = g.emit("argsort", [first], axis=0, dtype="int64")  # the order of first appearance
    rank = g.emit("argsort", [order], axis=0, dtype="int64")

    def taken(value: Value, places: Value, along: int = 0) -> Value:
        made: Value = g.emit("take", [value, places], name=node.name, axis=along, mode="raise")
        return made

    return taken(values, order, axis or 0), taken(first, order), taken(rank, inverse), taken(counts, order)


@form("ReverseSequence")
def reverse_sequence(g: Any, node: Any, x: Any, lengths: Any) -> Any:
    """The first elements of each sequence in reverse order, up to its length."""
    time, batch = node.attr("time_axis", 0), node.attr("batch_axis", 1)
    order = [time, batch, *(axis for axis in range(x.ndim) if axis not in (time, batch))]
    made = g.emit("SequenceReverse", [permute(g, x, order), lengths], name=node.name, use_sequence_length=True)
    return permute(g, made, [order.index(axis) for axis in range(x.ndim)], node.name)


__all__ = ["reverse_sequence", "top_k", "unique"]
