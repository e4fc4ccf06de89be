"""Elements that are selected by their values, or by a mask: the number of them follows from data."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arithmetic import permute
from .._axes import axis_of
from .._sizes import is_number
from .._table import form
from .slicing import sliced


@form("NonZero")
def nonzero(g: Any, node: Any, x: Any) -> Any:
    """The indices of the elements that are not 0, one column per element."""
    x = g.reshape(x, [-1]) if x.ndim == 0 else x
    shapes = [(size, x.ndim) for size in g.data_size(x)]
    return permute(g, g.emit("_npx_nonzero", [x], shapes=shapes, dtype="int64"), [1, 0], node.name)


@form("Compress")
def compress(g: Any, node: Any, x: Any, condition: Any) -> Any:
    """The slices of an axis, or the elements, for which a condition holds; none beyond the end of the condition."""
    axis = axis_of(node.attr("axis"), x.ndim, node) if node.has("axis") else 0
    if not node.has("axis"):
        x = g.reshape(x, [-1])
    if condition.is_const:
        places = g.constant(np.flatnonzero(condition.const), "places", "int64")
        return g.emit("take", [x, places], name=node.name, axis=axis, mode="raise")
    length, own = g.dim(condition, 0), g.dim(x, axis)
    if not (length.trials == own.trials if not is_number(length) and not is_number(own) else length == own):
        x = sliced(
            g, x, [None] * x.ndim, [length if number == axis else None for number in range(x.ndim)], [None] * x.ndim, ""
        )
    sizes = g.data_size(condition)
    shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for shape, size in zip(x.shapes, sizes, strict=True)]
    return g.emit("_contrib_boolean_mask", [x, condition], name=node.name, axis=axis, shapes=shapes)


__all__ = ["compress", "nonzero"]
