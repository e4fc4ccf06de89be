"""Functions that combine a list of samples into a batch: stack, pad, group, or leave as a list."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import ndarray
from ...errors import ParamError
from ...ndarray._dtypes import numpy_dtype

__all__ = ["Append", "AsList", "Group", "Pad", "Stack", "default_batchify", "stack_arrays"]


def _numpy(sample: Any) -> np.ndarray:
    return sample.asnumpy() if isinstance(sample, ndarray.NDArray) else np.asarray(sample)


def stack_arrays(samples: Sequence[Any], allocate: Callable[[tuple[int, ...], np.dtype], np.ndarray]) -> np.ndarray:
    """Stacks samples of one shape into a NumPy array with a new first axis, in memory from allocate(shape, dtype).

    Raises ParamError if shapes differ.
    """
    if not isinstance(samples[0], (ndarray.NDArray, np.ndarray)):
        values = np.asarray(samples)
        out = allocate(values.shape, values.dtype)
        out[...] = values
        return out
    arrays = [_numpy(sample) for sample in samples]
    if any(array.shape != arrays[0].shape for array in arrays):
        shapes = sorted({array.shape for array in arrays})
        raise ParamError(
            f"samples of one batch have different shapes: {shapes[:4]}",
            fix="crop or resize them, or pass a batchify_fn such as gluon.data.batchify.Pad()",
        )
    out = allocate((len(arrays), *arrays[0].shape), arrays[0].dtype)
    np.stack(arrays, out=out)
    return out


def default_batchify(samples: Sequence[Any], allocate: Callable[[tuple[int, ...], np.dtype], np.ndarray]) -> Any:
    """Stacks arrays and numbers; tuples become lists of stacked parts. Leaves are NumPy arrays."""
    if isinstance(samples[0], tuple):
        return [default_batchify(part, allocate) for part in zip(*samples, strict=False)]
    return stack_arrays(samples, allocate)


class Stack:
    """Stacks samples of one shape along a new first axis. Raises ParamError if shapes differ."""

    def __init__(self, use_shared_mem: bool = False) -> None:
        self._use_shared_mem = use_shared_mem

    def __call__(self, data: Sequence[Any]) -> Any:
        values = stack_arrays(data, np.empty)
        return ndarray.array(values, dtype=values.dtype)


class Pad:
    """Stacks samples of different sizes, padding them to the largest.

    Parameters
    ----------
    axis : int, default 0
        Has no effect; kept for MXNet's signature; every axis is padded to the largest size.
    val : float, optional
        Padding value, default 0 (with a warning, because 0 may be a valid value).
    dtype : optional
        Element type of the batch; default: that of the samples.
    ret_length : bool, default False
        Whether to return (batch, sizes along axis) instead of the batch alone.

    Called with the samples; raises ParamError if the list is empty or ranks differ.
    """

    def __init__(
        self,
        axis: int = 0,
        val: float | None = None,
        dtype: Any = None,
        ret_length: bool = False,
        use_shared_mem: bool = False,
    ) -> None:
        if val is None:
            warnings.warn(
                "Padding value is not given and will be set automatically to 0 in data.batchify.Pad().", stacklevel=2
            )
        self._axis = axis
        self._val = 0 if val is None else val
        self._dtype = dtype
        self._ret_length = ret_length
        self._use_shared_mem = use_shared_mem

    def __call__(self, data: Sequence[Any]) -> Any:
        arrays = [_numpy(sample) for sample in data]
        if len({array.ndim for array in arrays}) != 1:
            raise ParamError(
                "Pad", expected="samples of one rank", given=f"shapes {[array.shape for array in arrays][:4]}"
            )
        largest = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=False))
        dtype = numpy_dtype(self._dtype) if self._dtype is not None else arrays[0].dtype
        batch = np.full((len(arrays), *largest), self._val, dtype=dtype)
        for row, array in zip(batch, arrays, strict=False):
            row[tuple(slice(size) for size in array.shape)] = array
        out = ndarray.array(batch, dtype=dtype)
        if not self._ret_length:
            return out
        lengths = np.array([array.shape[self._axis] for array in arrays], dtype=np.int32)
        return out, ndarray.array(lengths, dtype=np.int32)


class Append:
    """Returns a list of arrays, one per sample; with expand each has an additional first axis of size 1."""

    def __init__(self, expand: bool = True, batch_axis: int = 0, use_shared_mem: bool = False) -> None:
        self._expand = expand
        self._batch_axis = batch_axis

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        batch = []
        for sample in data:
            array = sample if isinstance(sample, ndarray.NDArray) else None
            if array is None:
                values = np.asarray(sample)
                array = ndarray.array(values, dtype=values.dtype)
            batch.append(ndarray.expand_dims(array, axis=self._batch_axis) if self._expand else array)
        return batch


class AsList:
    """Returns the samples as a list."""

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        return list(data)


class Group:
    """Applies one function per part of tuple samples: ``Group(Stack(), Pad(val=0))``. ParamError on a wrong count."""

    def __init__(self, fn: Any, *args: Callable[[Sequence[Any]], Any]) -> None:
        self._fn = tuple(fn) if isinstance(fn, (list, tuple)) else (fn, *args)

    def __call__(self, data: Sequence[Any]) -> tuple[Any, ...]:
        if len(data[0]) != len(self._fn):
            raise ParamError(f"samples have {len(data[0])} parts but {len(self._fn)} batchify functions are given")
        return tuple(fn([sample[i] for sample in data]) for i, fn in enumerate(self._fn))


Tuple = Group
