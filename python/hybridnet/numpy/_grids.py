"""Sequences, windows, grids of indices, diagonals and triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from ..context import Context
from ..errors import ParamError
from ..ndarray._dtypes import dtype_name
from ._calls import as_array, as_parts, cast, choose, common, flat, is_float, is_number
from ._creation import Device, _context, _shape, array, ones
from ._manipulation import broadcast_arrays, moveaxis, ndim, repeat
from ._operators import direct, np_operator
from ._rearranging import concatenate, expand_dims, reshape

__all__ = [
    "blackman", "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "eye", "fromfunction", "hamming",
    "hanning", "identity", "indices", "interp", "ix_", "linspace", "logspace", "mask_indices", "meshgrid", "polyval",
    "ravel_multi_index", "tri", "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices",
    "triu_indices_from", "unravel_index", "vander",
]  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- sequences
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    ctx: Context | None = None,
    *,
    device: Device = None,
) -> Any:
    """Returns num evenly spaced values from start to stop; with retstep also the step. float32 if dtype is None.

    Arrays as start and stop broadcast; their values run along axis.
    """
    if num < 0:
        raise ParamError("np.linspace: num", expected="a number of at least 0", given=str(num))
    gaps = num - 1 if endpoint else num
    if is_number(start) and is_number(stop):
        result = np_operator("_npi_linspace")(
            start=start, stop=stop, num=num, endpoint=endpoint, ctx=str(_context(ctx, device)), dtype=dtype_name(dtype)
        )
        step = (stop - start) / gaps if gaps > 0 else float("nan")
    else:
        first, last = broadcast_arrays(start, stop)
        step = (last - first) / max(gaps, 1)
        steps = reshape(linspace(0, gaps, num + (not endpoint))[:num], (-1, *(1,) * ndim(first)))
        result = moveaxis(expand_dims(first, 0) + steps * expand_dims(step, 0), 0, axis)
        result = result if dtype is None else cast(result, dtype)
    return (result, step) if retstep else result


def logspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    axis: int = 0,
    ctx: Context | None = None,
) -> Any:
    """Returns num powers of base with evenly spaced exponents from start to stop. float32 if dtype is None."""
    if is_number(start) and is_number(stop):
        return np_operator("_npi_logspace")(
            start=start, stop=stop, num=num, endpoint=endpoint, base=base,
            ctx=str(_context(ctx)), dtype=dtype_name(dtype),
        )  # fmt: skip
    from ._elementwise import power

    result = power(base, linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else cast(result, dtype)


def _window(name: str, formula: str) -> Callable[..., Any]:
    def window(M: int, dtype: Any = onp.float32, ctx: Context | None = None) -> Any:
        return np_operator(f"_npi_{name}")(M=int(M), dtype=dtype_name(dtype), ctx=str(_context(ctx)))

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"A window of M values, {formula} for i in 0 ... M - 1; none if M is below 1."
    return window


hanning = _window("hanning", "0.5 - 0.5 cos(2 pi i / (M - 1))")
hamming = _window("hamming", "0.54 - 0.46 cos(2 pi i / (M - 1))")
blackman = _window("blackman", "0.42 - 0.5 cos(2 pi i / (M - 1)) + 0.08 cos(4 pi i / (M - 1))")


# --------------------------------------------------------------------------------------------------------------- grids
def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = onp.float32, *, device: Device = None, **kwargs: Any
) -> Any:
    """Returns an N x M matrix of zeros with ones on diagonal k; M: N if None."""
    ctx = kwargs.pop("ctx", None)
    if kwargs.pop("order", "C") not in ("C", "K", "A") or kwargs:
        raise ParamError("np.eye", expected="the keywords ctx and order='C'", given=", ".join(kwargs) or "order")
    return np_operator("_npi_eye")(N=N, M=M, k=k, dtype=dtype_name(dtype), ctx=str(_context(ctx, device)))


def identity(n: int, dtype: Any = None, ctx: Context | None = None) -> Any:
    """Returns the identity matrix of n rows, float32 if dtype is None."""
    return np_operator("_npi_identity")(shape=(n, n), dtype=dtype_name(dtype), ctx=str(_context(ctx)))


def indices(dimensions: Any, dtype: Any = onp.int32, ctx: Context | None = None) -> Any:
    """Returns the indices of every element of a grid: (number of axes, *dimensions)."""
    return np_operator("_npi_indices")(dimensions=_shape(dimensions), dtype=dtype_name(dtype), ctx=str(_context(ctx)))


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = onp.float32, **kwargs: Any) -> Any:
    """Returns function applied to the indices of a grid of this shape."""
    return function(*indices(shape, dtype), **kwargs)


def meshgrid(*xi: Any, indexing: str = "xy", **kwargs: Any) -> list[Any]:
    """Returns vectors as coordinates of a grid, one array each.

    indexing: 'xy' (the first two axes exchanged, the default) or 'ij'. sparse: keep sizes of 1. copy has no effect.
    """
    sparse = kwargs.pop("sparse", False)
    kwargs.pop("copy", None)
    if indexing not in ("xy", "ij") or kwargs:
        given = f"indexing={indexing!r}" if indexing not in ("xy", "ij") else ", ".join(kwargs)
        raise ParamError("np.meshgrid", expected="indexing 'xy' or 'ij', sparse and copy", given=given)
    rank = len(xi)
    grids = []
    for i, x in enumerate(as_parts(xi)):
        at = 1 - i if indexing == "xy" and rank > 1 and i < 2 else i
        grids.append(reshape(x, tuple(-1 if j == at else 1 for j in range(rank))))
    return grids if sparse else list(broadcast_arrays(*grids))


def ix_(*args: Any) -> tuple[Any, ...]:
    """Reshapes vectors so that together they index a grid. Bool vectors select the positions that are true."""
    result = []
    for i, vector in enumerate(as_parts(args)):
        if ndim(vector) != 1:
            raise ParamError("np.ix_", expected="vectors", given=f"shape {tuple(vector.shape)}")
        if onp.dtype(vector.dtype) == bool:
            vector = flat(np_operator("_npx_nonzero")(vector))
        result.append(reshape(vector, tuple(-1 if j == i else 1 for j in range(len(args)))))
    return tuple(result)


def _rows(matrix: Any, count: int) -> tuple[Any, ...]:
    return tuple(matrix[i] for i in range(count))


@direct("_npi_unravel_index", "shape", needed=1, as_tuple=True)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Converts positions in a flat array of this shape to one array of indices per axis."""
    if order != "C":
        raise ParamError("np.unravel_index: order", expected="'C'", given=repr(order))
    if shape == ():
        return ()
    sizes = _shape(shape)
    found = np_operator("_npi_unravel_index")(as_array(indices), shape=sizes)
    if type(found) is list:
        return tuple(found)
    return (found,) if len(sizes) == 1 else tuple(found[i] for i in range(len(sizes)))


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C") -> Any:
    """Converts indices, one array per axis, to positions in a flat array of this shape.

    mode: 'wrap' and 'clip' bring indices into range; 'raise' does not check them.
    """
    from ._elementwise import maximum, minimum, mod
    from ._rearranging import stack

    if order != "C" or mode not in ("raise", "wrap", "clip"):
        raise ParamError(
            "np.ravel_multi_index", expected="order 'C', mode raise, wrap or clip", given=f"{order} {mode}"
        )
    sizes = _shape(dims)
    rows = as_parts(multi_index)
    if mode == "wrap":
        rows = [mod(row, n) for row, n in zip(rows, sizes, strict=True)]
    elif mode == "clip":
        rows = [minimum(maximum(row, 0), n - 1) for row, n in zip(rows, sizes, strict=True)]
    return np_operator("_ravel_multi_index")(stack(rows), shape=sizes)


