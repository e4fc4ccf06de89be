"""Nests: lists, tuples, namedtuples and dicts of arrays, taken apart into a flat list and put together again.

Arguments and results of hybridized blocks, and of the functions given to foreach, while_loop and cond, are nests. None
inside a nest holds no array and stays None. A Symbol of several outputs counts as a list, because that is what the
operators return on arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..errors import TypeError as HybridNetTypeError
from ..ndarray import NDArray
from ..symbol import Symbol


class Nest(NamedTuple):
    """How a nest is built. Hashable: two nests are equal if they are built alike and hold the same constants.

    kind: array, none, constant, list, tuple, namedtuple or dict. detail: keys of a dict, class of a namedtuple, type
    and value of a constant.
    """

    kind: str
    children: tuple[Nest, ...] = ()
    detail: Any = None

    def paths(self, prefix: str) -> list[str]:
        """How each array is reached: "states[1]['h']"."""
        if self is ARRAY:
            return [prefix]
        return [
            path for name, child in zip(self.steps(), self.children, strict=True) for path in child.paths(prefix + name)
        ]

    def steps(self) -> list[str]:
        """How each child is reached from here."""
        if self.kind == "dict":
            return [f"[{key!r}]" for key in self.detail]
        if self.kind == "namedtuple":
            return [f".{field}" for field in self.detail._fields]
        return [f"[{i}]" for i in range(len(self.children))]

    def describe(self) -> str:
        """In words, one level deep."""
        if self.kind == "array":
            return "an array"
        if self.kind == "none":
            return "None"
        if self.kind == "dict":
            return f"a dict with the keys {list(self.detail)}"
        if self.kind == "namedtuple":
            return f"a {self.detail.__name__}"
        return f"a {self.kind} of {len(self.children)}"


_NAN = float("nan")  # one object, which equals itself inside of a tuple
ARRAY = Nest("array")
NONE = Nest("none")


class NotANest(HybridNetTypeError):
    """Raised by flatten: value is neither an array nor a container."""

    def __init__(self, value: Any) -> None:
        super().__init__("neither an array nor a container")
        self.value = value


def list_of(count: int) -> Nest:
    """A list of count arrays."""
    return Nest("list", (ARRAY,) * count)


def tuple_of(count: int) -> Nest:
    """A tuple of count arrays."""
    return Nest("tuple", (ARRAY,) * count)


def is_number(value: Any) -> bool:
    """A Python or NumPy number, bool included."""
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def is_array(value: Any) -> bool:
    """An array or a Symbol of one output."""
    return isinstance(value, NDArray) or (isinstance(value, Symbol) and value.num_outputs == 1)


def flatten(value: Any, arrays: list[Any], numbers: bool = False, constants: bool = False) -> Nest:
    """Appends the arrays of value to arrays and returns how value is built.

    numbers: numbers are appended too, as if they were arrays. constants: what is neither array nor container (numbers,
    text) becomes part of the structure if it is hashable. Raises NotANest for other values.
    """
    if isinstance(value, NDArray):
        arrays.append(value)
        return ARRAY
    if isinstance(value, Symbol):
        return _flatten_symbol(value, arrays)
    if value is None:
        return NONE
    if isinstance(value, tuple):
        children = tuple([flatten(item, arrays, numbers, constants) for item in value])
        return Nest("namedtuple", children, type(value)) if hasattr(value, "_fields") else Nest("tuple", children)
    if isinstance(value, list):
        return Nest("list", tuple([flatten(item, arrays, numbers, constants) for item in value]))
    if isinstance(value, dict):
        children = tuple([flatten(item, arrays, numbers, constants) for item in value.values()])
        return Nest("dict", children, tuple(value))
    if numbers and is_number(value):
        arrays.append(value)
        return ARRAY
    if not constants:
        raise NotANest(value)
    try:
        hash(value)
    except TypeError:
        raise NotANest(value) from None
    # The type is compared too: 1, 1.0 and True are equal but do not compute the same. So is the sign of a zero.
    if isinstance(value, (float, np.floating)) and not (value > 0 or value < 0):
        return Nest(
            "constant", (), (type(value), value, math.copysign(1.0, value)) if value == 0 else (type(value), _NAN)
        )
    return Nest("constant", (), (type(value), value))


def _flatten_symbol(value: Symbol, arrays: list[Any]) -> Nest:
    count = value.num_outputs
    if count == 1:
        arrays.append(value)
        return ARRAY
    arrays.extend(value[i] for i in range(count))
    return list_of(count)


def path_to(part: Any, value: Any) -> str | None:
    """How the object part is reached in the nest value, "[1]['h']"; "" if it is value, None if it is not in it."""
    if part is value:
        return ""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = [(f".{field}", item) for field, item in zip(value._fields, value, strict=True)]
    elif isinstance(value, (list, tuple)):
        items = [(f"[{i}]", item) for i, item in enumerate(value)]
    elif isinstance(value, dict):
        items = [(f"[{key!r}]", item) for key, item in value.items()]
    else:
        return None
    for step, item in items:
        if (rest := path_to(part, item)) is not None:
            return step + rest
    return None


def restore(nest: Nest, arrays: Iterable[Any]) -> Any:
    """The nest again, with these arrays."""
    return _restore(nest, iter(arrays))


def _restore(nest: Nest, arrays: Iterator[Any]) -> Any:
    if nest is ARRAY:
        return next(arrays)
    kind, children, detail = nest
    if kind == "none":
        return None
    if kind == "constant":
        return detail[1]
    items = [_restore(child, arrays) for child in children]
    if kind == "list":
        return items
    if kind == "tuple":
        return tuple(items)
    if kind == "dict":
        return dict(zip(detail, items, strict=True))
    return detail(*items)


def mismatch(expected: Nest, given: Nest, path: str) -> tuple[str, str, str] | None:
    """Where two nests differ: (path, what is expected there, what is given), or None.

    A list may stand for a tuple and the other way round; keys of dicts must come in the same order.
    """
    sequences = ("list", "tuple")
    same_kind = expected.kind == given.kind or (expected.kind in sequences and given.kind in sequences)
    if not same_kind or len(expected.children) != len(given.children) or expected.detail != given.detail:
        return path, expected.describe(), given.describe()
    for step, one, other in zip(expected.steps(), expected.children, given.children, strict=True):
        if found := mismatch(one, other, path + step):
            return found
    return None
