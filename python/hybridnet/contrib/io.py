"""DataLoaderIter: a gluon DataLoader as an iterator for mx.mod.Module."""

from __future__ import annotations

from typing import Any

from .. import ndarray
from .._public_names import dir_of
from ..io import DataDesc, DataIter
from ..ndarray import NDArray

__all__ = ["DataLoaderIter"]


class DataLoaderIter(DataIter):
    """Yields batches (data, label) of a DataLoader; zeros pad an incomplete last one, getpad returns their number.

    Parameters
    ----------
    loader : gluon.data.DataLoader
        The loader; its first batch is read at once, for the shapes.
    data_name, label_name : str
    dtype : default 'float32'
    """

    def __init__(
        self, loader: Any, data_name: str = "data", label_name: str = "softmax_label", dtype: Any = "float32"
    ) -> None:
        super().__init__()
        self._loader = loader
        data, label = next(iter(loader))
        self.batch_size = data.shape[0]
        self.dtype = dtype
        self.provide_data = [DataDesc(data_name, data.shape, dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, dtype)]
        self._batch: Any = None
        self.reset()

    def reset(self) -> None:
        """Starts a new epoch."""
        self._round = iter(self._loader)

    def iter_next(self) -> bool:
        """Moves to the next batch; returns False after the last one."""
        self._batch = next(self._round, None)
        return self._batch is not None

    def _filled(self, array: NDArray) -> list[NDArray]:
        array = array.astype(self.dtype)
        if missing := self.getpad():
            zeros = ndarray.zeros((missing, *array.shape[1:]), dtype=self.dtype)
            array = ndarray.concat(array, zeros, dim=0)
        return [array]

    def getdata(self) -> list[NDArray]:
        """Returns the arrays of the current batch."""
        return self._filled(self._batch[0])

    def getlabel(self) -> list[NDArray]:
        """Returns the labels of the current batch."""
        return self._filled(self._batch[1])

    def getpad(self) -> int:
        """Returns the number of padding samples in the current batch."""
        return self.batch_size - self._batch[0].shape[0]


__dir__ = dir_of(__name__)
