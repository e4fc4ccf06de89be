"""Arrays of sizes that are taken apart and put together: the results are numbers and sizes again."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._sizes import is_number
from .._table import on_sizes
from .._values import MOST_SIZES, Value, sizes_of

Sized = list[tuple[np.ndarray, str]]


def _whole(value: Value | None) -> list[int] | None:
    """The elements as integers, if they are numbers."""
    array = None if value is None else sizes_of(value)
    if array is None or not all(is_number(item) for item in array.reshape(-1)):
        return None
    return [int(item) for item in array.reshape(-1)]


def _parameter(node: Any, name: str, value: Value | None) -> list[int] | None:
    """A list that old versions have as an attribute and new ones as an input."""
    return node.attr(name) if value is None else _whole(value)


def _is_open(value: Value | None) -> bool:
    return value is not None and _whole(value) is None


@on_sizes("Gather")
def gather(g: Any, node: Any, x: Value, indices: Value) -> Sized | None:
    """Elements at constant positions."""
    array, places = sizes_of(x), sizes_of(indices)
    if _is_open(indices) or array is None or places is None:
        return None
    taken = np.take(array, places.astype(np.int64), axis=node.attr("axis", 0))
    return [(np.asarray(taken, dtype=object), x.dtype)]


@on_sizes("Slice")
def slice_(g: Any, node: Any, x: Value, *given: Value) -> Sized | None:
    """Elements between constant bounds."""
    array = sizes_of(x)
    starts, ends, axes, steps = (
        _parameter(node, name, value)
        for name, value in zip(("starts", "ends", "axes", "steps"), [*given, *[None] * 4], strict=False)
    )
    if array is None or any(_is_open(value) for value in given) or starts is None or ends is None:
        return None
    places = [slice(None)] * array.ndim
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis, step = axes[number] if axes else number, steps[number] if steps else 1
        if step < 0 and start < 0:
            start = max(start + array.shape[axis], 0)
        places[axis] = slice(start, end, step)
    return [(array[tuple(places)], x.dtype)]


@on_sizes("Concat")
def concat(g: Any, node: Any, *values: Value) -> Sized | None:
    """Arrays one after another, unless the result is too large to be parameters."""
    if sum(value.shapes[0][0] if value.ndim else 1 for value in values) > MOST_SIZES:
        return None
    joined = np.concatenate([sizes_of(value) for value in values], axis=node.attr("axis", 1))
    return [(joined, values[0].dtype)]


@on_sizes("Unsqueeze")
def unsqueeze(g: Any, node: Any, x: Value, axes: Value | None = None) -> Sized | None:
    """More axes of size 1."""
    array, given = sizes_of(x), _parameter(node, "axes", axes)
    if array is None or given is None:
        return None
    return [(np.expand_dims(array, tuple(given)), x.dtype)]


@on_sizes("Squeeze")
def squeeze(g: Any, node: Any, x: Value, axes: Value | None = None) -> Sized | None:
    """Fewer axes of size 1."""
    array, given = sizes_of(x), _parameter(node, "axes", axes)
    if array is None or _is_open(axes):
        return None
    return [(np.squeeze(array, None if given is None else tuple(given)), x.dtype)]


@on_sizes("Reshape")
def reshape(g: Any, node: Any, x: Value, shape: Value | None = None) -> Sized | None:
    """Another constant shape."""
    array, given = sizes_of(x), _parameter(node, "shape", shape)
    if array is None or given is None or 0 in given:
        return None
    return [(array.reshape(given), x.dtype)]


@on_sizes("Flatten")
def flatten(g: Any, node: Any, x: Value) -> Sized | None:
    """A matrix of the elements."""
    array, axis = sizes_of(x), node.attr("axis", 1)
    if array is None:
        return None
    rows = int(np.prod(array.shape[: axis if axis >= 0 else axis + array.ndim]))
    return [(array.reshape(rows, -1), x.dtype)] if array.size else None


@on_sizes("Transpose")
def transpose(g: Any, node: Any, x: Value) -> Sized | None:
    """Permuted axes."""
    array = sizes_of(x)
    return None if array is None else [(np.transpose(array, node.attr("perm")), x.dtype)]


@on_sizes("Expand")
def expand(g: Any, node: Any, x: Value, shape: Value) -> Sized | None:
    """Repeats of a few sizes, to a constant shape."""
    array, given = sizes_of(x), _whole(shape)
    if array is None or given is None:
        return None
    target = np.broadcast_shapes(array.shape, tuple(given))
    return [(np.broadcast_to(array, target), x.dtype)] if np.prod(target) <= MOST_SIZES else None


@on_sizes("Tile")
def tile(g: Any, node: Any, x: Value, repeats: Value | None = None, axis: Value | None = None) -> Sized | None:
    """Repeats of a few sizes."""
    array, given = sizes_of(x), _whole(repeats)
    if array is None or given is None or axis is not None or array.size * np.prod(given) > MOST_SIZES:
        return None
    return [(np.tile(array, given), x.dtype)]


@on_sizes("Split")
def split(g: Any, node: Any, x: Value, parts: Value | None = None) -> Sized | None:
    """Parts of constant sizes."""
    array, given = sizes_of(x), _parameter(node, "split", parts)
    if array is None or _is_open(parts):
        return None
    axis = node.attr("axis", 0)
    if given is None:
        size, count = array.shape[axis], node.attr("num_outputs") or len(node.proto.output)
        chunk = -(-size // count)
        given = [max(min(chunk, size - chunk * number), 0) for number in range(count)]
    ends = np.cumsum(given)[:-1]
    return [(part, x.dtype) for part in np.split(array, ends, axis=axis)]


__all__ = [
    "concat",
    "expand",
    "flatten",
    "gather",
    "reshape",
    "slice_",
    "split",
    "squeeze",
    "tile",
    "transpose",
    "unsqueeze",
]
