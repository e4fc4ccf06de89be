"""Classes with one current object per thread."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["ScopeType"]


class _Current(threading.local):
    """The current object, one per thread; initially constructed without arguments."""

    def __init__(self, make: Any) -> None:
        self.value = make()


class ScopeType(type):
    """Metaclass with a property ``current``: one object per class, its subclasses and thread."""

    _current: _Current

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        if not any(isinstance(base, ScopeType) for base in bases):
            cls._current = _Current(cls)

    @property
    def current(cls) -> Any:
        """The current object; setting it replaces the object until the innermost ``with`` ends."""
        return cls._current.value

    @current.setter
    def current(cls, value: Any) -> None:
        cls._current.value = value
