"""Calls on arrays: reductions, gathering, broadcasts and exchanges. All of them are calls of mx.group."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from .. import autograd, group, ndarray
from ..errors import DTypeError, ParamError, ShapeError, UnsupportedError
from ..errors import TypeError as HybridNetTypeError
from ..kvstore._process_store import buckets
from ..ndarray import NDArray
from ._processes import ProcessSet, check_process_set, global_process_set, rank, size


class _Reduction(IntEnum):
    """The values of ``op=``, with Horovod's numbers."""

    Average = 0
    Sum = 1
    Adasum = 2
    Min = 3
    Max = 4
    Product = 5


Average = _Reduction.Average
Sum = _Reduction.Sum
Adasum = _Reduction.Adasum
Min = _Reduction.Min
Max = _Reduction.Max
Product = _Reduction.Product

# These receive the arrays of all processes; sums receive only their parts.
_OF_GATHERED = {Min: ndarray.min, Max: ndarray.max, Product: ndarray.prod}


def _check(call: str, tensor: Any, process_set: Any) -> None:
    size()  # raises before init()
    check_process_set(call, process_set)
    if not isinstance(tensor, NDArray):
        raise HybridNetTypeError(f"{call}: tensor", expected="an NDArray", given=type(tensor).__name__)


def _check_list(call: str, tensors: Any, process_set: Any) -> None:
    if not isinstance(tensors, (list, tuple)):
        raise HybridNetTypeError(f"{call}: tensors", expected="a list of NDArrays", given=type(tensors).__name__)
    for tensor in tensors:
        _check(call, tensor, process_set)


def _quoted(name: Any) -> str:
    return "" if name is None else f"'{name}'"


def _reduction(call: str, average: bool | None, op: Any, dtype: Any) -> _Reduction:
    """Returns the reduction that the arguments of a call choose."""
    if average is not None and op is not None:
        raise ParamError(f"{call}: average and op", because="op replaces average", fix="pass only one of them")
    if op is None:
        op = Sum if average is not None and not average else Average
    if isinstance(op, bool) or not isinstance(op, int) or op not in set(_Reduction):
        raise ParamError(
            f"{call}: op", expected="hvd.Average, Sum, Min, Max or Product", given=repr(op), fix="pass op=hvd.Sum"
        )
    if op == Adasum:
        raise UnsupportedError(f"{call}: Adasum", because="gradients are summed or averaged", fix="use hvd.Average")
    if op == Average and np.dtype(dtype).kind == "b":
        raise DTypeError(
            f"{call}: an average", expected="numbers", given="bool", fix="pass op=hvd.Max for 'in any process'"
        )
    return _Reduction(op)


def _scaled(array: NDArray, factor: float, divisor: int = 1) -> NDArray:
    """Returns array * factor / divisor in its dtype; integers are rounded towards zero."""
    if factor == 1 and divisor == 1:
        return array
    if np.dtype(array.dtype).kind in "iu":
        return (array.astype("float64") * factor / divisor).astype(array.dtype)
    if factor != 1:
        array = array * factor
    return array if divisor == 1 else array / divisor  # not times 1 / divisor: an average of equal values is that value


def _scale(array: NDArray, factor: float, divisor: int = 1) -> None:
    """Same as _scaled, in place."""
    if factor != 1 or divisor != 1:
        array[:] = _scaled(array, factor, divisor)


def _divisor(op: _Reduction) -> int:
    return size() if op == Average else 1


