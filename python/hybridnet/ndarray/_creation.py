"""Functions that create arrays: from values, from a pattern, over memory that another library owns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from .. import _core
from .._keywords import no_keyword
from ..base import mx_real_t
from ..context import Context, current_context
from ..errors import HybridNetError, ParamError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from . import _internal
from ._dtypes import dtype_name, numpy_dtype
from .ndarray import NDArray

__all__ = [
    "arange", "array", "empty", "eye", "from_cupy", "from_dlpack", "from_numpy", "full", "linspace", "ones",
    "to_dlpack_for_read", "to_dlpack_for_write", "waitall", "zeros",
]  # fmt: skip


def _context(ctx: Context | str | None, function: str = "", *sizes: Any) -> Context:
    """Returns ctx as a context. function and sizes: for the error if ctx is the second of several sizes."""
    if ctx is None:
        return current_context()
    if isinstance(ctx, int) and sizes:
        raise _sizes_apart(function, sizes[0], ctx, *sizes[1:])
    return Context.of(ctx)


def _sizes_apart(function: str, *sizes: Any) -> ParamError:
    """Returns the error for ``zeros(2, 3)``."""
    shape = tuple(size for size in sizes if isinstance(size, int))
    return ParamError(
        f"{function}: shape",
        expected="one tuple of all sizes",
        given=f"{len(shape)} separate integers",
        because="the second argument is ctx, the device",
        fix=f"call {function}({shape})",
    )


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None, **unknown: NoReturn) -> NDArray:
    """Returns a new array with the values of a list, a NumPy array, a number or another array.

    dtype: float32 if None, or the dtype of an NDArray source. Raises TypeError for values that NumPy cannot convert.
    """
    if unknown:
        raise no_keyword(array, unknown)
    ctx = _context(ctx)
    if isinstance(source_array, NDArray):
        result = source_array.astype(dtype) if dtype is not None else source_array.copy()
        return result.as_in_context(ctx)
    if type(source_array) is np.ndarray and source_array.dtype.kind in "fiub":  # plain numbers: skips the checks below
        target = numpy_dtype(dtype)
        values = np.asarray(source_array, dtype=target, order="C")
        return _core.from_numpy_copy(values, target, ctx.device_typeid, ctx.device_id)
    if hasattr(source_array, "tocsr") and hasattr(source_array, "indptr"):  # a SciPy matrix
        from .sparse import array as sparse_array

        return sparse_array(source_array, ctx=ctx, dtype=dtype)
    target = numpy_dtype(dtype)
    if source_array is None:
        raise _no_numbers(source_array, "None has no elements")
    try:
        values = np.asarray(source_array, dtype=target, order="C")
    except HybridNetError:
        raise
    except (ValueError, TypeError) as problem:
        raise _no_numbers(source_array, str(problem)) from problem
    return _core.from_numpy_copy(values, target, ctx.device_typeid, ctx.device_id)


def _no_numbers(value: Any, because: str) -> HybridNetTypeError:
    expected = "numbers or nested sequences of numbers of equal length"
    if value is None:
        fix = "return or pass a value: the expression that made this one gave None"
    elif "inhomogeneous" in because or "sequence" in because:
        because = "rows have different lengths"  # NumPy's words for it depend on its version
        fix = "pad the rows to one length, or make an array of each row"
    else:
        fix = "replace text by numbers first, such as the index of each word"
    given = type(value).__name__
    return HybridNetTypeError("array", expected=expected, given=given, because=because, fix=fix)


def _check_sizes(function: str, shape: Any) -> None:
    """Raises ParamError for -1 as a size."""
    if isinstance(shape, (tuple, list)) and any(type(size) is int and size < 0 for size in shape):
        raise ParamError(
            f"{function}: shape",
            expected="sizes that are not negative",
            given=str(tuple(shape)),
            fix="give every size: -1 has a meaning in reshape only",
        )


def empty(
    shape: int | Sequence[int],
    ctx: Context | None = None,
    dtype: Any = None,
    stype: str | None = None,
    **unknown: NoReturn,
) -> NDArray:
    """Returns a new array with uninitialized values."""
    if unknown:
        raise no_keyword(empty, unknown)
    ctx = _context(ctx, "empty", shape, dtype, stype)
    if stype not in (None, "default"):
        from .sparse import empty as sparse_empty

        return sparse_empty(stype, shape, ctx, dtype)
    shape = tuple(shape) if isinstance(shape, np.ndarray) else shape
    return _core.empty(shape, numpy_dtype(dtype), ctx.device_typeid, ctx.device_id)


def zeros(
    shape: int | Sequence[int], ctx: Context | None = None, dtype: Any = None, stype: str | None = None, **kwargs: Any
) -> NDArray:
    """Returns a new array of zeros, float32 if dtype is None."""
    device = str(_context(ctx, "zeros", shape, dtype, stype))
    _check_sizes("zeros", shape)
    if stype not in (None, "default"):
        from .sparse import zeros as sparse_zeros

        return sparse_zeros(stype, shape, ctx, dtype)
    return _internal._zeros(shape=shape, ctx=device, dtype=dtype_name(dtype), **kwargs)


def ones(shape: int | Sequence[int], ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """Returns a new array of ones, float32 if dtype is None."""
    _check_sizes("ones", shape)
    return _internal._ones(shape=shape, ctx=str(_context(ctx, "ones", shape, dtype)), dtype=dtype_name(dtype), **kwargs)


def full(
    shape: int | Sequence[int],
    val: float,
    ctx: Context | None = None,
    dtype: Any = mx_real_t,
    out: NDArray | None = None,
    **unknown: NoReturn,
) -> NDArray:
    """Returns a new array (or out) filled with val."""
    if unknown:
        raise no_keyword(full, unknown)
    if out is None and isinstance(val, (int, np.integer)) and abs(int(val)) > 1 << 53:
        out = empty(shape, ctx, dtype)  # written as an integer: the operator's float cannot hold every int64
    if out is not None:
        out[...] = val
        return out
    return _internal._full(shape=shape, value=float(val), ctx=str(_context(ctx)), dtype=dtype_name(dtype))


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool | None = None,
    ctx: Context | None = None,
    dtype: Any = mx_real_t,
    **unknown: NoReturn,
) -> NDArray:
    """Returns start, start + step, ... below stop, each repeated ``repeat`` times; a single argument is the stop."""
    if unknown:
        raise no_keyword(arange, unknown)
    if stop is None and not infer_range:
        start, stop = 0, start
    return _internal._arange(
        start=start, stop=stop, step=step, repeat=repeat, infer_range=bool(infer_range), ctx=str(_context(ctx)),
        dtype=dtype_name(dtype),
    )  # fmt: skip


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    ctx: Context | None = None,
    dtype: Any = mx_real_t,
    **unknown: NoReturn,
) -> NDArray:
    """Returns num evenly spaced numbers from start to stop (included if endpoint is true)."""
    if unknown:
        raise no_keyword(linspace, unknown)
    return array(np.linspace(start, stop, num, endpoint), ctx, numpy_dtype(dtype))


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """Returns a matrix (N, M or N) of zeros with ones on diagonal k."""
    return _internal._eye(N=N, M=M, k=k, ctx=str(_context(ctx)), dtype=dtype_name(dtype), **kwargs)


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True, array_cls: type = NDArray) -> NDArray:
    """Returns an array over the memory of a C-contiguous NumPy array (zero_copy), or a copy of it.

    With zero_copy the NumPy array becomes read-only, because asynchronous operations read it later.
    """
    if not zero_copy:
        return array(ndarray, dtype=ndarray.dtype)
    if not ndarray.flags["C_CONTIGUOUS"]:
        raise HybridNetValueError("from_numpy: only C-contiguous arrays can be shared", fix="pass zero_copy=False")
    ndarray.flags["WRITEABLE"] = False
    shared = _core.from_numpy_shared(ndarray, ndarray.dtype)
    return shared if array_cls is NDArray else _core.retyped(shared, array_cls)


def from_dlpack(dlpack: Any) -> NDArray:
    """Returns an array over the memory of a DLPack capsule, or of an object with ``__dlpack__``, on the CPU or a GPU.

    The compute stream of the GPU follows the other library's work on it; for a capsule, on the legacy default stream.
    """
    if not hasattr(dlpack, "__dlpack__"):
        return _core.from_dlpack(dlpack)
    from ..cuda import _sharing

    return _core.from_dlpack(_sharing.capsule_for_us(dlpack), False)


def from_cupy(array: Any) -> NDArray:
    """Returns an array over the memory of a CuPy array, or of any object with ``__cuda_array_interface__``.

    The compute stream of the GPU follows the work on the array. Raises ValueError unless it is contiguous.
    """
    from ..cuda import _sharing

    return _sharing.from_cupy(array)


def to_dlpack_for_read(data: NDArray) -> Any:
    """Returns a DLPack capsule that shares data's memory; the consumer must only read."""
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """Returns a DLPack capsule that shares data's memory; the consumer may write."""
    return data.to_dlpack_for_write()


def waitall() -> None:
    """Waits until all pushed operations are done; raises the first failure."""
    _core.wait_all()


_core.set_array_converter(array)
