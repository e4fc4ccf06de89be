"""DistKVStore: the stores dist_sync, dist_sync_device and dist_device_sync, sums over the processes of mx.group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core, group, ndarray
from ..errors import UnsupportedError
from ..ndarray import NDArray
from ._process_store import ProcessKVStore, buckets, gradients_text, text_of
from ._row_sums import sum_rows
from .kvstore import _total

__all__ = ["DistKVStore"]


class DistKVStore(ProcessKVStore):
    """Arrays by key, equal in all processes of ``mx.group``; created by ``mx.kv.create('dist_sync')``.

    ``init`` takes the values of process 0. ``push`` sums over contexts and processes; the sum goes to the updater of
    each process, or replaces the stored array.
    """

    def __init__(self, name: str = "dist_sync") -> None:
        super().__init__(name)

    @property
    def num_shards(self) -> int:
        """The number of virtual shards of the group; num_workers if there are none."""
        return group.virtual_shards()

    @property
    def own_shards(self) -> tuple[int, int]:
        """The virtual shards of this process: (first, end)."""
        return group.own_shards()

    @property
    def compresses(self) -> bool:
        """Whether sums are of compressed gradients."""
        return self._compression is not None

    def sum_gradients(
        self, names: Sequence[Any], gradients: Sequence[Sequence[NDArray]], divisor: float | None = None
    ) -> None:
        """Overwrites the gradients of each parameter, one for each context, by their sum over contexts and processes.

        The last parameters come first: their gradients are ready first. divisor: by which each process divides the sums
        afterwards; they must agree on it.
        """
        kind = gradients_text(divisor)
        names, gradients = self._sum_others(kind, list(reversed(names)), list(reversed(gradients)))
        totals = [_total(list(arrays)) for arrays in gradients]
        for members in buckets(totals) if self.num_workers > 1 else ():
            group.sum_into([totals[i] for i in members], name=text_of(kind, [names[i] for i in members]))
        for total, arrays in zip(totals, gradients, strict=True):
            for array in arrays:
                if array is not total:
                    array[:] = total.as_in_context(array.context)

    def _sum_others(
        self, kind: str, names: list[Any], gradients: list[Sequence[NDArray]]
    ) -> tuple[list[Any], list[Sequence[NDArray]]]:
        """Sums the gradients that are not sent as they are: compressed and row_sparse ones. Returns the rest."""
        chosen = [i for i, arrays in enumerate(gradients) if self._is_special(arrays[0])]
        totals = [_total(list(gradients[i])) for i in chosen]
        sums = self._special_sums(kind, [names[i] for i in chosen], totals, 0)
        for i, total in zip(chosen, sums, strict=True):
            for array in gradients[i]:
                array[:] = total.as_in_context(array.context)
        rest = [i for i, arrays in enumerate(gradients) if not self._is_special(arrays[0])]
        return [names[i] for i in rest], [gradients[i] for i in rest]

    def _can_compress(self) -> bool:
        return True

    def _total_of(self, key: Any, arrays: list[NDArray]) -> NDArray:
        return _total(arrays)  # the sum over contexts is compressed, not each array

    def _is_special(self, array: NDArray) -> bool:
        return self._compression is not None or array.stype != "default"

    def _special_sums(self, kind: str, keys: Sequence[Any], totals: Sequence[NDArray], priority: int) -> list[NDArray]:
        """Returns the sums over processes, as new arrays, of arrays that are compressed or row_sparse."""
        if not totals:
            return []
        sparse_ones = [i for i, total in enumerate(totals) if total.stype != "default"]
        if self._compression is None:
            name = text_of(kind, keys)
            return sum_rows(totals, name, priority) if self.num_workers > 1 else list(totals)
        if sparse_ones:
            raise UnsupportedError(
                f"kvstore '{self.type}': compression of '{keys[sparse_ones[0]]}'",
                because=f"the gradient is in {totals[sparse_ones[0]].stype} storage",
                fix="leave compression_params out, or use dense gradients",
            )
        sums = [ndarray.empty(total.shape, ctx=total.context, dtype=total.dtype) for total in totals]
        for members in buckets(totals):
            chosen = [keys[i] for i in members]
            self._compression.sum_into(
                chosen, [totals[i] for i in members], [sums[i] for i in members], text_of(kind, chosen), priority
            )
        return sums

    def sum_shards(
        self,
        names: Sequence[Any],
        nodes: Sequence[Sequence[NDArray]],
        out: Sequence[NDArray],
        divisor: float | None = None,
    ) -> None:
        """Overwrites out by the sums over all virtual shards. nodes: of the shards of this process (ShardSums)."""
        special = next((i for i, array in enumerate(out) if self._is_special(array)), None)
        if special is not None:
            raise UnsupportedError(
                f"kvstore '{self.type}': the sum of '{names[special]}' over virtual shards",
                because="compressed and row_sparse gradients have no fixed order of shards",
                fix="start the processes without --virtual-shards, or use dense gradients without compression_params",
            )
        places = list(reversed(range(len(out))))
        for members in buckets([out[i] for i in places]):
            chosen = [places[i] for i in members]
            _core.group_sum_shards(
                [[node[i] for i in chosen] for node in nodes],
                [out[i] for i in chosen],
                text_of(gradients_text(divisor), [names[i] for i in chosen]),
            )

    def _sums(
        self, pairs: Sequence[tuple[Any, list[NDArray]]], priority: int = 0, out: Sequence[NDArray] | None = None
    ) -> list[NDArray]:
        """The sums over contexts and processes."""
        totals, keys = super()._sums(pairs, priority, out), [k for k, _ in pairs]
        # Sums are written in place only where the array is to be overwritten: pushed arrays stay as they are.
        given = [None] * len(totals) if out is None else out
        special = [i for i, total in enumerate(totals) if self._is_special(total)]
        others = [i for i, total in enumerate(totals) if not self._is_special(total)]
        targets = dict(
            zip(
                special,
                self._special_sums("values", [keys[i] for i in special], [totals[i] for i in special], priority),
                strict=True,
            )
        )
        for i in others:
            targets[i] = totals[i] if totals[i] is given[i] else totals[i].copy()
        for members in buckets([totals[i] for i in others]):
            chosen = [others[i] for i in members]
            group.sum_into(
                [totals[i] for i in chosen],
                [targets[i] for i in chosen],
                text_of("values", [keys[i] for i in chosen]),
                priority,
            )
        return [targets[i] for i in range(len(totals))]
