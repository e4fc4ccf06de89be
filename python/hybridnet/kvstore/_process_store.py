"""ProcessKVStore: what all stores of several processes share, and the messages in which arrays travel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .. import _core, group
from ..ndarray import NDArray
from ._row_sums import broadcast_rows
from .kvstore import KVStore, _pairs

__all__ = ["ProcessKVStore", "broadcast_lists", "buckets", "copy_to_others", "gradients_text", "text_of"]


def buckets(arrays: Iterable[NDArray]) -> Iterator[list[int]]:
    """Splits arrays into messages, in order: positions of arrays of one dtype.

    The first message is small, so that the processes begin to send early. C++ and Java split like this, too.
    """
    yield from _core.group_buckets(list(arrays))


def text_of(kind: str, keys: Sequence[Any]) -> str:
    """Names the arrays of a message in errors of the group."""
    return _core.group_label(kind, [str(key) for key in keys])


def gradients_text(divisor: float | None) -> str:
    """Names the gradients of a step that divides their sums by a number, on which all processes must agree."""
    return "gradients" if divisor is None else _core.group_gradients_kind(divisor)


def copy_to_others(arrays: Sequence[NDArray]) -> None:
    """Copies the first array into the others, which are on other contexts."""
    first, *others = arrays
    for other in others:
        other[:] = first.as_in_context(other.context)


def broadcast_lists(names: Sequence[Any], arrays: Sequence[Sequence[NDArray]], root: int = 0) -> None:
    """Overwrites the arrays of each name, one for each context, by the first one of process root, in few messages."""
    firsts = [each[0] for each in arrays]
    dense = [i for i, first in enumerate(firsts) if first.stype == "default"]
    for members in buckets([firsts[i] for i in dense]):
        chosen = [dense[i] for i in members]
        group.broadcast([firsts[i] for i in chosen], root, text_of("parameters", [names[i] for i in chosen]))
    for i, first in enumerate(firsts):
        if first.stype != "default":
            broadcast_rows(first, root, names[i])
    for each in arrays:
        copy_to_others(each)


class ProcessKVStore(KVStore):
    """A store whose stored arrays are equal in all processes of ``mx.group`` and begin as those of process 0.

    There are no servers. All processes must call the same methods with the same keys in the same order.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        group.init()

    @property
    def rank(self) -> int:
        """The number of this process."""
        return group.rank()

    @property
    def num_workers(self) -> int:
        """The number of processes."""
        return group.size()

    def barrier(self) -> None:
        """Returns when all processes have called it."""
        group.barrier()

    _barrier = barrier

    def init(self, key: Any, value: Any) -> None:
        """Stores the values of process 0. Raises ParamError if a key exists."""
        super().init(key, value)
        keys = [k for k, _ in _pairs(key, value)]
        self.broadcast_all(keys, [[self._stored[k]] for k in keys])

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Stores the value of process 0 and copies it into the arrays of out."""
        pairs = self._pairs(key, value)
        for k, arrays in pairs:
            self._stored[k] = arrays[0].copy()
        self.broadcast_all([k for k, _ in pairs], [[self._stored[k]] for k, _ in pairs])
        for k, targets in self._pairs(key, out):
            self.pull(k, targets, priority)

    def broadcast_all(self, names: Sequence[Any], arrays: Sequence[Sequence[NDArray]]) -> None:
        """Overwrites the arrays of each name, one for each context, by the first one of process 0."""
        if self.num_workers > 1:
            broadcast_lists(names, arrays)
