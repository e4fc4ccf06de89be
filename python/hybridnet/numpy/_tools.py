"""Functions about arrays: type limits, shared memory, printing, text files, application along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from .. import _core
from ..errors import TypeError as HybridNetTypeError
from ..ndarray._dtypes import numpy_dtype
from ._calls import as_array
from ._creation import array
from ._manipulation import moveaxis, ndim
from ._rearranging import reshape, stack

__all__ = [
    "apply_along_axis", "finfo", "genfromtxt", "iinfo", "may_share_memory", "set_printoptions", "shares_memory",
]  # fmt: skip

set_printoptions = onp.set_printoptions


def finfo(dtype: Any) -> onp.finfo[Any]:
    """Returns limits and precision of a floating dtype, given by name, type or array, like numpy.finfo."""
    return onp.finfo(dtype.dtype if isinstance(dtype, _core.NDArrayBase) else numpy_dtype(dtype))


def iinfo(type: Any) -> onp.iinfo[Any]:
    """Returns limits of an integer dtype, given by name, type or array, like numpy.iinfo."""
    return onp.iinfo(type.dtype if isinstance(type, _core.NDArrayBase) else numpy_dtype(type))


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Applies a function of vectors of mx.np to every vector along an axis. Differentiable if the function is."""
    arr = as_array(arr)
    if ndim(arr) == 0 or 0 in arr.shape:
        raise HybridNetTypeError("np.apply_along_axis: arr", expected="vectors", given=f"shape {tuple(arr.shape)}")
    last = moveaxis(arr, axis, -1)
    rows = reshape(last, (-1, last.shape[-1]))
    results = [as_array(func1d(row, *args, **kwargs)) for row in rows]
    made = reshape(stack(results), (*last.shape[:-1], *results[0].shape))
    first = len(last.shape) - 1
    axes = tuple(first + i for i in range(ndim(results[0])))
    return moveaxis(made, axes, tuple(axis % ndim(arr) + i for i in range(len(axes)))) if axes else made


def shares_memory(a: Any, b: Any, max_work: int | None = None) -> bool:
    """Whether two arrays share memory. False if an argument is not an array of this package."""
    if not (isinstance(a, _core.NDArrayBase) and isinstance(b, _core.NDArrayBase)):
        return False
    return _core.shares_memory(a, b)


def may_share_memory(a: Any, b: Any, max_work: int | None = None) -> bool:
    """See :func:`shares_memory`."""
    return shares_memory(a, b)


def genfromtxt(*args: Any, **kwargs: Any) -> Any:
    """Reads an array from a text file, with numpy.genfromtxt's arguments; ctx: its device. Default dtype: float32."""
    ctx = kwargs.pop("ctx", None)
    dtype = kwargs.get("dtype")
    return array(onp.genfromtxt(*args, **kwargs), dtype, ctx)
