"""Variables of closures and modules that forward, and functions of the program that it calls, may read.

Finds the variables that the code names: simple values, containers and plain objects, also defaults of arguments,
attributes of functions, of classes and of modules of the program. A later call compares them.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._baked_attributes import is_plain
from ._own_generators import names_in
from ._snapshots import Copied, copied, is_of_program, is_same

if TYPE_CHECKING:
    from .block import Block

__all__ = ["ReadVariables"]

_MAX_FUNCTIONS = 200
_MAX_ITEMS, _MAX_LEVELS = 64, 3  # limits of the search of containers for objects with methods
# Methods that Python calls without their names in the code.
_UNNAMED = ("__call__", "__getitem__", "__len__", "__bool__", "__iter__", "__contains__", "__getattr__", "__float__")
_UNNAMED_OPERATORS = ("__add__", "__radd__", "__mul__", "__rmul__", "__sub__", "__rsub__", "__truediv__", "__matmul__")


class _Variable:
    """A place that holds a value: a cell of a closure, or a name in the variables of a module or class."""

    __slots__ = ("_name", "_place", "copy", "value", "where")

    def __init__(self, place: Any, name: str, value: Any, where: str) -> None:
        self._place, self._name, self.value, self.where = place, name, value, where
        self.copy: Copied | None = None if is_plain(value) else copied(value)

    @property
    def name(self) -> str:
        return self._name

    @property
    def key(self) -> tuple[int, str]:
        return id(self._place), self._name

    @property
    def is_of_module(self) -> bool:
        return isinstance(self._place, dict)

    def holds(self) -> bool:
        """Whether the place still holds the same value."""
        now = self._now()
        if self.copy is not None:
            return now is self.value and self.copy.holds()
        return now is self.value or is_same(self.value, now)

    def _now(self) -> Any:
        if isinstance(self._place, types.CellType):
            try:
                return self._place.cell_contents
            except ValueError:  # deleted
                return _Variable
        if isinstance(self._place, types.FunctionType):
            return self.value
        place = vars(self._place) if isinstance(self._place, type) else self._place
        return place.get(self._name, _Variable)


class ReadVariables:
    """The variables, and their current values.

    before: the variables before forward ran. A variable that forward itself has changed has another value at the next
    trace: it is not compared; a warning is issued instead.
    """

    def __init__(self, block: Block | None = None, before: ReadVariables | None = None) -> None:
        self._variables: list[_Variable] = []
        self._seen: set[Any] = set()
        self.changed_by_forward: list[tuple[str, str]] = []  # (name, file:line)
        self._has_code = False  # whether functions of the program were found
        if block is not None and (before is None or before._has_code):
            self._visit_blocks(block)
        if before is not None:
            self._drop_changed(before)
        self.iterators = [
            (each.name, each.where) for each in self._variables if each.copy is not None and each.copy.has_iterators
        ]
        self._variables = [each for each in self._variables if each.copy is None or not each.copy.is_trivial]
        self.cut = [(each.name, each.where) for each in self._variables if each.copy is not None and each.copy.is_cut]
        self.some = bool(self._variables)

    def hold(self) -> bool:
        """Whether every place still holds the same value."""
        return all(each.holds() for each in self._variables)

    def names(self) -> list[str]:
        """Returns 'name = value' of the variables of modules."""
        return [f"{each.name} = {each.value!r}" for each in self._variables if each.is_of_module and each.copy is None]

    def _drop_changed(self, before: ReadVariables) -> None:
        changed = {each.key for each in before._variables if not each.holds()}
        for each in self._variables:
            if each.key in changed:
                self.changed_by_forward.append((each.name, each.where))
        self._variables = [each for each in self._variables if each.key not in changed]

    # -- the search ---------------------------------------------------------------------------------------------------

    def _is_new(self, key: Any) -> bool:
        if key in self._seen or len(self._seen) > 20 * _MAX_FUNCTIONS:
            return False
        self._seen.add(key)
        return True

    def _visit_blocks(self, block: Block) -> None:
        if not self._is_new(id(block)):
            return
        if type(block).__module__.startswith("hybridnet."):
            for value in vars(block).values():  # functions passed to layers such as HybridLambda
                if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
                    self._visit(value)
        else:
            for name in ("forward", "hybrid_forward"):
                self._visit(getattr(type(block), name), block)
        for child in block._children.values():
            self._visit_blocks(child)

    def _visit(self, function: Any, owner: Any = None) -> None:
        """Records the variables that a function of the program reads. owner: the object whose methods it may call."""
        if isinstance(function, functools.partial):
            self._visit(function.func, owner)
            return
        function = function.fget if isinstance(function, property) else getattr(function, "__func__", function)
        if not isinstance(function, types.FunctionType) or (function.__module__ or "").startswith("hybridnet."):
            return
        if not self._is_new((id(function), id(owner))):
            return
        self._has_code = True
        code = function.__code__
        where = f"{code.co_filename}:{code.co_firstlineno}"
        names = frozenset(names_in(code))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet
                continue
            if name != "__class__":
                self._note(cell, name, value, names, where, owner)
        for name in _globals_of(code) & function.__globals__.keys():
            if not name.startswith("__"):
                self._note(function.__globals__, name, function.__globals__[name], names, where, owner)
        self._note_defaults(function, names, where)
        if owner is not None:
            self._visit_owner(owner, names, where)
        self._visit(getattr(function, "__wrapped__", None), owner)

    def _note_defaults(self, function: types.FunctionType, names: frozenset[str], where: str) -> None:
        code = function.__code__
        defaults = function.__defaults__ or ()
        first = code.co_argcount - len(defaults)
        named = [*zip(code.co_varnames[first:], defaults, strict=False), *(function.__kwdefaults__ or {}).items()]
        for name, value in named:
            if not is_plain(value):
                self._note(function, name, value, names, where)

    def _visit_owner(self, owner: Any, names: frozenset[str], where: str) -> None:
        """Visits methods, properties, functions and objects in attributes of the owner of a method with these names."""
        cls = type(owner)
        fields: Mapping[str, Any] = getattr(owner, "__dict__", None) or {}
        for name in names:
            if name in fields:
                self._visit_value(fields[name], names, owner)
                continue
            for base in cls.__mro__:
                if name in vars(base):
                    value = vars(base)[name]
                    if isinstance(value, (types.FunctionType, property, staticmethod, classmethod)):
                        self._visit(value, owner)
                    elif not base.__module__.startswith("hybridnet.") and is_of_program(base.__module__):
                        self._note(base, name, value, names, where)
                    break

    def _note(self, place: Any, name: str, value: Any, names: frozenset[str], where: str, owner: Any = None) -> None:
        """Records a place that code with these names reads. owner: an object that may be an argument of functions."""
        if not self._is_new((id(place), name)):
            return
        if is_plain(value):
            self._variables.append(_Variable(place, name, value, where))
        elif isinstance(value, (types.ModuleType, type)):
            if is_of_program(value.__name__ if isinstance(value, types.ModuleType) else value.__module__):
                fields = vars(value)
                for inner in names & fields.keys():
                    if not inner.startswith("__"):
                        place = fields if isinstance(fields, dict) else value  # each view of a class's fields is new
                        self._note(place, inner, fields[inner], names, where, owner)
        else:
            variable = _Variable(place, name, value, where)
            if variable.copy is not None:
                self._variables.append(variable)
            self._visit_value(value, names, owner)

    def _visit_value(self, value: Any, names: frozenset[str], owner: Any = None, levels: int = _MAX_LEVELS) -> None:
        """Visits functions in a value, and methods with these names of objects of the program in it."""
        from .block import Block

        if isinstance(value, Block):
            self._visit_blocks(value)
        elif isinstance(value, types.MethodType):
            self._visit(value, value.__self__)
        elif isinstance(value, (types.FunctionType, functools.partial, staticmethod, classmethod)):
            self._visit(value, owner)
        elif isinstance(value, (list, tuple, dict)):
            if len(value) <= _MAX_ITEMS and levels > 0:
                for item in value.values() if isinstance(value, dict) else value:
                    if not is_plain(item):
                        self._visit_value(item, names, owner, levels - 1)
        elif is_of_program(type(value).__module__) and not isinstance(value, type):
            for name in names.union(_UNNAMED, _UNNAMED_OPERATORS):
                method = getattr(type(value), name, None)
                if isinstance(method, (types.FunctionType, property)):
                    self._visit(method, value)


@functools.lru_cache(maxsize=4096)
def _globals_of(code: types.CodeType) -> frozenset[str]:
    """Returns the global variables that the code of a function, and of its inner functions, reads or sets."""
    return frozenset(_search(code))


def _search(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "STORE_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _search(constant)
