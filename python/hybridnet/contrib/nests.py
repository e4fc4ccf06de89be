"""Nests: lists, tuples, dicts and namedtuples of arrays, taken apart into a flat list and put together again.

None inside a nest holds no array and stays None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..ndarray import NDArray
from ..symbol import Symbol

ARRAYS = (NDArray, Symbol)


@dataclass(frozen=True)
class Nest:
    """How a nest is built. kind: leaf, none, list, tuple, namedtuple or dict; keys: of a dict; cls: of a namedtuple."""

    kind: str
    children: tuple[Nest, ...] = ()
    keys: tuple[Any, ...] = ()
    cls: type | None = None

    def size(self) -> int:
        """Number of leaves."""
        return 1 if self.kind == "leaf" else sum(child.size() for child in self.children)

    def paths(self, prefix: str) -> list[str]:
        """What each leaf is called: "states[1]['h']"."""
        if self.kind == "leaf":
            return [prefix]
        return [
            path for name, child in zip(self.steps(), self.children, strict=True) for path in child.paths(prefix + name)
        ]

    def steps(self) -> list[str]:
        """How each child is reached from here."""
        if self.kind == "dict":
            return [f"[{key!r}]" for key in self.keys]
        if self.kind == "namedtuple":
            return [f".{field}" for field in self.cls._fields]  # type: ignore[union-attr]
        return [f"[{i}]" for i in range(len(self.children))]

    def describe(self) -> str:
        """In words, one level deep."""
        if self.kind == "leaf":
            return "an array"
        if self.kind == "none":
            return "None"
        if self.kind == "dict":
            return f"a dict with the keys {list(self.keys)}"
        if self.kind == "namedtuple":
            return f"a {self.cls.__name__}"  # type: ignore[union-attr]
        return f"a {self.kind} of {len(self.children)}"


LEAF = Nest("leaf")
NONE = Nest("none")


def flatten(value: Any, is_leaf: Callable[[Any], bool], path: str) -> tuple[list[Any], Nest]:
    """The leaves of value and how it is built. Raises builtin TypeError naming the path of what is neither."""
    leaves: list[Any] = []
    return leaves, _flatten(value, is_leaf, path, leaves)


def _flatten(value: Any, is_leaf: Callable[[Any], bool], path: str, leaves: list[Any]) -> Nest:
    if is_leaf(value):
        leaves.append(value)
        return LEAF
    if value is None:
        return NONE
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = zip(value._fields, value, strict=True)
        children = tuple(_flatten(item, is_leaf, f"{path}.{field}", leaves) for field, item in fields)
        return Nest("namedtuple", children, (), type(value))
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return Nest(kind, tuple(_flatten(item, is_leaf, f"{path}[{i}]", leaves) for i, item in enumerate(value)))
    if isinstance(value, dict):
        children = tuple(_flatten(item, is_leaf, f"{path}[{key!r}]", leaves) for key, item in value.items())
        return Nest("dict", children, tuple(value))
    raise TypeError(f"{path} is a {type(value).__name__}")


def restore(nest: Nest, leaves: Sequence[Any]) -> Any:
    """The nest again, with these leaves."""
    return _restore(nest, iter(leaves))


def _restore(nest: Nest, leaves: Iterator[Any]) -> Any:
    if nest.kind == "leaf":
        return next(leaves)
    if nest.kind == "none":
        return None
    items = [_restore(child, leaves) for child in nest.children]
    if nest.kind == "list":
        return items
    if nest.kind == "tuple":
        return tuple(items)
    if nest.kind == "dict":
        return dict(zip(nest.keys, items, strict=True))
    return nest.cls(*items)  # type: ignore[misc]


def mismatch(expected: Nest, given: Nest, path: str) -> tuple[str, str, str] | None:
    """Where two nests differ: (path, what is expected there, what is given), or None.

    A list may stand for a tuple and the other way round; keys of dicts may come in another order only if they do not.
    """
    sequences = ("list", "tuple")
    same_kind = expected.kind == given.kind or (expected.kind in sequences and given.kind in sequences)
    if (
        not same_kind
        or len(expected.children) != len(given.children)
        or expected.keys != given.keys
        or expected.cls is not given.cls
    ):
        return path, expected.describe(), given.describe()
    for step, one, other in zip(expected.steps(), expected.children, given.children, strict=True):
        if found := mismatch(one, other, path + step):
            return found
    return None
