"""Classes of which every thread has one object in use."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["ScopeType"]


class _Current(threading.local):
    """The object in use, one per thread; at first one made without arguments."""

    def __init__(self, make: Any) -> None:
        self.value = make()


class ScopeType(type):
    """Type of a class with an object in use: ``current`` belongs to the class, its subclasses and this thread."""

    _current: _Current

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        if not any(isinstance(base, ScopeType) for base in bases):
            cls._current = _Current(cls)

    @property
    def current(cls) -> Any:
        """The object in use; setting it replaces that one until the innermost ``with`` ends."""
        return cls._current.value

    @current.setter
    def current(cls, value: Any) -> None:
        cls._current.value = value
