"""How nodes and blocks get their names."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["NameManager", "Prefix"]


class _Current(threading.local):
    """The manager in use, one per thread."""

    def __init__(self) -> None:
        self.value: NameManager = NameManager()


class _NameManagerType(type):
    """Type of NameManager: its attribute ``current`` belongs to the class and to this thread."""

    @property
    def current(cls) -> NameManager:
        """The manager in use; setting it replaces that one until the innermost ``with`` ends."""
        return NameManager._current.value

    @current.setter
    def current(cls, manager: NameManager) -> None:
        NameManager._current.value = manager


class NameManager(metaclass=_NameManagerType):
    """Numbers names by their stem: convolution0, convolution1. Used with ``with``, a fresh count begins."""

    _current: Any

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._outer: list[NameManager] = []  # a stack: a manager may be entered again inside itself

    def get(self, name: str | None, hint: str) -> str:
        """name as given, or the hint with the next number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> NameManager:
        self._outer.append(NameManager._current.value)
        NameManager._current.value = self
        return self

    def __exit__(self, *exception: Any) -> None:
        NameManager._current.value = self._outer.pop()


class Prefix(NameManager):
    """Puts prefix in front of every name, given or made up."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """prefix + name, or prefix + hint with the next number."""
        return self._prefix + super().get(name, hint)


NameManager._current = _Current()


def current() -> NameManager:
    """The manager of the innermost ``with``."""
    return NameManager._current.value


def name_for(name: str | None, hint: str) -> str:
    """The name of a new node."""
    return NameManager._current.value.get(name, hint)
