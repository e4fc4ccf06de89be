"""Copies of mutable values, for later comparison.

A copy is built from tuples and compared with ==. Simple values are compared with their types and signs, NumPy arrays
and buffers by their bytes, containers and plain objects item by item, everything else by identity.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import io
import random
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .._tracing import is_own_file

__all__ = ["MOST_ITEMS", "MOST_LEVELS", "Copied", "copied", "is_of_program", "is_plain", "is_same", "may_change"]

MOST_ITEMS = 1024  # items of one value, nested ones included
MOST_LEVELS = 8
_MOST_BYTES = 1 << 16  # size of an array that is copied; larger arrays are hashed

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)
_BUFFERS = (bytearray, memoryview)
_ATOMS = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, enum.Enum, io.IOBase, random.Random)
# Standard library classes whose attributes the program sets; other classes hold internal state.
_NAMESPACES = ("types.SimpleNamespace", "argparse.Namespace")


def is_plain(value: Any) -> bool:
    """Whether the value is immutable: it can change only by being replaced."""
    if isinstance(value, (tuple, frozenset)):
        return all(is_plain(item) for item in value)
    return isinstance(value, _PLAIN)


def is_same(old: Any, new: Any) -> bool:
    """Whether both values lead to the same decisions in forward."""
    if old is new:
        return True
    return type(old) is type(new) and is_plain(old) and _plain_key(old) == _plain_key(new)


def _plain_key(value: Any) -> Any:
    """Returns a key that compares like the value, except that types and signs of zeros count and NaN equals itself."""
    kind = type(value)
    if kind is float:
        return value if value > 0 or value < 0 else (kind, value.hex())
    if kind is int or kind is str or value is None:
        return value if kind is not int else (kind, value)
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, tuple):
        return (kind, *map(_plain_key, value))
    if isinstance(value, frozenset):
        return kind, frozenset(map(_plain_key, value))
    if isinstance(value, complex):
        return kind, value.real.hex(), value.imag.hex()
    return kind, value


@functools.lru_cache(maxsize=1024)
def is_of_program(module: str | None) -> bool:
    """Whether a module of this name is part of the program, not of an installed package."""
    top = (module or "").partition(".")[0]
    if top == "__main__":
        return True
    if not top or top in ("hybridnet", "numpy") or top in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return not is_own_file(file) and "site-packages" not in file and "dist-packages" not in file


def may_change(value: Any) -> bool:
    """Whether a copy of the value holds more information than its identity."""
    if is_plain(value) or isinstance(value, _ATOMS):
        return False
    if isinstance(value, types.FunctionType):
        return bool(value.__dict__)
    return not type(value).__module__.startswith("hybridnet.")


class _Same:
    """Compares equal to instances that hold the same object (by identity), and keeps the object alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class Copied:
    """A value together with a copy of it."""

    __slots__ = ("copy", "has_iterators", "is_cut", "is_trivial", "value")

    def __init__(self, value: Any) -> None:
        walk = _Walk()
        self.value, self.copy = value, walk.copy(value, MOST_LEVELS)
        self.is_cut = walk.is_cut  # changes beyond the limits are not detected
        self.has_iterators = walk.has_iterators
        self.is_trivial = type(self.copy) is _Same  # no change of the value can be detected

    def holds(self) -> bool:
        """Whether the value is unchanged since the copy."""
        return _Walk().copy(self.value, MOST_LEVELS) == self.copy


def copied(value: Any) -> Copied | None:
    """Returns a copy of a value that can change in place; None for others."""
    return Copied(value) if may_change(value) else None


