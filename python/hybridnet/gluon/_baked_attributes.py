"""Tracks the Python attributes of blocks that forward reads while it is traced.

The graph is only valid for the values that forward read. Reads are recorded by a ``__getattribute__`` that Block has
only while a block is traced; when one of these attributes is set to another value later, ``Block.__setattr__`` makes
the blocks whose graphs depend on it drop them, so the next call traces again. Calls of the graph have no overhead.
Lists, dicts, sets, plain objects and NumPy arrays can change in place: they are compared at each call (see _snapshots).
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

# Internal attributes of every block, on which forward does not base decisions; filled by _hybrid_block.
MACHINERY: set[str] = set()
# Pseudo attribute for the set of children and parameters of a block.
STRUCTURE = "(structure)"

_MISSING = object()  # an attribute that was read but does not exist


def _is_plain_of_class(block: Block, name: str) -> bool:
    """Whether the attribute is a simple class attribute, defined by a class of the program."""
    for cls in type(block).__mro__:
        if name in vars(cls):
            return is_plain(vars(cls)[name]) and not cls.__module__.startswith("hybridnet.")
    return False


def _is_of_package(block: Block) -> bool:
    """Whether the class is a layer of this package, whose calls must not become slower."""
    return type(block).__module__.startswith("hybridnet.")


class _Local(threading.local):
    """State per thread."""

    reads: AttributeReads | None = None


_local = _Local()
_watchers = 0  # number of active traces; traces of different threads run one at a time


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
        self._containers: list[tuple[Block, str, Copied, str]] = []  # file:line is that of the first read
        self._changed: list[tuple[Block, str, str]] = []  # containers that forward itself modifies
        self._iterators: list[tuple[Block, str, str]] = []
        self._cut: list[tuple[Block, str, str]] = []  # too large to be compared completely
        self._writes: dict[tuple[int, str], str] = {}  # file:line

    def note_call(self, block: Block) -> None:
        """Records that the graph includes the computation of block and its children."""
        self._called[id(block)] = block

    def note(self, block: Block, name: str, value: Any) -> None:
        """Records an attribute's value. Ignores methods and attributes that forward has set itself."""
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
        """Records that forward read an attribute that block does not have."""
        if not _is_of_package(block) and not name.startswith("__"):
            self._read.setdefault(id(block), (block, {}))[1].setdefault(name, _MISSING)

    def note_write(self, block: Block, name: str) -> None:
        """Records that forward itself sets the attribute; without a location if a layer of the package sets it."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_name in ("attribute_is_set", "__setattr__"):
            frame = frame.f_back
        where = "" if is_own_file(frame.f_code.co_filename) else _core.current_location()
        self._writes.setdefault((id(block), name), where)

    @property
    def has_containers(self) -> bool:
        """Whether calls must check holds()."""
        return bool(self._containers)

    def holds(self) -> bool:
        """Whether the containers that were read are unchanged."""
        return all(copy.holds() for _, _, copy, _ in self._containers)

    def called(self) -> Iterator[Block]:
        """The blocks whose forward is part of the graph."""
        return iter(self._called.values())

    def dependencies(self) -> Iterator[tuple[Block, str]]:
        """(block, attribute) of the attributes that were read and that forward itself does not set."""
        for block, names in self._read.values():
            yield from ((block, name) for name in names if (id(block), name) not in self._writes)

    def changed_by_forward(self) -> Iterator[tuple[Block, str, str]]:
        """Yields (block, attribute, file:line) for simple values that forward read and then replaced."""
        for block, names in self._read.values():
            if _is_of_package(block):
                continue
            for name, value in names.items():
                where = self._writes.get((id(block), name))
                if where and is_plain(value) and not is_same(value, block.__dict__.get(name)):
                    yield block, name, where

    def contents_changed_by_forward(self) -> Iterator[tuple[Block, str, str]]:
        """Yields (block, attribute, file:line of the read) for containers that forward itself modifies."""
        return iter(self._changed)

    def iterators(self) -> Iterator[tuple[Block, str, str]]:
        """Yields (block, attribute, file:line) for iterators that forward reads."""
        return iter(self._iterators)

    def cut(self) -> Iterator[tuple[Block, str, str]]:
        """Yields (block, attribute, file:line) for values that are too large to be compared completely."""
        return iter(self._cut)

    def of_users(self) -> Iterator[str]:
        """Yields 'block.attribute = value' for simple values read from blocks of classes outside of the package."""
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
        # A container that forward itself modifies has another value at the next call: it is not compared.
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


# Maps the id of a block to the block and, for each attribute, the blocks whose graphs depend on it, by their ids.
_readers: dict[int, tuple[weakref.ref[Block], dict[str, dict[int, weakref.ref[Any]]]]] = {}


def _forget_block(key: int, _: Any) -> None:
    _readers.pop(key, None)


def register_reads(root: Any, reads: AttributeReads) -> None:
    """Registers that graphs of root depend on these reads."""
    for block, name in (*reads.dependencies(), *((block, STRUCTURE) for block in reads.called())):
        key = id(block)
        known = _readers.get(key)
        if known is None or known[0]() is not block:
            known = _readers[key] = (weakref.ref(block, partial(_forget_block, key)), {})
        known[1].setdefault(name, {})[id(root)] = weakref.ref(root)


def note_call(block: Block) -> None:
    """Called when forward of block is traced."""
    if _local.reads is not None:
        _local.reads.note_call(block)


def attribute_is_set(block: Block, name: str, old: Any, new: Any) -> None:
    """Called before an attribute changes: drops the graphs that depend on it."""
    if _local.reads is not None:
        _local.reads.note_write(block, name)
        return
    known = _readers.get(id(block))
    if known is not None and name in known[1] and not is_same(old, new):
        forget_readers(block, name)


def forget_readers(block: Block, name: str) -> None:
    """Makes blocks drop the graphs that depend on this attribute."""
    known = _readers.get(id(block))
    if known is None or known[0]() is not block:
        return
    for root in known[1].pop(name, {}).values():
        if (reader := root()) is not None:
            reader._clear_cached_op()
