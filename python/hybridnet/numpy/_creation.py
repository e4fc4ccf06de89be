"""Functions that create arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as onp

from .. import _core
from .._keywords import no_keyword
from ..context import Context, current_context
from ..errors import HybridNetError
from ..errors import TypeError as HybridNetTypeError
from ..ndarray._dtypes import dtype_name, numpy_dtype
from ._operators import direct, np_operator, row_major
from .multiarray import ndarray

__all__ = [
    "arange", "array", "copy", "empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip


Device = Context | str | None


def _context(ctx: Device, device: Device = None) -> Context:
    """Returns ctx, or device (the name in the Array API standard); if neither is given, the current context."""
    ctx = device if ctx is None else ctx
    if ctx is None:
        return current_context()
    return ctx if isinstance(ctx, Context) else Context.from_str(ctx)


def _shape(shape: Any) -> tuple[int, ...]:
    if type(shape) is tuple:
        return shape
    return tuple(int(size) for size in shape) if isinstance(shape, (Sequence, onp.ndarray)) else (int(shape),)


def array(object: Any, dtype: Any = None, ctx: Context | None = None, **unknown: NoReturn) -> Any:
    """Returns a new array with the values of a list, a number, a NumPy array or another array.

    dtype: if None, the dtype of the source (arrays and numbers of this package and of NumPy), bool for bools, else
    float32. Raises TypeError for values that NumPy cannot convert.
    """
    if unknown:
        raise no_keyword(array, unknown)
    ctx = _context(ctx)
    if type(object) is onp.ndarray and object.dtype.kind in "fiub" and object.flags.c_contiguous:
        target = object.dtype if dtype is None else numpy_dtype(dtype)
        return _made(_core.from_numpy_copy(object.astype(target, copy=False), target, *_place(ctx)))
    if isinstance(object, _core.NDArrayBase):
        source = object if type(object) is ndarray else _core.retyped(object, ndarray)
        result = source.astype(dtype) if dtype is not None else source.copy()
        return result.as_in_ctx(ctx)
    try:
        given = getattr(object, "dtype", None) if dtype is None else dtype
        values = onp.asarray(_plain(object), dtype=None if given is None else numpy_dtype(given), order="C")
        target = values.dtype if given is not None or values.dtype == onp.bool_ else numpy_dtype(None)
        values = values.astype(target, copy=False)
    except HybridNetError:
        raise
    except (ValueError, TypeError) as problem:
        raise HybridNetTypeError(
            "np.array",
            expected="numbers or nested sequences of numbers of equal length",
            given=type(object).__name__,
            because=str(problem),
        ) from problem
    return _made(_core.from_numpy_copy(onp.ascontiguousarray(values).reshape(values.shape), target, *_place(ctx)))


def _plain(value: Any) -> Any:
    """Replaces arrays within sequences by NumPy arrays."""
    if isinstance(value, _core.NDArrayBase):
        return _core.asnumpy(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, (list, tuple, _core.NDArrayBase)) for v in value):
        return [_plain(item) for item in value]
    return value


def _place(ctx: Context) -> tuple[int, int]:
    return ctx.device_typeid, ctx.device_id


def _made(result: Any) -> ndarray:
    return _core.retyped(result, ndarray)


def empty(
    shape: Any, dtype: Any = onp.float32, order: str = "C", ctx: Context | None = None, *, device: Device = None
) -> ndarray:
    """Returns a new array with uninitialized values."""
    row_major("np.empty", order)
    return _made(_core.empty(_shape(shape), numpy_dtype(dtype), *_place(_context(ctx, device))))


def zeros(
    shape: Any, dtype: Any = None, order: str = "C", ctx: Context | None = None, *, device: Device = None
) -> ndarray:
    """Returns a new array of zeros, float32 if dtype is None."""
    row_major("np.zeros", order)
    return np_operator("_npi_zeros")(shape=_shape(shape), ctx=str(_context(ctx, device)), dtype=dtype_name(dtype))


def ones(
    shape: Any, dtype: Any = onp.float32, order: str = "C", ctx: Context | None = None, *, device: Device = None
) -> ndarray:
    """Returns a new array of ones, float32 if dtype is None."""
    row_major("np.ones", order)
    return np_operator("_npi_ones")(shape=_shape(shape), ctx=str(_context(ctx, device)), dtype=dtype_name(dtype))


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    ctx: Context | None = None,
    out: ndarray | None = None,
    *,
    device: Device = None,
) -> ndarray:
    """Returns a new array (or out) filled with fill_value, which is broadcast if it is an array.

    dtype: float32 if None, bool for a bool, that of fill_value if it is an array.
    """
    if type(fill_value) in (int, float) and type(shape) is tuple and out is None and order == "C":
        return _filled(shape, fill_value, dtype, ctx if device is None else _context(ctx, device))
    ctx = ctx if device is None else _context(ctx, device)
    row_major("np.full", order)
    if isinstance(fill_value, _core.SymbolBase):
        from ._rearranging import broadcast_to

        return broadcast_to(fill_value if dtype is None else fill_value.astype(dtype), _shape(shape))
    if isinstance(fill_value, (_core.NDArrayBase, onp.ndarray, list, tuple)) and onp.shape(_plain(fill_value)) != ():
        from ._rearranging import broadcast_to

        value = array(fill_value, dtype, ctx)
        result = broadcast_to(value, _shape(shape))
    else:
        number = fill_value.item() if hasattr(fill_value, "item") else fill_value
        if dtype is None:
            dtype = onp.bool_ if isinstance(number, bool) else None
        result = _filled(_shape(shape), number, dtype, ctx)
    if out is not None:
        out[...] = result
        return out
    return result


def _filled(shape: tuple[int, ...], number: float, dtype: Any, ctx: Context | None) -> ndarray:
    name, device = dtype_name(dtype), str(_context(ctx))
    if shape and all(shape):  # operators treat sizes of 0, and shape (), as unknown
        return np_operator("_npi_full")(shape=shape, value=number, ctx=device, dtype=name)
    result = np_operator("_npi_zeros")(shape=shape, ctx=device, dtype=name)
    return result if number == 0 else np_operator("_npi_full_like")(result, fill_value=number)


@direct("zeros_like")
def zeros_like(
    a: Any,
    dtype: Any = None,
    order: str = "C",
    ctx: Context | None = None,
    out: Any = None,
    *,
    device: Device = None,
) -> ndarray:
    """Returns an array of zeros with a's shape, and a's dtype if dtype is None."""
    return full_like(a, 0, dtype, order, ctx, out, device=device)


@direct("ones_like")
def ones_like(
    a: Any,
    dtype: Any = None,
    order: str = "C",
    ctx: Context | None = None,
    out: Any = None,
    *,
    device: Device = None,
) -> ndarray:
    """Returns an array of ones with a's shape, and a's dtype if dtype is None."""
    return full_like(a, 1, dtype, order, ctx, out, device=device)


def full_like(
    a: Any,
    fill_value: float,
    dtype: Any = None,
    order: str = "C",
    ctx: Context | None = None,
    out: Any = None,
    *,
    device: Device = None,
) -> ndarray:
    """Returns an array filled with fill_value, with a's shape and context, and a's dtype if dtype is None."""
    row_major("np.full_like", order)
    name = None if dtype is None else dtype_name(dtype)
    result = np_operator("_npi_full_like")(a, fill_value=fill_value, dtype=name, out=out)
    return result if device is None else result.to_device(device)


def empty_like(
    prototype: Any,
    dtype: Any = None,
    order: str = "C",
    subok: bool = False,
    shape: Any = None,
    *,
    device: Device = None,
) -> ndarray:
    """Returns an array with prototype's shape and uninitialized values."""
    row_major("np.empty_like", order)
    sizes = prototype.shape if shape is None else shape
    return empty(sizes, prototype.dtype if dtype is None else dtype, device=device)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: Any = None,
    ctx: Context | None = None,
    *,
    device: Device = None,
) -> ndarray:
    """Returns start, start + step, ... below stop; one argument is the stop value. float32 if dtype is None."""
    if stop is None:
        start, stop = 0, start
    if step is None:
        step = 1
    return np_operator("_npi_arange")(
        start=start, stop=stop, step=step, ctx=str(_context(ctx, device)), dtype=dtype_name(dtype)
    )


def copy(a: Any) -> ndarray:
    """Returns a new array with a's values."""
    return np_operator("_np_copy")(a)


_core.set_array_converter(lambda source, ctx, dtype: array(source, dtype, ctx), numpy=True)