def allreduce(
    tensor: NDArray,
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    *,
    op: Any = None,
) -> NDArray:
    """Returns the average of an array over all processes, or another reduction; the array is not changed.

    Parameters
    ----------
    tensor : NDArray
        Of equal shape and dtype in all processes. Averages of integers are rounded towards zero.
    average : bool, default True
        False: the sum.
    name : str, optional
        Names the array in errors.
    priority : int
        Accepted: calls run in the order of the program.
    prescale_factor, postscale_factor : float, default 1.0
        Factors of the array before, and of the result after the reduction.
    process_set : ProcessSet
        Only ``hvd.global_process_set``.
    op : optional
        ``hvd.Average``, ``Sum``, ``Min``, ``Max`` or ``Product``, instead of average.

    The gradient of sums and averages is the same reduction of all processes' gradients; the other ones have none.
    Raises TypeError, ParamError, DTypeError for averages of bool, UnsupportedError for sparse arrays, process sets and
    Adasum, ValueError before init(); differences between processes are a GroupError where the result is read.
    """
    _check("hvd.allreduce", tensor, process_set)
    op = _reduction("hvd.allreduce", average, op, tensor.dtype)
    given = _scaled(tensor, prescale_factor)
    if op in _OF_GATHERED:
        return _scaled(_OF_GATHERED[op](group.gather(given, _quoted(name)), axis=0), postscale_factor)
    return _scaled(group.sum(given, _quoted(name)), postscale_factor, _divisor(op))


def allreduce_(
    tensor: NDArray,
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    *,
    op: Any = None,
) -> NDArray:
    """Same as allreduce, but overwrites the array, and returns it."""
    _check("hvd.allreduce_", tensor, process_set)
    op = _reduction("hvd.allreduce_", average, op, tensor.dtype)
    _reduce_into([tensor], op, name, priority, prescale_factor, postscale_factor)
    return tensor


def grouped_allreduce(
    tensors: Sequence[NDArray],
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    *,
    op: Any = None,
) -> list[NDArray]:
    """Same as allreduce of each array, in few messages. Returns a list."""
    _check_list("hvd.grouped_allreduce", tensors, process_set)
    reductions = [_reduction("hvd.grouped_allreduce", average, op, tensor.dtype) for tensor in tensors]
    if autograd.is_recording():  # single sums have gradients
        scales = (prescale_factor, postscale_factor)
        return [allreduce(tensor, None, name, priority, *scales, op=r) for tensor, r in zip(tensors, reductions)]
    results = [tensor.copy() for tensor in tensors]
    if results:
        _reduce_into(results, reductions[0], name, priority, prescale_factor, postscale_factor)
    return results


def grouped_allreduce_(
    tensors: Sequence[NDArray],
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    *,
    op: Any = None,
) -> Sequence[NDArray]:
    """Same as allreduce_ of each array, in few messages. Returns the given list."""
    _check_list("hvd.grouped_allreduce_", tensors, process_set)
    reductions = [_reduction("hvd.grouped_allreduce_", average, op, tensor.dtype) for tensor in tensors]
    if tensors:
        _reduce_into(tensors, reductions[0], name, priority, prescale_factor, postscale_factor)
    return tensors


def _reduce_into(
    arrays: Sequence[NDArray], op: _Reduction, name: str | None, priority: int, prescale: float, postscale: float
) -> None:
    """Overwrites arrays by their reductions over all processes."""
    for array in arrays:
        _scale(array, prescale)
    if op in _OF_GATHERED:
        for array in arrays:
            array[:] = _OF_GATHERED[op](group.gather(array, _quoted(name)), axis=0)
    else:
        for members in buckets(arrays):
            group.sum_into([arrays[i] for i in members], name=_quoted(name), priority=priority)
    for array in arrays:
        _scale(array, postscale, _divisor(op))


# --- gathering and exchanges ------------------------------------------------------------------------------------------


def _check_rows(call: str, tensor: NDArray) -> None:
    if tensor.ndim == 0:
        raise ShapeError(f"{call}: tensor", expected="an array with a first axis", given="shape ()")


def _rows_of_all(tensor: NDArray, rows: Sequence[int], name: str) -> list[NDArray]:
    """Returns the arrays of all processes. rows: their lengths along the first axis."""
    most = max(rows)
    if most == 0:
        return [tensor for _ in rows]
    if tensor.shape[0] < most:  # gathering needs equal shapes
        missing = (most - tensor.shape[0], *tensor.shape[1:])
        filling = ndarray.zeros(missing, ctx=tensor.context, dtype=tensor.dtype)
        tensor = filling if tensor.shape[0] == 0 else ndarray.concat(tensor, filling, dim=0)
    everything = group.gather(tensor, name)
    return [everything[other][:count] for other, count in enumerate(rows)]


