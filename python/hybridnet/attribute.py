"""Attributes that every node made within a scope gets."""

from __future__ import annotations

from typing import Any

from ._scopes import ScopeType
from .errors import ValueError as HybridNetValueError

__all__ = ["AttrScope"]


class AttrScope(metaclass=ScopeType):
    """``with AttrScope(ctx_group='dev1'):`` gives nodes the attribute; keys of the form __key__ are hidden ones.

    Raises ValueError for values that are not str.
    """

    _subgraph_names: dict[str, int] = {}

    def __init__(self, **attributes: str) -> None:
        for key, value in attributes.items():
            if not isinstance(value, str):
                raise HybridNetValueError(
                    "AttrScope", expected=f"text for attribute {key!r}", given=type(value).__name__
                )
        self._attr = dict(attributes)
        # A stack: a scope may be entered again inside itself.
        self._entered: list[tuple[AttrScope, dict[str, str]]] = []

    def get(self, attr: dict[str, str] | None) -> dict[str, str]:
        """attr on top of the attributes of this scope."""
        if not self._attr:
            return attr or {}
        return {**self._attr, **(attr or {})}

    def __enter__(self) -> AttrScope:
        outer = AttrScope._current.value
        self._entered.append((outer, self._attr))
        self._attr = {**outer._attr, **self._attr}
        AttrScope._current.value = self
        return self

    def __exit__(self, *exception: Any) -> None:
        AttrScope._current.value, self._attr = self._entered.pop()


def current() -> AttrScope:
    """The scope of the innermost ``with``."""
    return AttrScope._current.value


def attributes_for(attr: dict[str, str] | None) -> dict[str, str] | None:
    """The attributes of a new node."""
    scope = AttrScope._current.value
    return scope.get(attr) if scope._attr else attr