class _Walk:
    """Copies one value, within the limits."""

    __slots__ = ("_met", "_rest", "has_iterators", "is_cut")

    def __init__(self) -> None:
        self._rest = MOST_ITEMS
        self._met: set[int] = set()
        self.is_cut = False
        self.has_iterators = False

    def copy(self, value: Any, levels: int) -> Any:
        kind = type(value)
        if (kind is float and value != 0 and value == value) or kind is str:  # fast paths for the most frequent types
            return value
        if kind is list:
            if id(value) not in self._met and levels > 0:
                self._met.add(id(value))
                return list, len(value), self._items(value, levels - 1)
        elif isinstance(value, _PLAIN):
            return _plain_key(value)
        if isinstance(value, np.ndarray):
            return self._array(value, levels)
        if isinstance(value, _BUFFERS) or type(value).__module__ == "array":
            return type(value), _bytes_key(bytes(value))
        if isinstance(value, _ATOMS) or type(value).__module__.startswith("hybridnet."):
            return _Same(value)
        if id(value) in self._met:
            return _Same(value)
        self._met.add(id(value))
        if levels == 0:
            self.is_cut = True
            return _Same(value)
        return self._parts(value, levels - 1)

    def _parts(self, value: Any, levels: int) -> Any:
        if isinstance(value, dict):
            return type(value), len(value), self._pairs(value, levels)
        if isinstance(value, (list, tuple, deque)):
            return type(value), len(value), self._items(value, levels)
        if isinstance(value, (set, frozenset)):
            if len(value) > self._rest:
                self.is_cut = True
                return type(value), len(value)
            return type(value), frozenset(self._items(value, levels))
        if isinstance(value, types.FunctionType):
            return (_Same(value), self._pairs(value.__dict__, levels)) if value.__dict__ else _Same(value)
        if isinstance(value, types.MethodType):
            return _Same(value.__func__), self.copy(value.__self__, levels)
        if isinstance(value, functools.partial):
            return _Same(value.func), self._items(value.args, levels), self._pairs(value.keywords, levels)
        if isinstance(value, Iterator) and not is_of_program(type(value).__module__):
            self.has_iterators = True
            return _Same(value)
        return self._object(value, levels)

    def _object(self, value: Any, levels: int) -> Any:
        cls = type(value)
        fields = _fields(value)
        if cls.__module__.startswith("numpy") or _is_block(value) or not fields:
            return _Same(value)
        if cls.__module__.partition(".")[0] in sys.stdlib_module_names and not _holds_program(cls):
            fields = {name: item for name, item in fields.items() if is_plain(item)}
        return (cls, self._pairs(fields, levels)) if fields else _Same(value)

    def _items(self, values: Iterable[Any], levels: int) -> tuple[Any, ...]:
        found = []
        for item in values:
            if self._rest == 0:
                self.is_cut = True
                break
            self._rest -= 1
            found.append(self.copy(item, levels))
        return tuple(found)

    def _pairs(self, values: dict[Any, Any], levels: int) -> tuple[Any, ...]:
        found = []
        for key, item in values.items():
            if self._rest == 0:
                self.is_cut = True
                break
            self._rest -= 1
            found.append((_plain_key(key) if is_plain(key) else _Same(key), self.copy(item, levels)))
        return tuple(found)

    def _array(self, value: np.ndarray[Any, Any], levels: int) -> Any:
        if value.dtype.hasobject:
            return value.shape, self._items(value.ravel().tolist(), levels - 1) if levels > 0 else _Same(value)
        mask = np.ma.getmaskarray(value).tobytes() if isinstance(value, np.ma.MaskedArray) else None
        data = value if value.nbytes > _MOST_BYTES and value.flags.c_contiguous else value.tobytes()
        return type(value), value.shape, value.dtype, _bytes_key(data), mask


def _bytes_key(data: bytes | np.ndarray[Any, Any]) -> bytes:
    """Returns small data itself, else its digest."""
    if isinstance(data, bytes):
        return data if len(data) <= _MOST_BYTES else hashlib.sha256(data).digest()
    return hashlib.sha256(data.view(np.ndarray).reshape(-1).view(np.uint8).data).digest()


def _is_block(value: Any) -> bool:
    from .block import Block
    from .parameter import Parameter

    return isinstance(value, (Block, Parameter))


def _holds_program(cls: type) -> bool:
    return f"{cls.__module__}.{cls.__qualname__}" in _NAMESPACES or dataclasses.is_dataclass(cls)


def _fields(value: Any) -> dict[str, Any]:
    """Attributes of an object, from its dict and its slots."""
    found = dict(getattr(value, "__dict__", None) or {})
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and isinstance(
                cls.__dict__.get(name), types.MemberDescriptorType
            ):
                try:
                    found[name] = cls.__dict__[name].__get__(value, cls)
                except AttributeError:  # not set
                    continue
    return found
