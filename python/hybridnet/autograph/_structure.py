"""Values of the program taken apart into arrays, numbers and other objects, and put together again.

Tuples, lists, dicts, namedtuples, deques and dataclasses are structure. Lists that loops fill (_rows.Rows) are, too.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import _core
from ..ndarray import NDArray
from ..symbol import Symbol
from ._journal import note_fresh
from ._numbers import TracedNumber, is_number
from ._rows import MaybeItem, Rows, expand

__all__ = ["UNDEFINED", "Structure", "as_outputs", "describe", "is_array", "is_traced", "put_together", "take_apart"]


class _Undefined:
    """The value of a name that has none."""

    def __repr__(self) -> str:
        return "no value"

    def __reduce__(self) -> str:
        return "UNDEFINED"


UNDEFINED = _Undefined()


class Structure(NamedTuple):
    """A value without its leaves. kind: array, number, object, undefined, or the kind of a container."""

    kind: str
    children: tuple[Structure, ...] = ()
    detail: Any = None

    def paths(self, prefix: str) -> Iterator[str]:
        """Yields the access path of each leaf."""
        if not self.children and self.kind in ("array", "number", "object", "undefined"):
            yield prefix
        for i, child in enumerate(self.children):
            step = f"[{i}]"
            if self.kind == "dict":
                step = f"[{self.detail[i]!r}]"
            elif self.kind in ("namedtuple", "dataclass"):
                step = f".{self.detail[1][i]}"
            yield from child.paths(prefix + step)


ARRAY, NUMBER, OBJECT, NOTHING = Structure("array"), Structure("number"), Structure("object"), Structure("undefined")


def is_array(value: Any) -> bool:
    """Whether value is an array of the graph or of the program."""
    return isinstance(value, (NDArray, Symbol))


def is_traced(value: Any) -> bool:
    """Whether value is known only when the graph runs."""
    return isinstance(value, Symbol) or type(value) is TracedNumber


def take_apart(value: Any, leaves: list[Any]) -> Structure:
    """Appends the leaves of value and returns its structure."""
    if isinstance(value, Symbol):
        if value.num_outputs == 1:
            leaves.append(value)
            return ARRAY
        leaves += [value[i] for i in range(value.num_outputs)]
        return Structure("list", (ARRAY,) * value.num_outputs)
    if isinstance(value, NDArray):
        leaves.append(value)
        return ARRAY
    if type(value) is TracedNumber or is_number(value):
        leaves.append(value)
        return NUMBER
    if value is UNDEFINED:
        leaves.append(value)
        return NOTHING
    if isinstance(value, MaybeItem):
        leaves += [*value.leaves, value.present]
        return Structure("maybe", (*[ARRAY] * len(value.leaves), NUMBER), value.structure)
    if isinstance(value, Rows):
        leaves += value.leaves
        return Structure("rows", (ARRAY,) * len(value.leaves), value.form())
    return _take_container(value, leaves)


def _take_container(value: Any, leaves: list[Any]) -> Structure:
    if isinstance(value, tuple):
        children = tuple([take_apart(item, leaves) for item in value])
        if hasattr(value, "_fields"):
            return Structure("namedtuple", children, (type(value), value._fields))
        return Structure("tuple", children)
    if type(value) in (list, deque):
        detail = value.maxlen if type(value) is deque else None
        return Structure(type(value).__name__, tuple([take_apart(item, leaves) for item in value]), detail)
    if isinstance(value, dict) and type(value).__module__ in ("builtins", "collections"):
        children = tuple([take_apart(item, leaves) for item in value.values()])
        return Structure("dict", children, tuple(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(field.name for field in dataclasses.fields(value))
        children = tuple([take_apart(getattr(value, name), leaves) for name in names])
        return Structure("dataclass", children, (type(value), names))
    leaves.append(value)
    return OBJECT


def put_together(structure: Structure, leaves: Iterator[Any], like: Any = None) -> Any:
    """Builds a new value of the structure. like: a value of this structure, from which other attributes are copied."""
    kind, children, detail = structure
    if not children and kind in ("array", "number", "object", "undefined"):
        return next(leaves)
    if kind == "rows":
        return Rows.of_form(detail, [next(leaves) for _ in children])
    items = [put_together(child, leaves) for child in children]
    if kind == "maybe":
        return MaybeItem(detail, items[:-1], items[-1])
    if kind == "tuple":
        return tuple(items)
    if kind == "namedtuple":
        return detail[0](*items)
    if kind == "list":
        return note_fresh(items)
    if kind == "deque":
        return note_fresh(deque(items, detail))
    if kind == "dict":
        made = copy.copy(like) if isinstance(like, dict) else {}
        made.clear()
        made.update(zip(detail, items, strict=True))
        return note_fresh(made)
    made = copy.copy(like) if isinstance(like, detail[0]) else object.__new__(detail[0])
    for name, item in zip(detail[1], items, strict=True):
        object.__setattr__(made, name, item)
    return note_fresh(made)


def as_outputs(value: Any) -> Any:
    """Returns the result of a converted forward: numbers that the graph computes become arrays, filled lists are taken
    apart.
    """
    if type(value) is TracedNumber:
        return value.array
    if type(value) in (list, tuple):
        return type(value)([as_outputs(item) for item in expand(value)])
    if isinstance(value, tuple):
        return type(value)(*[as_outputs(item) for item in value])
    if isinstance(value, dict):
        return {key: as_outputs(item) for key, item in value.items()}
    return value


def describe(value: Any) -> str:
    """Describes a value in errors: "float32(2, 3)", "the number 3", "None"."""
    if isinstance(value, Symbol):
        specs = _core.symbol_specs(value)
        if not specs or specs[0][0] is None or specs[0][1] is None:
            return "an array"
        shape = ", ".join("?" if size < 0 else str(size) for size in specs[0][0])
        import numpy as np

        return f"{np.dtype(specs[0][1]).name}({shape}{',' if len(specs[0][0]) == 1 else ''})"
    if isinstance(value, NDArray):
        return f"{value.dtype.__name__}{value.shape}"
    if type(value) is TracedNumber:
        return "a number that the graph computes"
    if is_number(value):
        return f"the number {value!r}"
    if value is None or value is UNDEFINED:
        return repr(value)
    if isinstance(value, (list, tuple, dict, deque)):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return f"a {type(value).__name__}" + (f" ({text})" if isinstance(value, str) and len(text) < 30 else "")