def _joined(parts: Sequence[NDArray], like: NDArray) -> NDArray:
    """Joins arrays along the first axis; without any rows, an empty array."""
    filled = [part for part in parts if part.shape[0] > 0]
    if not filled:
        return like[:0]
    return ndarray.concat(*filled, dim=0)


def allgather(
    tensor: NDArray, name: str | None = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> NDArray:
    """Returns the arrays of all processes, joined along the first axis, in the order of ranks.

    Shapes: tensor (N_r, ...) at rank r; out (sum of N_r, ...). Waits for the lengths N_r. Raises TypeError, ShapeError
    for an array without axes, UnsupportedError for sparse arrays, GradientError while recording, GroupError where the
    other sizes or dtypes differ.
    """
    _check("hvd.allgather", tensor, process_set)
    _check_rows("hvd.allgather", tensor)
    text = _quoted(name)
    own = ndarray.array([tensor.shape[0]], dtype="int64")
    rows = group.gather(own, f"the lengths of {text or 'hvd.allgather'}").asnumpy()[:, 0].tolist()
    return _joined(_rows_of_all(tensor, rows, text), tensor)


def alltoall(
    tensor: NDArray,
    splits: Any = None,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray | tuple[NDArray, NDArray]:
    """Sends the rows of an array to all processes; returns the rows that they sent to this one, in the order of ranks.

    splits: number of rows for each rank, of length size() and with sum tensor.shape[0]; default: equal parts. With
    splits, returns (rows, number of rows from each rank). Every process receives the arrays of all, and keeps its rows.

    Raises TypeError, ShapeError if the rows cannot be split in equal parts, ParamError for wrong splits, and the errors
    of allgather.
    """
    _check("hvd.alltoall", tensor, process_set)
    _check_rows("hvd.alltoall", tensor)
    counts = _split_counts(tensor.shape[0], splits)
    text = _quoted(name)
    own = ndarray.array(counts, dtype="int64")
    table = group.gather(own, f"the lengths of {text or 'hvd.alltoall'}").asnumpy()  # [from][to]
    arrays = _rows_of_all(tensor, table.sum(axis=1).tolist(), text)
    begins = table.cumsum(axis=1) - table
    me = rank()
    parts = [array[int(begins[r, me]) : int(begins[r, me] + table[r, me])] for r, array in enumerate(arrays)]
    received = _joined(parts, tensor)
    return received if splits is None else (received, ndarray.array(table[:, me], dtype="int32"))


def _split_counts(rows: int, splits: Any) -> np.ndarray[Any, Any]:
    if splits is None:
        if rows % size() != 0:
            raise ShapeError(
                "hvd.alltoall: tensor",
                expected=f"a first axis that is a multiple of {size()}, the number of processes",
                given=str(rows),
                fix="pass splits=, the number of rows for each process",
            )
        return np.full(size(), rows // size())
    counts = splits.asnumpy() if isinstance(splits, NDArray) else np.asarray(splits)
    is_valid = counts.shape == (size(),) and counts.dtype.kind in "iuf" and (counts == np.floor(counts)).all()
    if not is_valid or counts.min() < 0 or counts.sum() != rows:
        raise ParamError(
            "hvd.alltoall: splits",
            expected=f"{size()} numbers of rows, 0 or more, with the sum {rows}",
            given=str(counts.tolist()),
        )
    return counts.astype("int64")


def broadcast(
    tensor: NDArray,
    root_rank: int,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray:
    """Returns the array of the process root_rank, without a gradient; the given array is not changed.

    Raises TypeError, ValueError for root_rank, UnsupportedError for sparse arrays.
    """
    _check("hvd.broadcast", tensor, process_set)
    with autograd.pause():
        return broadcast_(tensor.copy(), root_rank, name, priority)


def broadcast_(
    tensor: NDArray,
    root_rank: int,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> NDArray:
    """Overwrites the array by that of the process root_rank, and returns it. Raises the errors of broadcast."""
    _check("hvd.broadcast_", tensor, process_set)
    group.broadcast(tensor, root_rank, _quoted(name))
    return tensor
