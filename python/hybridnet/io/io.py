"""Iterators and batches, under MXNet's module name."""

from .._public_names import dir_of
from ._array_iter import NDArrayIter
from ._batches import DataBatch, DataDesc, DataIter
from ._wrapping_iters import PrefetchingIter, ResizeIter

__all__ = ["DataBatch", "DataDesc", "DataIter", "NDArrayIter", "PrefetchingIter", "ResizeIter"]

__dir__ = dir_of(__name__)
