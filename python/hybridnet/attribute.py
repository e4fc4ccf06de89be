"""Attribute scopes: attributes for every node that is created inside."""

from __future__ import annotations

from typing import Any

from ._public_names import dir_of
from ._scopes import ScopeType
from .errors import ValueError as HybridNetValueError

__all__ = ["AttrScope"]


class AttrScope(metaclass=ScopeType):
    """Adds attributes to nodes: ``with AttrScope(ctx_group='dev1'):``; keys of the form __key__ are hidden.

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
        # A stack: a scope may be reentered within itself.
        self._entered: list[tuple[AttrScope, dict[str, str]]] = []

    def get(self, attr: dict[str, str] | None) -> dict[str, str]:
        """Returns attr merged over the attributes of this scope."""
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
    """Returns the scope of the innermost ``with``."""
    return AttrScope._current.value


def attributes_for(attr: dict[str, str] | None) -> dict[str, str] | None:
    """Returns the attributes of a new node."""
    scope = AttrScope._current.value
    return scope.get(attr) if scope._attr else attr


__dir__ = dir_of(__name__)
