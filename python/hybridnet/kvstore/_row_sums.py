"""Sums and broadcasts of row_sparse arrays over the processes of mx.group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, group, ndarray
from ..ndarray import NDArray, sparse
from ._agreement import gather_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray as Ids

__all__ = ["broadcast_rows", "gather_rows", "sum_rows"]


def _gathered_ids(own: Sequence[Ids[np.int64]], name: str) -> list[list[Ids[np.int64]]]:
    """Returns the row numbers of all arrays of each process; own: those of this process."""
    counts = ndarray.array([len(ids) for ids in own], dtype="int64")
    all_ends = group.gather(counts, f"numbers of rows of {name}").asnumpy().cumsum(axis=1)
    of_processes = gather_bytes(np.concatenate(list(own)).tobytes(), f"rows of {name}")
    return [np.split(np.frombuffer(ids, "int64"), ends[:-1]) for ids, ends in zip(of_processes, all_ends, strict=True)]


def _compact(array: NDArray, ids: Ids[np.int64], union: Ids[np.int64]) -> NDArray:
    """The rows of the union, one after the other; those that the array does not have are 0."""
    rows = ndarray.zeros((len(union), *array.shape[1:]), ctx=array.context, dtype=array.dtype)
    if len(ids) > 0:
        rows[ndarray.array(np.searchsorted(union, ids), ctx=array.context, dtype="int64")] = array.data
    return rows


def _with_rows(rows: NDArray, ids: Ids[np.int64], like: NDArray) -> NDArray:
    return sparse.row_sparse_array(
        (rows, ndarray.array(ids, ctx=like.context, dtype="int64")),
        shape=like.shape,
        ctx=like.context,
        dtype=like.dtype,
    )


def sum_rows(arrays: Sequence[NDArray], name: str, priority: int = 0) -> list[NDArray]:
    """Returns the sums of row_sparse arrays over all processes; each has the rows that any process has.

    The values are those of sums of dense arrays, with the same bits. Waits until the arrays are computed and all
    processes have told their rows.
    """
    own = [array.indices.asnumpy() for array in arrays]
    of_processes = _gathered_ids(own, name)
    unions = [np.unique(np.concatenate(ids)) for ids in zip(*of_processes, strict=True)]
    parts = [_compact(array, ids, union) for array, ids, union in zip(arrays, own, unions, strict=True)]
    filled = [part for part in parts if part.shape[0] > 0]
    for members in _core.group_buckets(filled):
        group.sum_into([filled[i] for i in members], name=name, priority=priority)
    return [_with_rows(part, ids, array) for part, ids, array in zip(parts, unions, arrays, strict=True)]


def gather_rows(array: NDArray, name: str) -> list[NDArray]:
    """Returns a row_sparse array of each process, in the order of ranks. Waits for the row numbers of all processes."""
    own = array.indices.asnumpy()
    of_processes = [ids for (ids,) in _gathered_ids([own], name)]
    longest = max(map(len, of_processes))
    if longest == 0:
        return [sparse.zeros("row_sparse", array.shape, ctx=array.context, dtype=array.dtype) for _ in of_processes]
    padded = ndarray.zeros((longest, *array.shape[1:]), ctx=array.context, dtype=array.dtype)
    if len(own) > 0:
        padded[: len(own)] = array.data
    everything = group.gather(padded, f"values of the rows of {name}")
    return [_with_rows(everything[rank, : len(ids)], ids, array) for rank, ids in enumerate(of_processes)]


def broadcast_rows(array: NDArray, root: int, name: Any) -> None:
    """Overwrites a row_sparse array by that of the process root."""
    count = ndarray.array([array.indices.shape[0]], dtype="int64")
    group.broadcast(count, root, f"number of rows of '{name}'")
    rows = int(count.asscalar())
    if rows == 0:
        array[:] = sparse.zeros("row_sparse", array.shape, ctx=array.context, dtype=array.dtype)
        return
    is_root = group.rank() == root
    ids = array.indices.copy() if is_root else ndarray.zeros((rows,), dtype="int64")
    values = (
        array.data.copy() if is_root else ndarray.zeros((rows, *array.shape[1:]), ctx=array.context, dtype=array.dtype)
    )
    group.broadcast(ids, root, f"rows of '{name}'")
    group.broadcast(values, root, f"values of the rows of '{name}'")
    array[:] = _with_rows(values, ids.asnumpy(), array)
