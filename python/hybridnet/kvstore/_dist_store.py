"""DistKVStore: the stores dist_sync, dist_sync_device and dist_device_sync, sums over the processes of mx.group."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .. import _core, group
from ..errors import UnsupportedError
from ..ndarray import NDArray
from .kvstore import KVStore, _pairs, _total

__all__ = ["DistKVStore", "broadcast_lists", "buckets", "copy_to_others"]

_FIRST_BUCKET_BYTES, _BUCKET_BYTES = 1 << 20, 25 << 20


def _bytes(array: NDArray) -> int:
    return int(array.size) * int(array.dtype(0).itemsize)


def buckets(arrays: Iterable[NDArray]) -> Iterator[list[int]]:
    """Splits arrays into messages, in order: positions of arrays of one dtype.

    The first message is small, so that the processes begin to send early.
    """
    open_buckets: dict[Any, tuple[list[int], int]] = {}
    limit = _FIRST_BUCKET_BYTES
    for position, array in enumerate(arrays):
        members, size = open_buckets.get(array.dtype, ([], 0))
        members.append(position)
        size += _bytes(array)
        if size >= limit:
            yield members
            limit, members, size = _BUCKET_BYTES, [], 0
        open_buckets[array.dtype] = (members, size)
    for members, _ in open_buckets.values():
        if members:
            yield members


def _text(kind: str, keys: Sequence[Any]) -> str:
    return f"{kind} '{keys[0]}'" if len(keys) == 1 else f"{kind} '{keys[0]}'..'{keys[-1]}'"


def copy_to_others(arrays: Sequence[NDArray]) -> None:
    """Copies the first array into the others, which are on other contexts."""
    first, *others = arrays
    for other in others:
        other[:] = first.as_in_context(other.context)


def broadcast_lists(names: Sequence[Any], arrays: Sequence[Sequence[NDArray]], root: int = 0) -> None:
    """Overwrites the arrays of each name, one for each context, by the first one of process root, in few messages."""
    firsts = [each[0] for each in arrays]
    for members in buckets(firsts):
        group.broadcast([firsts[i] for i in members], root, _text("parameters", [names[i] for i in members]))
    for each in arrays:
        copy_to_others(each)


def _check_role(name: str) -> None:
    """Raises UnsupportedError in processes that a launcher of MXNet starts: they have DMLC_* variables, and servers."""
    role = os.environ.get("DMLC_ROLE")
    workers = os.environ.get("DMLC_NUM_WORKER", "")
    count = int(workers) if workers.isdecimal() and int(workers) > 0 else 4
    fix = f"start the workers alone, by `python -m hybridnet.launch -n {count} train.py`"
    if role in ("server", "scheduler"):
        raise UnsupportedError(
            f"kvstore '{name}': this process was started as a {role}",
            because=f"DMLC_ROLE={role}, and there are no servers: each worker updates its parameters",
            fix=fix,
        )
    # A group of one process would train alone, as if it were the only worker.
    if workers and count > 1 and "HYBRIDNET_GROUP_SIZE" not in os.environ and not group.is_initialized():
        raise UnsupportedError(
            f"kvstore '{name}': this process has no others, although DMLC_NUM_WORKER={workers}",
            because="processes do not meet by DMLC_* variables",
            fix=fix,
        )


class DistKVStore(KVStore):
    """Arrays by key, equal in all processes of ``mx.group``; created by ``mx.kv.create('dist_sync')``.

    ``init`` takes the values of process 0. ``push`` sums over contexts and processes; the sum goes to the updater of
    each process, or replaces the stored array. There are no servers. All processes must call the same methods with the
    same keys in the same order.
    """

    def __init__(self, name: str = "dist_sync") -> None:
        super().__init__(name)
        _check_role(name)
        group.init()

    @property
    def rank(self) -> int:
        """The number of this process."""
        return group.rank()

    @property
    def num_workers(self) -> int:
        """The number of processes."""
        return group.size()

    @property
    def num_shards(self) -> int:
        """The number of virtual shards of the group; num_workers if there are none."""
        return group.virtual_shards()

    @property
    def own_shards(self) -> tuple[int, int]:
        """The virtual shards of this process: (first, end)."""
        return group.own_shards()

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

    def sum_gradients(self, names: Sequence[Any], gradients: Sequence[Sequence[NDArray]]) -> None:
        """Overwrites the gradients of each parameter, one for each context, by their sum over contexts and processes.

        The last parameters come first: their gradients are ready first.
        """
        names, gradients = list(reversed(names)), list(reversed(gradients))
        totals = [_total(list(arrays)) for arrays in gradients]
        for members in buckets(totals) if self.num_workers > 1 else ():
            group.sum_into([totals[i] for i in members], name=_text("gradients", [names[i] for i in members]))
        for total, arrays in zip(totals, gradients, strict=True):
            for array in arrays:
                if array is not total:
                    array[:] = total.as_in_context(array.context)

    def sum_shards(self, names: Sequence[Any], nodes: Sequence[Sequence[NDArray]], out: Sequence[NDArray]) -> None:
        """Overwrites out by the sums over all virtual shards. nodes: of the shards of this process (ShardSums)."""
        places = list(reversed(range(len(out))))
        for members in buckets([out[i] for i in places]):
            chosen = [places[i] for i in members]
            _core.group_sum_shards(
                [[node[i] for i in chosen] for node in nodes],
                [out[i] for i in chosen],
                _text("gradients", [names[i] for i in chosen]),
            )

    def _sums(
        self, pairs: Sequence[tuple[Any, list[NDArray]]], priority: int = 0, out: Sequence[NDArray] | None = None
    ) -> list[NDArray]:
        """The sums over contexts and processes."""
        totals, keys = super()._sums(pairs, priority, out), [k for k, _ in pairs]
        # Sums are written in place only where the array is to be overwritten: pushed arrays stay as they are.
        given = [None] * len(totals) if out is None else out
        targets = [total if total is place else total.copy() for total, place in zip(totals, given, strict=True)]
        for members in buckets(totals):
            group.sum_into(
                [totals[i] for i in members],
                [targets[i] for i in members],
                _text("values", [keys[i] for i in members]),
                priority,
            )
        return targets

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        """Raises UnsupportedError unless the type is 'none'."""
        if compression_params.get("type", "none") not in ("none", None):
            raise UnsupportedError(
                f"kvstore '{self.type}': gradient compression",
                because="values are sent as they are so far",
                fix="leave compression_params out",
            )
