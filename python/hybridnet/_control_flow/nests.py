"""Nests: lists, tuples, namedtuples and dicts of arrays, flattened into a list and rebuilt.

Arguments and results of hybridized blocks, and of the functions given to foreach, while_loop and cond, are nests. None
inside a nest holds no array and stays None. A Symbol with several outputs counts as a list, because the operators
return a list for arrays.
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
    """The structure of a nest. Hashable: two nests are equal if they have the same structure and the same constants.

    kind: array, none, constant, list, tuple, namedtuple or dict. detail: keys of a dict, class of a namedtuple, type
    and value of a constant.
    """

    kind: str
    children: tuple[Nest, ...] = ()
    detail: Any = None

    def paths(self, prefix: str) -> list[str]:
        """Returns the access path of each array: "states[1]['h']"."""
        if self is ARRAY:
            return [prefix]
        return [
            path for name, child in zip(self.steps(), self.children, strict=True) for path in child.paths(prefix + name)
        ]

    def steps(self) -> list[str]:
        """Returns the access path of each child from here."""
        if self.kind == "dict":
            return [f"[{key!r}]" for key in self.detail]
        if self.kind == "namedtuple":
            return [f".{field}" for field in self.detail._fields]
        return [f"[{i}]" for i in range(len(self.children))]

    def describe(self) -> str:
        """Describes the structure in words, one level deep."""
        if self.kind == "array":
            return "an array"
        if self.kind == "none":
            return "None"
        if self.kind == "dict":
            return f"a dict with the keys {list(self.detail)}"
        if self.kind == "namedtuple":
            return f"a {self.detail.__name__}"
        return f"a {self.kind} of {len(self.children)}"


_NAN = float("nan")  # a single object, which equals itself inside of a tuple
ARRAY = Nest("array")
NONE = Nest("none")


class NotANest(HybridNetTypeError):
    """Raised by flatten if a value is neither an array nor a container."""

    def __init__(self, value: Any) -> None:
        super().__init__("neither an array nor a container")
        self.value = value


def list_of(count: int) -> Nest:
    """Returns the nest of a list of count arrays."""
    return Nest("list", (ARRAY,) * count)


def tuple_of(count: int) -> Nest:
    """Returns the nest of a tuple of count arrays."""
    return Nest("tuple", (ARRAY,) * count)


def is_number(value: Any) -> bool:
    """True for a Python or NumPy number, including bool."""
    return isinstance(value, (bool, int, float, np.number, np.bool_))


def is_array(value: Any) -> bool:
    """True for an array or a Symbol with one output."""
    return isinstance(value, NDArray) or (isinstance(value, Symbol) and value.num_outputs == 1)


def flatten(value: Any, arrays: list[Any], numbers: bool = False, constants: bool = False) -> Nest:
    """Appends the arrays of value to arrays and returns the structure of value.

    numbers: appends numbers, too, like arrays. constants: other values (numbers, strings) become part of the structure
    if they are hashable. Raises NotANest for other values.
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
    # The type is compared too: 1, 1.0 and True are equal but compute different results. So is the sign of a zero.
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
    """Returns the path of the object part in the nest value, "[1]['h']"; "" if it is value, None if it is not in it."""
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
    """Rebuilds the nest with these arrays."""
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
    """Finds the first difference of two nests: (path, expected part, given part), or None.

    Lists and tuples are interchangeable; keys of dicts must have the same order.
    """
    sequences = ("list", "tuple")
    same_kind = expected.kind == given.kind or (expected.kind in sequences and given.kind in sequences)
    if not same_kind or len(expected.children) != len(given.children) or expected.detail != given.detail:
        return path, expected.describe(), given.describe()
    for step, one, other in zip(expected.steps(), expected.children, given.children, strict=True):
        if found := mismatch(one, other, path + step):
            return found
    return None
