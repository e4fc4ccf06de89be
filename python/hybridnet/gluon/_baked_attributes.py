"""Python attributes of blocks that forward reads while it is traced.

The graph holds what forward decided by them. Which were read is recorded by a ``__getattribute__`` that Block has only
while a block is traced; when one of them is set to another value later, ``Block.__setattr__`` makes the blocks whose
graphs depend on it forget these, so the next call traces again. Calls of the graph cost nothing. Lists, dicts, sets and
plain objects can change without being set: those that hold simple values only are compared at each call.
"""

from __future__ import annotations

import sys
import threading
import types
import weakref
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._tracing import is_own_file

if TYPE_CHECKING:
    from .block import Block

__all__ = ["MACHINERY", "AttributeReads", "attribute_is_set", "forget_readers", "register_reads"]

# Attributes that every block has and that forward does not decide by; filled by _hybrid_block.
MACHINERY: set[str] = set()

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)
_LARGEST = 64  # items of a container whose changes are seen


def is_plain(value: Any) -> bool:
    """Whether the value can change only by being replaced, and is compared by ==."""
    if isinstance(value, (tuple, frozenset)):
        return all(is_plain(item) for item in value)
    return isinstance(value, _PLAIN)


def is_same(old: Any, new: Any) -> bool:
    """Whether forward would decide alike by both."""
    return old is new or (type(old) is type(new) and is_plain(old) and bool(old == new))


def _snapshot(value: Any) -> Any:
    """A copy of a container or plain object that holds simple values, to compare with later; None for others."""
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, (list, set)):
        items = enumerate(value) if isinstance(value, list) else ((item, None) for item in value)
    elif type(value).__module__.startswith(("hybridnet.", "numpy")) or isinstance(
        value, (type, types.ModuleType, types.FunctionType, types.MethodType)
    ):
        return None
    else:
        fields = getattr(value, "__dict__", None)
        kept = {key: item for key, item in fields.items() if is_plain(item)} if isinstance(fields, dict) else None
        return kept or None
    if len(value) > _LARGEST:
        return None
    copied = {}
    for key, item in items:
        if isinstance(item, (dict, list, set)):
            item = _snapshot(item)
            if item is None:
                return None
        elif not is_plain(item):
            return None
        copied[key] = item
    return copied


def _is_of_package(block: Block) -> bool:
    """Whether the class is a layer of this package, whose calls must not get slower."""
    return type(block).__module__.startswith("hybridnet.")


class _Local(threading.local):
    """Per thread."""

    reads: AttributeReads | None = None


_local = _Local()
_watchers = 0  # traces that run now; the traces of all threads take turns


def _watched_attribute(self: Block, name: str) -> Any:
    value = object.__getattribute__(self, name)
    if _local.reads is not None and name not in MACHINERY:
        _local.reads.note(self, name, value)
    return value


class AttributeReads:
    """Records the attributes of blocks that are read inside ``with``, and their values."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[Block, dict[str, Any]]] = {}
        self._containers: list[tuple[Any, Any]] = []
        self._writes: dict[tuple[int, str], str] = {}  # file:line

    def note(self, block: Block, name: str, value: Any) -> None:
        """An attribute of block has this value. Those of the class, such as methods, do not count, nor those that
        forward has set itself."""
        if name not in object.__getattribute__(block, "__dict__") or (id(block), name) in self._writes:
            return
        _, names = self._read.setdefault(id(block), (block, {}))
        if name in names:
            return
        names[name] = value
        if is_plain(value) or _is_of_package(block):
            return
        if (copied := _snapshot(value)) is not None:
            self._containers.append((value, copied))

    def note_write(self, block: Block, name: str) -> None:
        """forward itself sets the attribute: in the program, or in a layer of the package, whose own affair that is."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_name in ("attribute_is_set", "__setattr__"):
            frame = frame.f_back
        where = "" if is_own_file(frame.f_code.co_filename) else _core.current_location()
        self._writes.setdefault((id(block), name), where)

    @property
    def has_containers(self) -> bool:
        """Whether calls have to ask holds()."""
        return bool(self._containers)

    def holds(self) -> bool:
        """Whether the containers that were read hold what they held."""
        return all(_snapshot(value) == copied for value, copied in self._containers)

    def dependencies(self) -> Iterator[tuple[Block, str]]:
        """(block, attribute) of the attributes that were read and that forward itself does not set."""
        for block, names in self._read.values():
            yield from ((block, name) for name in names if (id(block), name) not in self._writes)

    def changed_by_forward(self) -> Iterator[tuple[Block, str, str]]:
        """(block, attribute, file:line) where forward read a simple value and then set another one."""
        for block, names in self._read.values():
            if _is_of_package(block):
                continue
            for name, value in names.items():
                where = self._writes.get((id(block), name))
                if where and is_plain(value) and not is_same(value, block.__dict__.get(name)):
                    yield block, name, where

    def of_users(self) -> Iterator[str]:
        """'block.attribute = value' of the simple values that classes outside of the package read."""
        for block, names in self._read.values():
            if not _is_of_package(block):
                for name, value in names.items():
                    if is_plain(value):
                        yield f"{block.name}.{name} = {value!r}"

    def __enter__(self) -> AttributeReads:
        from .block import Block

        global _watchers
        self._outer = _local.reads
        _local.reads = self
        _watchers += 1
        if _watchers == 1:
            Block.__getattribute__ = _watched_attribute  # type: ignore[method-assign,assignment]
        return self

    def __exit__(self, *_: Any) -> None:
        from .block import Block

        global _watchers
        _local.reads = self._outer
        # A container that forward itself changes has another value at the next call: it is not compared.
        self._containers = [(value, copied) for value, copied in self._containers if _snapshot(value) == copied]
        _watchers -= 1
        if _watchers == 0:
            del Block.__getattribute__


# By id of the block: the block, and for each attribute the blocks whose graphs depend on it, by their ids.
_readers: dict[int, tuple[weakref.ref[Block], dict[str, dict[int, weakref.ref[Any]]]]] = {}


def _forget_block(key: int, _: Any) -> None:
    _readers.pop(key, None)


def register_reads(root: Any, reads: AttributeReads) -> None:
    """Graphs of root depend on what was read."""
    for block, name in reads.dependencies():
        key = id(block)
        known = _readers.get(key)
        if known is None or known[0]() is not block:
            known = _readers[key] = (weakref.ref(block, partial(_forget_block, key)), {})
        known[1].setdefault(name, {})[id(root)] = weakref.ref(root)


def attribute_is_set(block: Block, name: str, old: Any, new: Any) -> None:
    """Called before an attribute changes: graphs that depend on it are forgotten."""
    if _local.reads is not None:
        _local.reads.note_write(block, name)
        return
    known = _readers.get(id(block))
    if known is not None and name in known[1] and not is_same(old, new):
        forget_readers(block, name)


def forget_readers(block: Block, name: str) -> None:
    """Makes blocks forget the graphs that depend on this attribute."""
    known = _readers.get(id(block))
    if known is None or known[0]() is not block:
        return
    for root in known[1].pop(name, {}).values():
        if (reader := root()) is not None:
            reader._clear_cached_op()
