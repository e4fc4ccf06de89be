"""Rows: the items that the iterations of a loop of the graph append to a list, as one element of that list.

The list of the program holds a Rows object in place of the items. Converted code knows these: stack and concat use the
stacked array as it is, other uses take the rows apart if their number is known while the graph is made.
"""

from __future__ import annotations

import operator
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core, symbol
from ..errors import AttributeError as HybridNetAttributeError
from ..symbol import Symbol
from ._errors import Place, refusal
from ._numbers import classic

__all__ = ["FilledNow", "MaybeItem", "Rows", "expand", "holds_rows", "joined"]

_MOST_ROWS = 64


class Rows:
    """Stacked items. leaves: an array of shape (T, ...) per array of an item.

    count: T, or None if it is known only when the graph runs. place: the loop.
    """

    def __init__(self, structure: Any, leaves: Sequence[Symbol], count: int | None, place: Place) -> None:
        self.structure, self.leaves, self.count, self.place = structure, list(leaves), count, place

    def form(self) -> tuple[Any, ...]:
        """Everything but the arrays."""
        return (self.structure, self.count, self.place)

    @classmethod
    def of_form(cls, form: tuple[Any, ...], leaves: Sequence[Symbol]) -> Rows:
        """Returns rows with these arrays."""
        structure, count, place = form
        return cls(structure, leaves, count, place)

    def item(self, pick: Callable[[Symbol], Any]) -> Any:
        """Builds one item from the parts of the arrays that pick returns."""
        from ._structure import put_together

        return put_together(self.structure, iter([pick(leaf) for leaf in self.leaves]))

    def items(self) -> list[Any]:
        """Returns all items. Raises ConversionError if their number is unknown; warns if there are many."""
        if self.count is None:
            raise self._unknown("its items are taken one by one")
        if self.count > _MOST_ROWS:
            warnings.warn_explicit(
                f"The {self.count} items of a list are taken one by one: the graph has nodes for each. Stack the list "
                "and compute with the array.",
                UserWarning,
                self.place.file,
                self.place.line,
            )
        _core.note_trace_read(1)  # the graph fits this number only
        return [self.item(operator.itemgetter(i)) for i in range(self.count)]

    def known_count(self, use: str) -> int:
        """Returns the number of items. Raises ConversionError if it is unknown; use: describes the reason."""
        if self.count is None:
            raise self._unknown(use)
        return self.count

    def _unknown(self, use: str) -> Exception:
        return refusal(
            "HN104",
            f"a list that this loop fills has a length that is known only when the graph runs, and {use}",
            self.place,
            because="the loop may end early, so the graph has one array for all items",
            fix="stack or concatenate the list, and compute with the array",
        )

    def last(self) -> Any:
        """Returns the last item."""
        return self.item(lambda leaf: leaf[-1])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise HybridNetAttributeError(name)
        raise refusal(
            "HN104",
            f"a list that this loop fills is used by code that does not know it ({name})",
            self.place,
            because="the items of all iterations are one array of the graph",
            fix="stack the list (mx.nd.stack(*items)) and pass the array",
        )


class MaybeItem:
    """An item that an iteration appends to a list only if `present` is true; else its leaves are zeros."""

    def __init__(self, structure: Any, leaves: Sequence[Any], present: Any) -> None:
        self.structure, self.leaves, self.present = structure, list(leaves), present


class FilledNow:
    """Stands for the items of a list while the body of a loop that fills the list is traced."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def refuse(self) -> Any:
        """Raises ConversionError: the list is read in the loop."""
        raise refusal(
            "HN104",
            "a list is read in the loop that appends to it",
            self._place,
            because="the items become one array after the loop, and an iteration cannot see the earlier ones",
            fix="carry the items that are needed in a variable, or write into an array made before the loop",
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise HybridNetAttributeError(name)
        return self.refuse()


def _refuse(self: FilledNow, *_: Any) -> Any:
    return self.refuse()


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "neg", "getitem", "len", "iter"),
    *("bool", "float", "int", "index", "eq", "ne", "lt", "le", "gt", "ge", "array", "call"),
):
    setattr(FilledNow, f"__{_name}__", _refuse)


def holds_rows(value: Any) -> bool:
    """Whether value is a list or tuple with rows among its elements."""
    return type(value) in (list, tuple, deque) and any(type(item) in (Rows, FilledNow) for item in value)


def expand(value: Any) -> Any:
    """Replaces rows in a list by their items, in place. Returns value; of a tuple a new one."""
    if not holds_rows(value):
        return value
    items: list[Any] = []
    for item in value:
        if type(item) is FilledNow:
            item.refuse()
        items += item.items() if type(item) is Rows else [item]
    if type(value) is tuple:
        return tuple(items)
    from ._journal import note_contents

    note_contents(value)
    if type(value) is list:
        value[:] = items
    else:
        value.clear()
        value.extend(items)
    return value


def joined(items: Sequence[Any], axis: int, stacks: bool) -> Symbol | None:
    """Returns stack(*items, axis) or concat(*items, axis) if items contain rows of single arrays; else None."""
    parts = []
    for item in items:
        if type(item) is FilledNow:
            item.refuse()
        if type(item) is Rows:
            if len(item.leaves) != 1 or item.structure.kind != "array":
                return None
            parts.append(item.leaves[0])
        else:
            parts.append(symbol.expand_dims(classic(item), axis=0))
    whole = parts[0] if len(parts) == 1 else symbol.concat(*map(classic, parts), dim=0)
    made = _stacked(whole, axis) if stacks else _concatenated(whole, axis)
    like = parts[0]
    return made.as_np_ndarray() if getattr(like, "_has_numpy_interface", False) else made


def _rank(whole: Any) -> int:
    specs = _core.symbol_specs(whole)
    return len(specs[0][0])


def _stacked(whole: Any, axis: int) -> Any:
    rank = _rank(whole)
    axis = axis + rank if axis < 0 else axis
    whole = classic(whole)
    if axis == 0:
        return whole
    order = list(range(1, rank))
    order.insert(axis, 0)
    return symbol.transpose(whole, axes=tuple(order))


def _concatenated(whole: Any, axis: int) -> Any:
    rank = _rank(whole) - 1
    axis = axis + rank if axis < 0 else axis
    moved = _stacked(whole, axis)
    # The axes of the items and of the rows, which are neighbors now, become one.
    return symbol.reshape(moved, shape=(*[0] * axis, -3, -2) if axis + 1 < rank else (*[0] * axis, -3))
