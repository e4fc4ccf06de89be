"""Variables of closures and modules that forward, and the functions of the program that it calls, may read.

Found are those that the code names and that hold a simple value: a number, a flag, text. A later call compares them.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from ._baked_attributes import is_plain
from ._own_generators import names_in

if TYPE_CHECKING:
    from .block import Block

__all__ = ["ReadVariables"]

_MAX_FUNCTIONS = 200


class ReadVariables:
    """The variables, and the values that they hold now."""

    def __init__(self, block: Block | None = None) -> None:
        self._cells: list[tuple[Any, Any]] = []
        self._globals: list[tuple[dict[str, Any], str, Any]] = []
        self._seen: set[int] = set()
        if block is not None:
            self._visit_blocks(block)
        self.some = bool(self._cells or self._globals)

    def hold(self) -> bool:
        """Whether each holds the value that it held."""
        for cell, value in self._cells:
            if cell.cell_contents is not value and not _is_equal(cell.cell_contents, value):
                return False
        for variables, name, value in self._globals:
            now = variables.get(name)
            if now is not value and not _is_equal(now, value):
                return False
        return True

    def names(self) -> list[str]:
        """'name = value' of the variables of modules."""
        return [f"{name} = {value!r}" for _, name, value in self._globals]

    def _visit_blocks(self, block: Block) -> None:
        if id(block) in self._seen:
            return
        self._seen.add(id(block))
        cls = type(block)
        if not cls.__module__.startswith("hybridnet."):
            for name in ("forward", "hybrid_forward"):
                self._visit(getattr(cls, name), cls)
        for child in block._children.values():
            self._visit_blocks(child)

    def _visit(self, function: Any, cls: type | None = None) -> None:
        """Records the variables that a function of the program reads. cls: the class whose methods it may call."""
        function = function.fget if isinstance(function, property) else getattr(function, "__func__", function)
        if not isinstance(function, types.FunctionType) or (function.__module__ or "").startswith("hybridnet."):
            return
        if id(function) in self._seen or len(self._seen) > _MAX_FUNCTIONS:
            return
        self._seen.add(id(function))
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet
                continue
            if is_plain(value):
                self._cells.append((cell, value))
            else:
                self._visit(value, cls)
        for name in set(names_in(function.__code__)):
            if name in function.__globals__:
                self._note_global(function.__globals__, name)
            if cls is not None:
                self._visit(getattr(cls, name, None), cls)

    def _note_global(self, variables: dict[str, Any], name: str) -> None:
        value = variables[name]
        if is_plain(value) and not name.startswith("__"):
            self._globals.append((variables, name, value))
        elif isinstance(value, types.FunctionType):
            self._visit(value)


def _is_equal(now: Any, before: Any) -> bool:
    return type(now) is type(before) and bool(now == before)
