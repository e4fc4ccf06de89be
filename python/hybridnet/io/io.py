"""Iterators and batches, where MXNet has them."""

from .array_iter import NDArrayIter
from .batches import DataBatch, DataDesc, DataIter
from .wrapping_iters import PrefetchingIter, ResizeIter

__all__ = ["DataBatch", "DataDesc", "DataIter", "NDArrayIter", "PrefetchingIter", "ResizeIter"]
