"""Naming of nodes and blocks."""

from __future__ import annotations

from typing import Any

from ._public_names import dir_of
from ._scopes import ScopeType

__all__ = ["NameManager", "Prefix"]


class NameManager(metaclass=ScopeType):
    """Numbers names per hint: convolution0, convolution1. ``with`` starts a new count."""

    # (manager, its outer manager): a stack, because a manager may be entered again within itself.
    _outer: tuple[Any, ...] | None = None

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """Returns name if given, else the hint with the next number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> NameManager:
        current = NameManager._current
        self._outer = (current.value, self._outer)
        current.value = self
        return self

    def __exit__(self, *exception: Any) -> None:
        NameManager._current.value, self._outer = self._outer  # type: ignore[misc]


class Prefix(NameManager):
    """Prepends prefix to every name, given or generated."""

    def __init__(self, prefix: str) -> None:
        self._counter = {}
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """Returns prefix + name, or prefix + hint with the next number."""
        return self._prefix + (name or super().get(name, hint))


def current() -> NameManager:
    """Returns the manager of the innermost ``with``."""
    return NameManager._current.value


def name_for(name: str | None, hint: str) -> str:
    """Returns the name of a new node."""
    return NameManager._current.value.get(name, hint)


__dir__ = dir_of(__name__)
