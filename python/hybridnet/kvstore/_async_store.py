"""AsyncKVStore: the store dist_async, which updates by the gradients of one process after the other, with a delay."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from .. import autograd, group, ndarray
from ..errors import ParamError, UnsupportedError
from ..ndarray import NDArray
from ._process_store import ProcessKVStore, buckets, text_of
from ._row_sums import gather_rows
from .kvstore import _total

__all__ = ["AsyncKVStore"]

_Apply = Callable[[Sequence[NDArray]], None]


class AsyncKVStore(ProcessKVStore):
    """Arrays by key that the gradients of each process update by themselves; created by ``mx.kv.create('dist_async')``.

    MXNet's servers update once for each gradient that arrives. Here each process has all arrays, and updates them by
    the gradients of all processes, one after the other in the order of ranks. A push starts to send its gradients and
    waits for those of an earlier push: the one `staleness` pushes before, which had the time of as many batches to
    arrive. So a process is at most that many pushes ahead of the others, and all have the same values, in every run.

    An optimizer or updater is needed. :meth:`barrier` applies what is on its way.
    """

    def __init__(self, name: str = "dist_async") -> None:
        super().__init__(name)
        self._staleness = 1
        self._waiting: dict[Hashable, deque[tuple[list[list[NDArray]], _Apply]]] = {}

    @property
    def staleness(self) -> int:
        """The number of pushes by which gradients are applied later, 1 by default.

        Another number in another process is a GroupError. A group of one process applies each push at once. Raises
        ParamError for a number below 0.
        """
        return self._staleness

    @staleness.setter
    def staleness(self, pushes: int) -> None:
        if isinstance(pushes, bool) or not isinstance(pushes, int) or pushes < 0:
            raise ParamError(
                "kvstore 'dist_async': staleness", expected="a number of pushes, from 0", given=repr(pushes)
            )
        self._staleness = pushes

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sends the sum over contexts for each key, and updates by what an earlier push of the keys has sent.

        priority has no effect. Raises ParamError for unknown keys, ShapeError, UnsupportedError without an optimizer.
        """
        pairs = self._pairs(key, value)
        for k, arrays in pairs:
            self._check_shapes(k, arrays)
        keys = [k for k, _ in pairs]
        if self._updater is None:
            raise UnsupportedError(
                f"kvstore '{self.type}': push of key {keys[0]!r}",
                because="without an optimizer there is nothing that the values of single processes could update",
                fix="call set_optimizer(), or use 'dist_sync', which stores sums",
            )
        self.exchange(tuple(keys), text_of("values", keys), [_total(arrays) for _, arrays in pairs], self._update(keys))

    def _update(self, keys: Sequence[Any]) -> _Apply:
        def apply(arrays: Sequence[NDArray]) -> None:
            for k, array in zip(keys, arrays, strict=True):
                stored = self._stored[k]
                self._updater(k, array.as_in_context(stored.context), stored)  # type: ignore[misc]

        return apply

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Pushes all keys, then pulls all into out (default: value)."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def exchange(self, key: Hashable, name: str, arrays: Sequence[NDArray], apply: _Apply) -> None:
        """Sends arrays to all processes, and applies those of an earlier exchange with this key.

        apply is called with the arrays of one process, for each process in the order of ranks. name: for errors.
        """
        waiting = self._waiting.setdefault(key, deque())
        with autograd.pause():
            waiting.append((_gathered(arrays, f"{name} (staleness {self._staleness})"), apply))
            self._apply(waiting, self._staleness if self.num_workers > 1 else 0)

    @staticmethod
    def _apply(waiting: deque[tuple[list[list[NDArray]], _Apply]], left: int) -> None:
        while len(waiting) > left:
            of_processes, apply = waiting.popleft()
            for arrays in of_processes:
                apply(arrays)

    def barrier(self) -> None:
        """Applies all gradients that were pushed; returns when all processes have called it."""
        with autograd.pause():
            for waiting in self._waiting.values():
                self._apply(waiting, 0)
        super().barrier()

    _barrier = barrier

    def _can_compress(self) -> bool:
        return False


def _gathered(arrays: Sequence[NDArray], name: str) -> list[list[NDArray]]:
    """The arrays of each process. Dense ones travel together, in few messages."""
    processes = group.size()
    if processes == 1:
        return [list(arrays)]
    found: list[list[Any]] = [[None] * len(arrays) for _ in range(processes)]
    dense = [i for i, array in enumerate(arrays) if array.stype == "default"]
    for members in buckets([arrays[i] for i in dense]):
        chosen = [dense[i] for i in members]
        flat = group.gather(ndarray.concat(*(arrays[i].reshape((-1,)) for i in chosen), dim=0), name)
        for own, row in zip(found, flat, strict=True):
            for i, part in zip(chosen, _parts(row, [arrays[i] for i in chosen]), strict=True):
                own[i] = part
    for i in sorted(set(range(len(arrays))) - set(dense)):
        for own, array in zip(found, gather_rows(arrays[i], name), strict=True):
            own[i] = array
    return found


def _parts(flat: NDArray, like: Sequence[NDArray]) -> Iterator[NDArray]:
    end = 0
    for array in like:
        begin, end = end, end + int(array.size)
        yield flat[begin:end].reshape(array.shape)
