"""Descriptions of inputs, batches, and the base class of iterators."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import TypeError as HybridNetTypeError

__all__ = ["DataBatch", "DataDesc", "DataIter"]


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """Name, shape, element type and layout of an input.

    Parameters
    ----------
    name : str
    shape : tuple of int
    dtype : default float32
    layout : str, default 'NCHW'
        The letter N marks the batch axis.
    """

    dtype: Any
    layout: str | None

    def __new__(cls, name: str, shape: Sequence[int], dtype: Any = np.float32, layout: str | None = "NCHW") -> DataDesc:
        desc = super().__new__(cls, name, shape)
        desc.dtype = dtype
        desc.layout = layout
        return desc

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Returns the position of N in layout; 0 without a layout, -1 if there is no N."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Sequence[Any], types: Sequence[Any] | None) -> list[DataDesc]:
        """Returns descriptions from (name, shape) and (name, dtype) pairs."""
        if types is None:
            return [DataDesc(pair[0], pair[1]) for pair in shapes]
        dtypes = dict(types)
        return [DataDesc(pair[0], pair[1], dtypes[pair[0]]) for pair in shapes]


class DataBatch:
    """A batch of arrays.

    Parameters
    ----------
    data : list of NDArray
    label : list of NDArray, optional
    pad : int, optional
        Number of padding samples at the end.
    index : array, optional
        Indices of the samples.
    bucket_key : optional
        Key of the BucketingModule's graph for this batch.
    provide_data, provide_label : list of DataDesc, optional

    Raises TypeError if data or label is not a list.
    """

    def __init__(
        self,
        data: Sequence[Any] | None,
        label: Sequence[Any] | None = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: Sequence[DataDesc] | None = None,
        provide_label: Sequence[DataDesc] | None = None,
    ) -> None:
        for what, value in (("data", data), ("label", label)):
            if value is not None and not isinstance(value, (list, tuple)):
                raise HybridNetTypeError(f"DataBatch: {what} must be list of NDArrays", given=type(value).__name__)
        self.data = data
        self.label = label
        self.pad = pad
        self.index = index
        self.bucket_key = bucket_key
        self.provide_data = provide_data
        self.provide_label = provide_label

    def __str__(self) -> str:
        data = [array.shape for array in self.data or ()]
        label = [array.shape for array in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {data} label shapes: {label}"


class DataIter:
    """Base of iterators. Subclasses define iter_next, getdata, getlabel and getpad, or next; and reset.

    Attributes: batch_size; provide_data, provide_label: lists of DataDesc.
    """

    provide_data: Any = None
    provide_label: Any = None

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[DataBatch]:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def reset(self) -> None:
        """Resets to the first batch."""

    def next(self) -> DataBatch:
        """Returns the next batch. Raises StopIteration after the last one."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(data=self.getdata(), label=self.getlabel(), pad=self.getpad(), index=self.getindex())

    def iter_next(self) -> bool:
        """Moves to the next batch; returns False after the last one."""
        return False

    def getdata(self) -> Any:
        """Returns the arrays of the current batch."""
        return None

    def getlabel(self) -> Any:
        """Returns the labels of the current batch."""
        return None

    def getindex(self) -> Any:
        """Returns the indices of the samples of the current batch, or None."""
        return None

    def getpad(self) -> Any:
        """Returns the number of padding samples in the current batch."""
        return 0
