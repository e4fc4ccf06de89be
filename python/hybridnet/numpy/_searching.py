"""Sorting, searching, and selection by indices."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ..errors import ParamError, ShapeError
from ._calls import as_array, as_parts, cast, choose, common, flat
from ._elementwise import equal, minimum
from ._manipulation import ndim, size
from ._operators import direct, np_operator
from ._rearranging import broadcast_to, reshape

__all__ = [
    "argpartition", "argsort", "argwhere", "compress", "digitize", "extract", "flatnonzero", "in1d", "isin", "lexsort",
    "msort", "nonzero", "partition", "searchsorted", "select", "sort", "take", "take_along_axis", "unique",
]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- sorting
def _no_order(function: str, order: Any) -> None:
    if order is not None:
        raise ParamError(f"np.{function}: order", expected="None, for arrays have no fields", given=repr(order))


def _sortable(function: str, a: Any, axis: int | None) -> Any:
    a = as_array(a)
    if axis is not None and hasattr(a, "shape") and len(a.shape) == 0:
        raise ShapeError(f"np.{function}: a", expected="at least one axis", given="a scalar", fix="pass axis=None")
    return a


@direct("_npi_sort", "axis")
def sort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool = True,
) -> Any:
    """Sorts ascending (or descending) along an axis, all elements if axis is None; NaN last. Every kind is stable."""
    _no_order("sort", order)
    return np_operator("_npi_sort")(_sortable("sort", a, axis), axis=axis, is_ascend=not descending)


@direct("_npi_argsort", "axis", dtype="int64")
def argsort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool = True,
) -> Any:
    """Returns the indices that sort along an axis, int64; equal elements keep their order."""
    _no_order("argsort", order)
    rising = not descending
    return np_operator("_npi_argsort")(_sortable("argsort", a, axis), axis=axis, is_ascend=rising, dtype="int64")


def msort(a: Any) -> Any:
    """Sorts ascending along the first axis."""
    return sort(a, axis=0)


def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    """Like :func:`sort`, which also puts element kth in its place."""
    return sort(a, axis, order=order)


def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    """Like :func:`argsort`, which also puts element kth in its place."""
    return argsort(a, axis, order=order)


def lexsort(keys: Any, axis: int = -1) -> Any:
    """Returns the indices that sort by several keys, the last key first; int64."""
    keys = as_parts(keys)
    if not keys:
        raise ParamError("np.lexsort: keys", expected="at least one key", given="none")
    result = argsort(keys[0], axis)
    for key in keys[1:]:
        result = take_along_axis(result, argsort(take_along_axis(key, result, axis), axis), axis)
    return result


# ----------------------------------------------------------------------------------------------------------- searching
def nonzero(a: Any) -> tuple[Any, ...]:
    """Returns the indices of the nonzero elements, one int64 array per axis."""
    a = as_array(a)
    if ndim(a) == 0:
        raise ShapeError("np.nonzero: a", expected="at least one axis", given="a scalar", fix="use atleast_1d")
    found = np_operator("_npx_nonzero")(a)
    return tuple(found[:, i] for i in range(ndim(a)))


def argwhere(a: Any) -> Any:
    """Returns the indices of the nonzero elements, one row each; int64."""
    return np_operator("_npx_nonzero")(as_array(a))


def flatnonzero(a: Any) -> Any:
    """Returns the positions of the nonzero elements in row-major order; int64."""
    return flat(np_operator("_npx_nonzero")(flat(as_array(a))))


def extract(condition: Any, arr: Any) -> Any:
    """Returns the elements where condition is nonzero, as a vector."""
    return compress(flat(as_array(condition)), flat(as_array(arr)))


def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """Selects the slices along an axis where a vector is nonzero; flattens the array if axis is None."""
    a, condition = as_array(a), as_array(condition)
    if ndim(condition) != 1:
        raise ShapeError("np.compress: condition", expected="a vector", given=f"shape {tuple(condition.shape)}")
    a, axis = (flat(a), 0) if axis is None else (a, axis)
    length, given = a.shape[axis], condition.shape[0]
    if given > length:
        raise ShapeError("np.compress: condition", expected=f"at most {length} values", given=str(given))
    if given < length:  # slices beyond the condition are left out
        a = np_operator("slice_axis")(a, axis=axis, begin=0, end=given)
    return np_operator("_npi_boolean_mask")(a, condition, axis=axis, out=out)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Returns the positions of values in an ascending vector, before equal elements or (side='right') after; int64."""
    if side not in ("left", "right"):
        raise ParamError("np.searchsorted: side", expected="'left' or 'right'", given=repr(side))
    a = as_array(a) if sorter is None else take(a, sorter)
    return np_operator("_npi_searchsorted")(*common(a, as_array(v)), right=side == "right")


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Returns the bin of each element, for ascending or descending edges; int64."""
    bins = as_array(bins)
    edges = bins.asnumpy()
    if (onp.diff(edges) >= 0).all():
        return searchsorted(bins, x, side="left" if right else "right")
    if (onp.diff(edges) <= 0).all():
        return len(edges) - searchsorted(bins[::-1], x, side="left" if right else "right")
    raise ParamError("np.digitize: bins", expected="edges that rise or fall", given=str(edges.tolist()))


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """Returns the unique elements, or slices of an axis, in ascending order; NaN once, last.

    On request also, as int64: the first position of each, the inverse (the index of each element's value), and the
    counts.
    """
    found = np_operator("_npi_unique")(
        as_array(ar),
        return_index=return_index,
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=axis,
    )
    return tuple(found) if isinstance(found, (list, tuple)) else found


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element is in test_elements; bool, shape of element."""
    element, tests = common(as_array(element), flat(as_array(test_elements)))
    if size(tests) == 0:
        found = np_operator("_npi_full_like")(element, fill_value=0, dtype="bool")
    else:
        ordered = sort(tests)
        place = minimum(searchsorted(ordered, element), size(tests) - 1)
        found = equal(take(ordered, place), element)
    return equal(found, False) if invert else found


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Like :func:`isin`, for the flattened array."""
    return isin(flat(as_array(ar1)), ar2, assume_unique, invert)


# -------------------------------------------------------------------------------------------------------------- indices
@direct("_npi_take", "axis mode out", inputs=2, needed=1, mode="raise")
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise", out: Any = None) -> Any:
    """Takes slices along an axis, or elements of the flattened array, in the order of indices.

    mode: for indices out of range, 'raise' an IndexError (negative ones count from the end), 'clip' or 'wrap'.
    """
    a = as_array(a)
    a, axis = (flat(a), 0) if axis is None else (a, axis)
    return np_operator("_npi_take")(a, as_array(indices), axis=axis, mode=mode, out=out)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Takes elements along an axis by an array of indices; arr and indices broadcast on the other axes."""
    arr, indices = as_array(arr), as_array(indices)
    if axis is None:
        arr, axis = flat(arr), 0
    rank = ndim(arr)
    if not -rank <= axis < rank or ndim(indices) != rank:
        raise ShapeError(
            "np.take_along_axis",
            expected=f"an axis of {rank} and as many axes of indices",
            given=f"axis={axis}, indices of shape {tuple(indices.shape)}",
        )
    axis %= rank
    if any(i != axis and n == 1 and m != 1 for i, (n, m) in enumerate(zip(arr.shape, indices.shape, strict=True))):
        arr = broadcast_to(arr, tuple(n if i == axis else max(n, m) for i, (n, m) in _pairs(arr, indices)))
    places = [
        indices if i == axis else reshape(_range(n), tuple(-1 if j == i else 1 for j in range(rank)))
        for i, n in enumerate(arr.shape)
    ]
    return np_operator("_advanced_index_get")(arr, *places, axis=0)


def _pairs(a: Any, b: Any) -> Any:
    return enumerate(zip(a.shape, b.shape, strict=True))


def _range(n: int) -> Any:
    from ._creation import arange

    return arange(n, dtype="int64")


def select(condlist: Any, choicelist: Any, default: float = 0) -> Any:
    """Takes each element from the first choice whose condition is true, else the default; shapes broadcast."""
    conditions, choices = as_parts(condlist), as_parts(choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise ParamError(
            "np.select",
            expected="as many conditions as choices, at least one",
            given=f"{len(conditions)} and {len(choices)}",
        )
    choices = common(*choices)
    shape = onp.broadcast_shapes(*(tuple(a.shape) for a in (*conditions, *choices)))
    result = np_operator("_npi_full_like")(broadcast_to(choices[0], shape), fill_value=default)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = choose(broadcast_to(cast(condition, "bool"), shape), broadcast_to(choice, shape), result)
    return result
