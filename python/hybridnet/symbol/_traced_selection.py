"""x[key] of a traced array with arrays in the key: NumPy's rules as operators of the graph.

An index array becomes take or, if several axes are indexed together, _advanced_index_get; both count negative positions
from the end and raise IndexError for others out of range when the graph runs. The dtype of an array decides its role: a
bool array is a mask, and the number of selected elements is known when the graph runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from ..errors import IndexError as HybridNetIndexError
from ..errors import TypeError as HybridNetTypeError
from ..ndarray._float_masks import warn_of_comparison

__all__ = ["holds_arrays", "selected"]

_FULL = slice(None)


def holds_arrays(items: list[Any]) -> bool:
    """Whether the key needs operators beyond slicing."""
    return any(_is_array(item) for item in items)


def _is_array(item: Any) -> bool:
    return isinstance(item, (_core.SymbolBase, _core.NDArrayBase, list, tuple, range, np.ndarray, bool, np.bool_))


def selected(data: Any, items: list[Any], op: Callable[[str], Any], sliced: Callable[[Any, list[Any]], Any]) -> Any:
    """Returns data[items]. op: makes operators by name; sliced: data[...] for slices and ints, one for each axis."""
    return _Selection(data, items, op, sliced).result()


def _dtype_of(array: Any) -> Any:
    if not isinstance(array, _core.SymbolBase):
        return np.dtype(array.dtype)
    specs = _core.symbol_specs(array)
    if specs is None or len(specs) != 1:
        raise HybridNetTypeError("index of a traced array", expected="traced arrays", given="a Symbol of a graph")
    return None if specs[0][1] is None else np.dtype(specs[0][1])


def _ndim_of(array: Any) -> int:
    shape = _core.symbol_specs(array)[0][0] if isinstance(array, _core.SymbolBase) else array.shape
    if shape is None:
        raise HybridNetTypeError(
            "index of a traced array",
            expected="an array of a known number of axes",
            given="one whose shape is known only when the graph runs",
            fix="use boolean_mask, take or gather_nd",
        )
    return len(shape)


def _as_array(item: Any) -> Any:
    """Returns a Symbol, or a NumPy array of integers or bool."""
    if isinstance(item, _core.NDArrayBase):  # the graph reads it at each run
        return _core.traced_constant(item)
    if isinstance(item, (list, tuple, range)) and any(
        isinstance(each, (_core.SymbolBase, _core.NDArrayBase)) for each in item
    ):
        raise HybridNetTypeError(
            "index of a traced array",
            expected="lists of Python numbers",
            given="a list that holds arrays",
            fix="join them with mx.nd.stack first",
        )
    if isinstance(item, _core.SymbolBase):
        return item
    array = np.asarray(item)
    if array.size == 0 and array.dtype != np.bool_:
        return array.astype(np.int64)
    whole = np.issubdtype(array.dtype, np.floating) and bool(np.all(array == np.floor(array)))
    if array.dtype == np.bool_ or np.issubdtype(array.dtype, np.integer) or whole:
        return array if array.dtype == np.bool_ else array.astype(np.int64)
    raise HybridNetTypeError(
        "index of a traced array",
        expected="ints, slices, None, ... or integer or boolean arrays",
        given=f"{type(item).__name__} of {array.dtype}",
    )


def _is_mask(array: Any) -> bool:
    return bool(_dtype_of(array) == np.bool_)


class _Selection:
    """One key in parsed form: the item for each axis of data, in the order of the key."""

    def __init__(
        self, data: Any, items: list[Any], op: Callable[[str], Any], sliced: Callable[[Any, list[Any]], Any]
    ) -> None:
        self._op, self._sliced = op, sliced
        items = [_as_array(item) if _is_array(item) else item for item in items]
        self._data = data
        self._items = self._spelled_out(items, data.ndim)

    def _spelled_out(self, items: list[Any], ndim: int) -> list[Any]:
        """Returns the items with the ellipsis as slices; inserts new axes, and those of masks without axes, into data.

        An ellipsis that covers no axis is kept: arrays on both sides of it are not adjacent.
        """
        used = sum(self._axes_of(item) for item in items)
        if used > ndim:
            raise HybridNetIndexError("too many indices", expected=f"at most {ndim}", given=str(used))
        at = [i for i, item in enumerate(items) if item is Ellipsis]
        if len(at) > 1:
            raise HybridNetIndexError("an index can only have a single ellipsis ('...')")
        rest: list[Any] = [_FULL] * (ndim - used)
        items = items + rest if not at else items[: at[0]] + (rest or [Ellipsis]) + items[at[0] + 1 :]
        axis = 0
        for i, item in enumerate(items):
            if item is None or (isinstance(item, (_core.SymbolBase, np.ndarray)) and self._axes_of(item) == 0):
                self._data = self._op("expand_dims")(self._data, axis=axis)
                items[i] = _FULL if item is None else self._with_an_axis(item)
            axis += self._axes_of(items[i])
        return items

    def _with_an_axis(self, mask: Any) -> Any:
        if isinstance(mask, np.ndarray):
            return mask.reshape(1)
        return self._op("Reshape")(mask, shape=(1,))

    @staticmethod
    def _axes_of(item: Any) -> int:
        if item is None or item is Ellipsis:
            return 0
        if isinstance(item, (_core.SymbolBase, np.ndarray)) and _is_mask(item):
            return _ndim_of(item)
        return 1

    def result(self) -> Any:
        """Returns data[key]."""
        self._take_slices()
        arrays = [i for i, item in enumerate(self._items) if not isinstance(item, slice) and item is not Ellipsis]
        together = arrays == list(range(arrays[0], arrays[-1] + 1))
        axes = [self._first_axis(i) for i in arrays]
        if not together:
            moved = [
                axis + k for i, axis in zip(arrays, axes, strict=True) for k in range(self._axes_of(self._items[i]))
            ]
            others = [axis for axis in range(self._data.ndim) if axis not in moved]
            self._data = self._op("transpose")(self._data, axes=(*moved, *others))
        first = axes[0] if together else 0
        found = [self._items[i] for i in arrays]
        if len(found) == 1 and isinstance(found[0], _core.SymbolBase) and _is_mask(found[0]):
            return self._masked(found[0], first)
        positions: list[Any] = []
        for item in found:
            positions += self._positions(item, first + len(positions))
        return self._gathered(positions, first)

    def _first_axis(self, number: int) -> int:
        return sum(self._axes_of(item) for item in self._items[:number])

    def _take_slices(self) -> None:
        """Applies the slices; the items become full slices."""
        key: list[Any] = []
        for item in self._items:
            key += [item] if isinstance(item, slice) else [_FULL] * self._axes_of(item)
        if any(part != _FULL for part in key):
            self._data = self._sliced(self._data, key)
        self._items = [_FULL if isinstance(item, slice) else item for item in self._items]

    def _masked(self, mask: Any, axis: int) -> Any:
        """Returns the elements that the only array of the key, a mask, selects."""
        self._check_mask(mask, axis)
        data = self._data
        if (count := _ndim_of(mask)) > 1:
            shape = _core.symbol_specs(data)[0][0]
            if all(size > 0 for size in shape):
                merged: tuple[int, ...] = (
                    *shape[:axis],
                    int(np.prod(shape[axis : axis + count])),
                    *shape[axis + count :],
                )
                data = self._op("Reshape")(data, shape=merged)
            else:
                for _ in range(count - 1):  # 0 copies a size, -3 merges two, -2 copies the rest
                    data = self._op("Reshape")(data, shape=(*[0] * axis, -3, -2))
            mask = self._op("Reshape")(mask, shape=(-1,))
        return self._op("_contrib_boolean_mask")(data, mask, axis=axis)

    def _check_mask(self, mask: Any, axis: int) -> None:
        shape = mask.shape if isinstance(mask, np.ndarray) else _core.symbol_specs(mask)[0][0]
        whole = _core.symbol_specs(self._data)[0][0]
        for number, size in enumerate(shape):
            if whole[axis + number] >= 0 and size >= 0 and whole[axis + number] != size:
                raise HybridNetIndexError(
                    f"boolean index did not match indexed array along axis {axis + number}; size of axis is "
                    f"{whole[axis + number]} but size of corresponding boolean axis is {size}"
                )

    def _positions(self, item: Any, axis: int) -> list[Any]:
        """Returns arrays of positions, one for each axis that an item covers, beginning with this one."""
        if isinstance(item, np.ndarray) and item.dtype == np.bool_:
            self._check_mask(item, axis)
            return [self._constant(part) for part in item.nonzero()]
        if isinstance(item, np.ndarray):
            return [self._constant(item)]
        if not isinstance(item, _core.SymbolBase):
            return [self._constant(np.asarray(item.__index__()))]
        if not _is_mask(item):
            warn_of_comparison(item)
            return [item]
        self._check_mask(item, axis)
        places = self._op("_npx_nonzero")(item)
        return [
            self._op("Reshape")(self._op("slice_axis")(places, axis=1, begin=k, end=k + 1), shape=(-1,))
            for k in range(_ndim_of(item))
        ]

    @staticmethod
    def _constant(array: np.ndarray) -> Any:
        from .. import numpy as functions

        return _core.traced_constant(functions.array(array, dtype=np.int64))

    def _gathered(self, arrays: list[Any], axis: int) -> Any:
        if len(arrays) == 1:
            return self._op("take")(self._data, arrays[0], axis=axis, mode="raise")
        return self._op("_advanced_index_get")(self._data, *arrays, num_args=len(arrays) + 1, axis=axis)
