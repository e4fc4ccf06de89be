"""Descriptions of inputs, batches, and the base of iterators."""

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
        Its letter N says which axis counts the samples.
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
        """Position of N in layout; 0 without a layout, -1 if there is no N."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Sequence[Any], types: Sequence[Any] | None) -> list[DataDesc]:
        """Descriptions from (name, shape) and (name, dtype) pairs."""
        if types is None:
            return [DataDesc(pair[0], pair[1]) for pair in shapes]
        dtypes = dict(types)
        return [DataDesc(pair[0], pair[1], dtypes[pair[0]]) for pair in shapes]


class DataBatch:
    """One batch.

    Parameters
    ----------
    data : list of NDArray
    label : list of NDArray, optional
    pad : int, optional
        Samples at the end that only fill the batch up.
    index : array, optional
        Numbers of the samples.
    bucket_key : optional
        Which graph of a BucketingModule the batch is for.
    provide_data, provide_label : list of DataDesc, optional

    Raises TypeError if data or label is no list.
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
    """Base of iterators. Subclasses write iter_next, getdata, getlabel and getpad, or next; and reset.

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
        """Goes back to the first batch."""

    def next(self) -> DataBatch:
        """The next batch. Raises StopIteration behind the last one."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(data=self.getdata(), label=self.getlabel(), pad=self.getpad(), index=self.getindex())

    def iter_next(self) -> bool:
        """Moves to the next batch; False behind the last one."""
        return False

    def getdata(self) -> Any:
        """Arrays of the current batch."""
        return None

    def getlabel(self) -> Any:
        """Labels of the current batch."""
        return None

    def getindex(self) -> Any:
        """Numbers of the samples of the current batch, or None."""
        return None

    def getpad(self) -> Any:
        """Number of samples that only fill the current batch up."""
        return 0
