"""Python attributes of blocks that forward reads while it is traced.

The graph holds what forward decided by them. Which were read is recorded by a ``__getattribute__`` that Block has only
while a block is traced; when one of them is set to another value later, ``Block.__setattr__`` makes the blocks whose
graphs depend on it forget these, so the next call traces again. Calls of the graph cost nothing. Lists, dicts, sets and
plain objects, and NumPy arrays, can change without being set: they are compared at each call (see _snapshots).
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import _core
from .._tracing import is_own_file
from ._snapshots import Copied, copied, is_plain, is_same

if TYPE_CHECKING:
    from .block import Block

__all__ = [
    "MACHINERY",
    "STRUCTURE",
    "AttributeReads",
    "attribute_is_set",
    "forget_readers",
    "note_call",
    "register_reads",
]

# Attributes that every block has and that forward does not decide by; filled by _hybrid_block.
MACHINERY: set[str] = set()
# Stands among the names of attributes for the children and parameters that a block has.
STRUCTURE = "(structure)"

_MISSING = object()  # an attribute that was asked for and is not there


def _is_plain_of_class(block: Block, name: str) -> bool:
    """Whether the attribute is a simple value that a class of the program gives to all its blocks."""
    for cls in type(block).__mro__:
        if name in vars(cls):
            return is_plain(vars(cls)[name]) and not cls.__module__.startswith("hybridnet.")
    return False


def _is_of_package(block: Block) -> bool:
    """Whether the class is a layer of this package, whose calls must not get slower."""
    return type(block).__module__.startswith("hybridnet.")


class _Local(threading.local):
    """Per thread."""

    reads: AttributeReads | None = None


_local = _Local()
_watchers = 0  # traces that run now; the traces of all threads take turns


def _watched_attribute(self: Block, name: str) -> Any:
    try:
        value = object.__getattribute__(self, name)
    except AttributeError:
        if _local.reads is not None:
            _local.reads.note_missing(self, name)
        raise
    if _local.reads is not None and name not in MACHINERY:
        _local.reads.note(self, name, value)
    return value


class AttributeReads:
    """Records the attributes of blocks that are read inside ``with``, and their values."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[Block, dict[str, Any]]] = {}
        self._called: dict[int, Block] = {}
        self._containers: list[tuple[Block, str, Copied, str]] = []  # file:line of the first read
        self._changed: list[tuple[Block, str, str]] = []  # containers that forward itself changes
        self._iterators: list[tuple[Block, str, str]] = []
        self._cut: list[tuple[Block, str, str]] = []  # too large to be compared in full
        self._writes: dict[tuple[int, str], str] = {}  # file:line

    def note_call(self, block: Block) -> None:
        """The graph holds what block and its children compute."""
        self._called[id(block)] = block

    def note(self, block: Block, name: str, value: Any) -> None:
        """An attribute of block has this value. Methods do not count, nor attributes that forward has set itself."""
        if (id(block), name) in self._writes:
            return
        if name not in object.__getattribute__(block, "__dict__") and (
            _is_of_package(block) or not _is_plain_of_class(block, name)
        ):
            return
        _, names = self._read.setdefault(id(block), (block, {}))
        if name in names:
            return
        names[name] = value
        if is_plain(value) or _is_of_package(block):
            return
        if (copy := copied(value)) is None:
            return
        if copy.has_iterators:
            self._iterators.append((block, name, _core.current_location()))
        if copy.is_cut:
            self._cut.append((block, name, _core.current_location()))
        if not copy.is_trivial:
            self._containers.append((block, name, copy, _core.current_location()))

    def note_missing(self, block: Block, name: str) -> None:
        """forward asked for an attribute that block does not have."""
        if not _is_of_package(block) and not name.startswith("__"):
            self._read.setdefault(id(block), (block, {}))[1].setdefault(name, _MISSING)

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
        return all(copy.holds() for _, _, copy, _ in self._containers)

    def called(self) -> Iterator[Block]:
        """The blocks whose forward is part of the graph."""
        return iter(self._called.values())

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

    def contents_changed_by_forward(self) -> Iterator[tuple[Block, str, str]]:
        """(block, attribute, file:line of the read) of the containers that forward itself changes."""
        return iter(self._changed)

    def iterators(self) -> Iterator[tuple[Block, str, str]]:
        """(block, attribute, file:line) of the iterators that forward reads."""
        return iter(self._iterators)

    def cut(self) -> Iterator[tuple[Block, str, str]]:
        """(block, attribute, file:line) of the values that are too large to be compared in full."""
        return iter(self._cut)

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
        kept = []
        for each in self._containers:
            block, name, copy, where = each
            if copy.holds():
                kept.append(each)
            else:
                self._changed.append((block, name, where))
        self._containers = kept
        _watchers -= 1
        if _watchers == 0:
            del Block.__getattribute__


# By id of the block: the block, and for each attribute the blocks whose graphs depend on it, by their ids.
_readers: dict[int, tuple[weakref.ref[Block], dict[str, dict[int, weakref.ref[Any]]]]] = {}


def _forget_block(key: int, _: Any) -> None:
    _readers.pop(key, None)


def register_reads(root: Any, reads: AttributeReads) -> None:
    """Graphs of root depend on what was read."""
    for block, name in (*reads.dependencies(), *((block, STRUCTURE) for block in reads.called())):
        key = id(block)
        known = _readers.get(key)
        if known is None or known[0]() is not block:
            known = _readers[key] = (weakref.ref(block, partial(_forget_block, key)), {})
        known[1].setdefault(name, {})[id(root)] = weakref.ref(root)


def note_call(block: Block) -> None:
    """Called where forward of block is traced."""
    if _local.reads is not None:
        _local.reads.note_call(block)


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
