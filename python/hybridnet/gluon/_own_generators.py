"""Random generators of the program that a block can reach, with their states before and after a trace.

Finds instances of random.Random, numpy.random.RandomState and numpy.random.Generator in attributes of the blocks, and
in closures, defaults and globals of the functions that run, also inside containers and plain objects.
"""

from __future__ import annotations

import functools
import random
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .block import Block

__all__ = ["generators_of", "names_in", "read_state", "write_state"]

_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)
_DEPTH, _MAX_ITEMS, _MAX_VISITS = 4, 200, 5000


def read_state(generator: Any) -> Any:
    """Returns the state, for comparison and for write_state."""
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.bit_generator.state


def write_state(generator: Any, state: Any) -> None:
    """Restores a state."""
    if state is None:
        return
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def generators_of(block: Block) -> list[Any]:
    """Returns generators of the program that forward of block, or of a block below, may draw from."""
    walk = _Walk()
    for each in _blocks(block, set()):
        if not type(each).__module__.startswith("hybridnet."):
            walk.visit(vars(each), _DEPTH)
            for cls in type(each).__mro__:
                if not cls.__module__.startswith("hybridnet."):
                    walk.visit([value for value in vars(cls).values() if not isinstance(value, type)], _DEPTH)
    return walk.found


def _blocks(block: Block, seen: set[int]) -> Iterator[Block]:
    if id(block) in seen:
        return
    seen.add(id(block))
    yield block
    for child in block._children.values():
        yield from _blocks(child, seen)


class _Walk:
    """Searches values, with a limit on the number of steps."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._seen: set[int] = set()

    def visit(self, value: Any, depth: int) -> None:
        """Adds the generators in value, or in variables that its code names."""
        if depth < 0 or id(value) in self._seen or len(self._seen) > _MAX_VISITS:
            return
        if isinstance(value, (str, bytes, int, float, type(None), np.ndarray)):
            return
        self._seen.add(id(value))
        if isinstance(value, _GENERATORS):
            self.found.append(value)
        else:
            for part in self._parts(value):
                self.visit(part, depth - 1)

    def _parts(self, value: Any) -> Iterable[Any]:
        if isinstance(value, dict):
            return list(value.values())[:_MAX_ITEMS] if len(value) <= _MAX_ITEMS else []
        if isinstance(value, (list, tuple, set, frozenset)):
            return list(value) if len(value) <= _MAX_ITEMS else []
        if isinstance(value, (staticmethod, classmethod, types.MethodType)):
            return [value.__func__]
        if isinstance(value, property):
            return [value.fget]
        if isinstance(value, functools.partial):
            return [value.func, *value.args, *value.keywords.values()]
        if isinstance(value, types.FunctionType):
            return [] if (value.__module__ or "").startswith("hybridnet.") else _read_by(value)
        if isinstance(value, types.BuiltinMethodType):
            return [value.__self__]
        if isinstance(value, (type, types.ModuleType)) or type(value).__module__.startswith(("hybridnet.", "numpy")):
            return []
        fields = getattr(value, "__dict__", None)
        return [fields] if isinstance(fields, dict) else []


def names_in(code: types.CodeType) -> Iterator[str]:
    """Yields names of variables, attributes and methods in the code of a function and of its inner functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


def _read_by(function: types.FunctionType) -> list[Any]:
    """Values in the closure, the defaults and the globals that a function's code names; of modules, only named ones."""
    parts: list[Any] = []
    for cell in function.__closure__ or ():
        try:
            parts.append(cell.cell_contents)
        except ValueError:  # not set yet
            continue
    parts += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    names = set(names_in(function.__code__))
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if not isinstance(value, types.ModuleType):
            parts.append(value)
        elif value is not random and not value.__name__.startswith(("hybridnet", "numpy")):
            fields = vars(value)
            parts += [fields[inner] for inner in names & fields.keys()]
    if (wrapped := getattr(function, "__wrapped__", None)) is not None:
        parts.append(wrapped)
    return parts
