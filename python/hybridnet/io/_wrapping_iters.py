"""Iterators that wrap iterators: another number of batches per epoch, and prefetching."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ..errors import ParamError
from ._batches import DataBatch, DataDesc, DataIter

__all__ = ["PrefetchingIter", "ResizeIter"]


class ResizeIter(DataIter):
    """Yields size batches per epoch, restarting the inner iterator at its end.

    Parameters
    ----------
    data_iter : DataIter
    size : int
    reset_internal : bool, default True
        Whether reset() also resets the inner iterator.
    """

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
        super().__init__(data_iter.batch_size)
        self.data_iter = data_iter
        self.size = size
        self.reset_internal = reset_internal
        self.cur = 0
        self.current_batch: Any = None
        self.provide_data = data_iter.provide_data
        self.provide_label = data_iter.provide_label
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        """Starts a new epoch."""
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        """Moves to the next batch; returns False after size batches."""
        if self.cur == self.size:
            return False
        try:
            self.current_batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            self.current_batch = self.data_iter.next()
        self.cur += 1
        return True

    def getdata(self) -> Any:
        """Returns the arrays of the current batch."""
        return self.current_batch.data

    def getlabel(self) -> Any:
        """Returns the labels of the current batch."""
        return self.current_batch.label

    def getindex(self) -> Any:
        """Returns the indices of its samples."""
        return self.current_batch.index

    def getpad(self) -> Any:
        """Returns the number of its padding samples."""
        return self.current_batch.pad


def _renamed(descriptions: Sequence[Any], names: dict[str, str]) -> list[DataDesc]:
    listed = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in descriptions]
    return [DataDesc(names[desc.name], desc.shape, desc.dtype) for desc in listed]


class PrefetchingIter(DataIter):
    """Prefetches the next batch of one or more iterators in threads; joins their arrays.

    Parameters
    ----------
    iters : DataIter or list of DataIter
        Iterators with equally long epochs.
    rename_data, rename_label : list of dict, optional
        For each iterator, a dict from old names to new names.

    Raises ParamError for an empty list and, during iteration, if lengths or pads differ.
    """

    def __init__(
        self,
        iters: DataIter | Sequence[DataIter],
        rename_data: Sequence[dict[str, str]] | None = None,
        rename_label: Sequence[dict[str, str]] | None = None,
    ) -> None:
        super().__init__()
        self.iters: list[Any] = list(iters) if isinstance(iters, (list, tuple)) else [iters]
        if not self.iters:
            raise ParamError("PrefetchingIter: needs at least one iterator")
        self.n_iter = len(self.iters)
        self.rename_data = rename_data
        self.rename_label = rename_label
        self.batch_size = self.provide_data[0][1][0]
        self.current_batch: DataBatch | None = None
        # Its threads end when it is collected: a finalizer that shut it down would take locks at any allocation.
        self._threads = ThreadPoolExecutor(self.n_iter, thread_name_prefix="hybridnet-prefetch")
        self._coming: list[Future[DataBatch | None]] = []
        self._request()

    def _descriptions(self, attribute: str, names: Any) -> list[DataDesc]:
        lists = [getattr(it, attribute) for it in self.iters]
        if names is None:
            return [desc for descriptions in lists for desc in descriptions]
        return [desc for its, new in zip(lists, names, strict=True) for desc in _renamed(its, new)]

    @property
    def provide_data(self) -> list[DataDesc]:
        """The descriptions of the data of all iterators."""
        return self._descriptions("provide_data", self.rename_data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """The descriptions of the labels of all iterators."""
        return self._descriptions("provide_label", self.rename_label)

    @staticmethod
    def _next_of(it: DataIter) -> DataBatch | None:
        # A Future cannot transport StopIteration.
        return next(it, None)

    def _request(self) -> None:
        self._coming = [self._threads.submit(self._next_of, it) for it in self.iters]

    def reset(self) -> None:
        """Starts a new epoch."""
        for future in self._coming:
            future.exception()  # waits; its exception belongs to the old epoch
        for it in self.iters:
            it.reset()
        self._request()

    def iter_next(self) -> bool:
        """Moves to the next batch; returns False after the last one. Raises the exceptions of the iterators."""
        results = [future.result() for future in self._coming]
        batches = [batch for batch in results if batch is not None]
        if not batches:
            return False
        if len(batches) != len(results) or any(batch.pad != batches[0].pad for batch in batches):
            raise ParamError("PrefetchingIter: number of entry mismatches between iterators")
        self.current_batch = DataBatch(
            [array for batch in batches for array in batch.data or ()],
            [array for batch in batches for array in batch.label or ()],
            batches[0].pad,
            batches[0].index,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )
        self._request()
        return True

    def next(self) -> DataBatch:
        """Returns the next batch. Raises StopIteration after the last one."""
        if not self.iter_next():
            raise StopIteration
        return self.current_batch  # type: ignore[return-value]

    def getdata(self) -> Any:
        """Returns the arrays of the current batch."""
        return self.current_batch.data  # type: ignore[union-attr]

    def getlabel(self) -> Any:
        """Returns the labels of the current batch."""
        return self.current_batch.label  # type: ignore[union-attr]

    def getindex(self) -> Any:
        """Returns the indices of its samples."""
        return self.current_batch.index  # type: ignore[union-attr]

    def getpad(self) -> Any:
        """Returns the number of its padding samples."""
        return self.current_batch.pad  # type: ignore[union-attr]
