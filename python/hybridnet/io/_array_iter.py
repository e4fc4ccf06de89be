"""NDArrayIter: batches of arrays in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ndarray
from .._user_line import warn
from ..errors import ParamError, ShapeError
from ..errors import TypeError as HybridNetTypeError
from ..ndarray import NDArray
from ._batches import DataBatch, DataDesc, DataIter

__all__ = ["NDArrayIter"]


def _named_arrays(data: Any, default_name: str, what: str) -> list[tuple[str, NDArray]]:
    """Returns (name, array) pairs sorted by name. Raises TypeError for other types."""
    if data is None:
        return []
    if isinstance(data, (np.ndarray, NDArray)):
        data = [data]
    if isinstance(data, (list, tuple)):
        single = len(data) == 1
        data = {default_name if single else f"_{i}_{default_name}": array for i, array in enumerate(data)}
    if not isinstance(data, dict):
        raise HybridNetTypeError(
            f"NDArrayIter: {what} must be NDArray, numpy.ndarray, a list of them or dict with them as values",
            given=type(data).__name__,
        )
    pairs = []
    for name, array in sorted(data.items()):
        if not isinstance(array, NDArray):
            try:
                # float32 for every type, like MXNet: integer labels are used with networks in float32.
                array = ndarray.array(np.asarray(array), dtype=np.float32)
            except (TypeError, ValueError) as error:
                raise HybridNetTypeError(
                    f"NDArrayIter: invalid type {type(array).__name__} for '{name}', should be NDArray or numpy.ndarray"
                ) from error
        pairs.append((name, array))
    return pairs


class NDArrayIter(DataIter):
    """Yields batches of arrays in memory, once per epoch.

    Parameters
    ----------
    data : array, list of arrays, or dict of name to array
        Arrays with the same number of samples. Others than NDArrays are converted to float32.
    label : the same, optional
    batch_size : int, default 1
    shuffle : bool, default False
        Whether each epoch has a new order (from numpy.random).
    last_batch_handle : {'pad', 'discard', 'roll_over'}
        Treatment of an incomplete last batch: filled with samples from the beginning (getpad returns the number),
        skipped, or moved to the start of the next epoch.
    data_name, label_name : str
        Names of arrays without names.
    layout : str, default 'NCHW'
        The letter N marks the batch axis.

    Raises ParamError for wrong arguments, ShapeError if numbers of samples differ.
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        layout: str = "NCHW",
    ) -> None:
        super().__init__(batch_size)
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ParamError(
                "NDArrayIter: last_batch_handle must be 'pad', 'discard' or 'roll_over'", given=repr(last_batch_handle)
            )
        self.layout = layout
        self._axis = layout.find("N")
        if self._axis < 0:
            raise ParamError("NDArrayIter: layout must contain N", given=repr(layout))
        self.data = _named_arrays(data, data_name, "data")
        self.label = _named_arrays(label, label_name, "label")
        if not self.data:
            raise ParamError("NDArrayIter: data is empty")
        self.num_data = self._count()
        if batch_size < 1:
            raise ParamError("NDArrayIter: batch_size must be at least 1", given=str(batch_size))
        if last_batch_handle == "discard" and batch_size > self.num_data:
            raise ParamError(
                f"NDArrayIter: batch_size {batch_size} needs to be smaller than data size {self.num_data} when "
                "last_batch_handle is 'discard'"
            )
        self.idx = np.arange(self.num_data)
        self.shuffle = shuffle
        self.last_batch_handle = last_batch_handle
        self.num_source = len(self.data) + len(self.label)
        # Position of the current batch's first sample; negative while a batch starts with the rest of the last epoch.
        self.cursor = -batch_size
        self._rest: list[list[NDArray]] | None = None
        self.reset()

    def _count(self) -> int:
        counts = {name: array.shape[self._axis] for name, array in [*self.data, *self.label]}
        least = min(array.shape[self._axis] for _, array in self.data)
        labels = [name for name, array in self.label if array.shape[self._axis] > least]
        if labels and {count for name, count in counts.items() if name not in labels} == {least}:
            listed = ", ".join(map(repr, labels))
            warn(
                f"NDArrayIter: {listed} has more samples than the data, {least}: the rest is ignored",
            )
            return least
        if len(set(counts.values())) != 1:
            listed = ", ".join(f"'{name}' {count}" for name, count in counts.items())
            raise ShapeError("NDArrayIter: all arrays must have the same number of samples", given=str(listed))
        return next(iter(counts.values()))

    def _describe(self, arrays: Sequence[tuple[str, NDArray]]) -> list[DataDesc]:
        axis = self._axis
        return [
            DataDesc(
                name,
                (*array.shape[:axis], self.batch_size, *array.shape[axis + 1 :]),
                array.dtype,
                layout=self.layout,
            )
            for name, array in arrays
        ]

    @property
    def provide_data(self) -> list[DataDesc]:
        """The descriptions of the data of a batch."""
        return self._describe(self.data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """The descriptions of the labels of a batch."""
        return self._describe(self.label)

    def _shuffle_data(self) -> None:
        np.random.shuffle(self.idx)
        order = ndarray.array(self.idx, dtype="int64")
        for arrays in (self.data, self.label):
            arrays[:] = [(name, ndarray.take(a, order.as_in_context(a.context), axis=self._axis)) for name, a in arrays]

    def hard_reset(self) -> None:
        """Resets to the first sample and discards samples that would roll over."""
        if self.shuffle:
            self._shuffle_data()
        self.cursor = -self.batch_size
        self._rest = None

    def reset(self) -> None:
        """Starts a new epoch; with 'roll_over' it begins with the remaining samples."""
        rest = None
        left = self.num_data - self.cursor
        if self.last_batch_handle == "roll_over" and 0 < left < self.batch_size:
            rest = [self._slice(arrays, self.cursor, self.num_data) for arrays in (self.data, self.label)]
        if self.shuffle:
            self._shuffle_data()
        self._rest = rest
        self.cursor = -self.batch_size if rest is None else -self.batch_size - left

    def iter_next(self) -> bool:
        """Moves to the next batch; returns False if there is none (an incomplete one counts with 'pad' only)."""
        self.cursor += self.batch_size
        if self.last_batch_handle == "pad":
            return self.cursor < self.num_data
        return self.cursor + self.batch_size <= self.num_data

    def next(self) -> DataBatch:
        """Returns the next batch. Raises StopIteration after the last one."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self._arrays(), self._labels(), pad=self.getpad(), index=None)

    def _slice(self, arrays: Sequence[tuple[str, NDArray]], begin: int, end: int) -> list[NDArray]:
        return [ndarray.slice_axis(array, axis=self._axis, begin=begin, end=end) for _, array in arrays]

    def _join(self, *parts: list[NDArray]) -> list[NDArray]:
        parts = tuple(part for part in parts if part)
        if len(parts) == 1:
            return parts[0]
        return [ndarray.concat(*column, dim=self._axis) for column in zip(*parts, strict=True)]

    def _batch(self, arrays: Sequence[tuple[str, NDArray]], rest: list[NDArray] | None) -> list[NDArray]:
        if not arrays:
            return []
        end = self.cursor + self.batch_size
        if self.cursor < 0:
            return self._join(rest or [], self._slice(arrays, 0, end))
        if end <= self.num_data:
            return self._slice(arrays, self.cursor, end)
        pad = end - self.num_data
        rounds, more = divmod(pad, self.num_data)
        whole = [self._slice(arrays, 0, self.num_data)] * rounds
        return self._join(
            self._slice(arrays, self.cursor, self.num_data), *whole, self._slice(arrays, 0, more) if more else []
        )

    def _arrays(self) -> list[NDArray]:
        return self._batch(self.data, self._rest[0] if self._rest else None)

    def _labels(self) -> list[NDArray]:
        return self._batch(self.label, self._rest[1] if self._rest else None)

    def getdata(self) -> list[NDArray]:
        """Returns the arrays of the current batch."""
        return self._arrays()

    def getlabel(self) -> list[NDArray]:
        """Returns the labels of the current batch."""
        return self._labels()

    def getpad(self) -> int:
        """Returns the number of padding samples from the beginning; with 'roll_over' those of the last epoch."""
        if self.cursor < 0:
            return -self.cursor if self.last_batch_handle == "roll_over" else 0
        return max(0, self.cursor + self.batch_size - self.num_data)