# ------------------------------------------------------------------------------------------------------------ diagonals
@direct("_np_diag", "k")
def diag(array: Any, k: int = 0) -> Any:
    """Returns diagonal k of a matrix, or a matrix with a vector on diagonal k."""
    return np_operator("_np_diag")(array, k=k)


def diagflat(array: Any, k: int = 0) -> Any:
    """Returns a matrix with all elements of an array on diagonal k."""
    return np_operator("_np_diagflat")(array, k=k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Returns the diagonals over two axes, as the last axis."""
    return np_operator("_np_diagonal")(a, offset=offset, axis1=axis1, axis2=axis2)


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array with ndim axes of size n."""
    return tuple(array(index, "int64") for index in onp.diag_indices(n, ndim))


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array whose axes are of one size."""
    return _rows(np_operator("_npi_diag_indices_from")(arr), ndim(arr))


def tril(m: Any, k: int = 0) -> Any:
    """Returns the elements on and below diagonal k of the last two axes, others 0."""
    return np_operator("_npi_tril")(m, k=k)


def triu(m: Any, k: int = 0) -> Any:
    """Returns the elements on and above diagonal k of the last two axes, others 0."""
    return np_operator("_npi_triu")(m, k=k)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = onp.float32, ctx: Context | None = None) -> Any:
    """Returns an N x M matrix with ones on and below diagonal k, others 0."""
    return tril(ones((N, N if M is None else M), dtype, ctx=ctx), k)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, ...]:
    """Returns the indices of an n x m matrix on and below diagonal k."""
    return tuple(array(index, "int64") for index in onp.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, ...]:
    """Returns the indices of an n x m matrix on and above diagonal k."""
    return tuple(array(index, "int64") for index in onp.triu_indices(n, k, m))


def _matrix_sizes(function: str, arr: Any) -> tuple[int, int]:
    if ndim(arr) != 2:
        raise ParamError(f"np.{function}: arr", expected="a matrix", given=f"shape {tuple(arr.shape)}")
    return arr.shape[0], arr.shape[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    """Returns the indices of a matrix on and below diagonal k."""
    rows, columns = _matrix_sizes("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, ...]:
    """Returns the indices of a matrix on and above diagonal k."""
    rows, columns = _matrix_sizes("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0) -> tuple[Any, ...]:
    """Returns the indices of an n x n matrix at which mask_func(matrix of ones, k) is nonzero."""
    rows = np_operator("_npx_nonzero")(mask_func(ones((n, n)), k))
    return rows[:, 0], rows[:, 1]


# ------------------------------------------------------------------------------------------- polynomials, interpolation
def polyval(p: Any, x: Any) -> Any:
    """Evaluates the polynomial with coefficients p, highest power first, at x."""
    return np_operator("_npi_polyval")(as_array(p), as_array(x))


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Returns a matrix whose N columns are the powers of a vector, descending or increasing."""
    from ._statistics import cumprod

    x = as_array(x)
    if ndim(x) != 1:
        raise ParamError("np.vander: x", expected="a vector", given=f"shape {tuple(x.shape)}")
    count = x.shape[0] if N is None else N
    column = expand_dims(x, 1)
    if count <= 0:
        return column[:, :0]
    one = np_operator("_npi_full_like")(column, fill_value=1)
    powers = cumprod(concatenate([one, repeat(column, max(count - 1, 0), axis=1)], axis=1), axis=1)
    return powers if increasing else np_operator("_npi_flip")(powers, axis=(1,))


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None) -> Any:
    """Linear interpolation: evaluates at x the piecewise linear function through the points (xp, fp); xp ascends.

    left, right: values outside the points; None: the first and the last. period: of x and xp; xp need not ascend then.
    Differentiable with respect to x, xp and fp.
    """
    from ._elementwise import greater, less, maximum, minimum, mod, not_equal
    from ._searching import argsort, searchsorted, take

    x, xp, fp = (a if is_float(a) else cast(a, "float32") for a in common(*as_parts([x, xp, fp])))
    if ndim(xp) != 1 or tuple(xp.shape) != tuple(fp.shape) or xp.shape[0] == 0:
        raise ParamError(
            "np.interp: xp, fp",
            expected="vectors of one size above 0",
            given=f"shapes {tuple(xp.shape)} and {tuple(fp.shape)}",
        )
    if period is not None:
        period = float(abs(period))
        if period == 0:
            raise ParamError("np.interp: period", expected="a number that is not 0", given="0")
        x, xp = mod(x, period), mod(xp, period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
        left = right = None
    last = xp.shape[0] - 1
    if last == 0:
        result = x * 0 + fp[0]
    else:
        low = minimum(maximum(searchsorted(xp, x, side="right") - 1, 0), last - 1)
        x0, f0 = take(xp, low), take(fp, low)
        inside = minimum(maximum(x, xp[0]), xp[-1])
        result = f0 + (take(fp, low + 1) - f0) * ((inside - x0) / (take(xp, low + 1) - x0))
    for value, outside in ((left, less(x, xp[0])), (right, greater(x, xp[-1]))):
        if value is not None:
            result = choose(outside, float(value), result)
    return choose(not_equal(x, x), x + result * 0, result)
