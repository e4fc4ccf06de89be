"""How nodes and blocks get their names."""

from __future__ import annotations

from typing import Any

from ._scopes import ScopeType

__all__ = ["NameManager", "Prefix"]


class NameManager(metaclass=ScopeType):
    """Numbers names by their stem: convolution0, convolution1. Used with ``with``, a fresh count begins."""

    # (manager, what was outside of that one): a stack, for a manager may be entered again inside itself.
    _outer: tuple[Any, ...] | None = None

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """name as given, or the hint with the next number."""
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
    """Puts prefix in front of every name, given or made up."""

    def __init__(self, prefix: str) -> None:
        self._counter = {}
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """prefix + name, or prefix + hint with the next number."""
        return self._prefix + (name or super().get(name, hint))


def current() -> NameManager:
    """The manager of the innermost ``with``."""
    return NameManager._current.value


def name_for(name: str | None, hint: str) -> str:
    """The name of a new node."""
    return NameManager._current.value.get(name, hint)
