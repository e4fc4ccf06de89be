"""Elements and slices at positions that a tensor of indices names."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arithmetic import count, cut, permute
from .._axes import axis_of
from .._errors import wrong
from .._table import form
from .._values import Value


@form("Gather")
def gather(g: Any, node: Any, x: Any, indices: Any) -> Any:
    """Slices along an axis. Constant indices that are evenly spaced make a view, which the rewriter sees through."""
    axis = axis_of(node.attr("axis", 0), x.ndim, node)
    if indices.is_const and not x.is_const:
        part = _as_slice(g, node, x, indices.const.reshape(-1), axis)
        if part is not None:
            dims = g.dims(x)
            target = [*dims[:axis], *indices.const.shape, *dims[axis + 1 :]]
            if indices.ndim == 0:
                return g.emit("_np_squeeze", [part], name=node.name, axis=axis)
            return (part if indices.ndim == 1 else g.reshape(part, target, node.name),)
    return g.emit("take", [x, indices], name=node.name, axis=axis, mode="raise")


def _as_slice(g: Any, node: Any, x: Value, places: np.ndarray, axis: int) -> Value | None:
    """Slices at evenly spaced positions, of which all count from the same end."""
    size = x.fixed(axis)
    if places.size == 0:
        return None
    if size is not None:
        outside = places[(places < -size) | (places >= size)]
        if outside.size:
            raise wrong(f"index {outside[0]} for an axis of size {size}", node=node.proto)
        places = places % size
    if places.min() < 0 <= places.max():
        return None
    first, last = int(places[0]), int(places[-1])
    step = int(places[1]) - first if places.size > 1 else 1
    if step == 0 or np.any(np.diff(places) != step):
        return None
    end = last + (1 if step > 0 else -1)
    stop = None if (end == 0 and last < 0) or (end < 0 <= last) else end
    if step == 1:
        return cut(g, x, axis, first, stop, "" if places.ndim else node.name)
    around = (None,) * axis
    made: Value = g.emit("slice", [x], begin=(*around, first), end=(*around, stop), step=(*around, step))
    return made


def places_along(g: Any, indices: Value, axis: int) -> list[Value]:
    """One array of indices per axis, which broadcast together: the given ones along `axis`, counts along others."""
    ndim = indices.ndim
    return [
        indices if number == axis else count(g, g.dim(indices, number), "int64", _column(number, ndim))
        for number in range(ndim)
    ]


def _column(axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(-1 if number == axis else 1 for number in range(ndim))


@form("GatherElements")
def gather_elements(g: Any, node: Any, x: Any, indices: Any) -> Any:
    """The element at an index along an axis, for each position."""
    axis = axis_of(node.attr("axis", 0), x.ndim, node)
    places = places_along(g, indices, axis)
    return g.emit("_advanced_index_get", [x, *places], name=node.name, num_args=1 + len(places), axis=0)


@form("GatherND")
def gather_nd(g: Any, node: Any, x: Any, indices: Any) -> Any:
    """Elements or slices at tuples of indices, which are the last axis of `indices`."""
    batch_dims = node.attr("batch_dims", 0)
    depth = indices.fixed(-1)
    if depth is None or depth + batch_dims > x.ndim:
        raise wrong(f"indices of shape {indices.shape} for {x.ndim} axes", node=node.proto)
    if batch_dims == 0 and indices.ndim > 1:
        return g.emit("gather_nd", [x, tuples_first(g, indices)], name=node.name)
    batch = g.dims(indices)[:batch_dims]
    columns = [count(g, size, "int64", _column(axis, indices.ndim - 1)) for axis, size in enumerate(batch)]
    for number in range(depth):
        column = cut(g, indices, indices.ndim - 1, number, number + 1)
        columns.append(g.emit("_np_squeeze", [column], axis=indices.ndim - 1))
    return g.emit("_advanced_index_get", [x, *columns], name=node.name, num_args=1 + len(columns), axis=0)


def tuples_first(g: Any, indices: Value) -> Value:
    """Indices with their tuples along the first axis, in place of the last one."""
    return permute(g, indices, [indices.ndim - 1, *range(indices.ndim - 1)])


__all__ = ["gather", "gather_elements", "gather_nd", "places_along", "tuples_first"]
