"""Reductions beyond sums and extremes: any, all, averages, percentiles, cumulative products, skipping NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as onp

from .. import _core
from ..errors import ParamError
from ..errors import TypeError as HybridNetTypeError
from ._calls import as_array, cast, choose, flat, is_float, is_number, name_of
from ._creation import array
from ._elementwise import ceil, equal, floor, less_equal, maximum, not_equal, rint
from ._manipulation import atleast_2d, diff, moveaxis, ndim, size
from ._operators import direct, np_operator, public_operator
from ._rearranging import concatenate, dot, expand_dims, stack, transpose
from ._reductions import argmax, argmin, max, mean, min, sum
from ._searching import searchsorted, sort, take_along_axis

__all__ = [
    "all", "alltrue", "any", "average", "bincount", "corrcoef", "count_nonzero", "cov", "cumprod", "cumsum",
    "histogram", "median", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian",
    "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "percentile", "ptp", "quantile",
    "sometrue", "trapezoid", "trapz",
]  # fmt: skip

Axis = int | Sequence[int] | None


# --------------------------------------------------------------------------------------------------------------- truth
def any(a: Any, axis: Axis = None, keepdims: bool = False, out: Any = None) -> Any:
    """Whether any element along axes is nonzero; bool."""
    return np_operator("_np_any")(a, axis=axis, keepdims=keepdims, out=out)


def all(a: Any, axis: Axis = None, keepdims: bool = False, out: Any = None) -> Any:
    """Whether all elements along axes are nonzero; bool."""
    return np_operator("_np_all")(a, axis=axis, keepdims=keepdims, out=out)


sometrue, alltrue = any, all


def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The number of nonzero elements along axes, int64."""
    return sum(not_equal(as_array(a), 0), axis=axis, keepdims=keepdims)


# ------------------------------------------------------------------------------------------------------------ averages
def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, out: Any = None) -> Any:
    """Weighted mean over axes; with returned also the sum of the weights."""
    inputs = [as_array(a)] if weights is None else [as_array(a), as_array(weights)]
    found = np_operator("_npi_average")(
        *inputs, axis=axis, weighted=weights is not None, returned=returned, out=out if not returned else None
    )
    return tuple(found) if returned else found


def percentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool | None = None,
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Percentiles along axes, interpolated between neighboring elements if needed.

    The axes of q come first. interpolation: 'linear', 'lower', 'higher', 'nearest' or 'midpoint'. The result is NaN if
    an element is. Raises ParamError for q outside [0, 100], ShapeError for no elements.
    """
    options = {"axis": axis, "interpolation": interpolation, "keepdims": keepdims, "out": out}
    if is_number(q):
        return np_operator("_npi_percentile")(as_array(a), q_scalar=float(q), **options)
    if not isinstance(q, (_core.NDArrayBase, _core.SymbolBase)):
        q = array(q, "float64")
    return np_operator("_npi_percentile")(as_array(a), q, **options)


def quantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool | None = None,
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Like :func:`percentile`, for q in [0, 1]."""
    if isinstance(q, (_core.NDArrayBase, _core.SymbolBase)):
        percent = np_operator("_npi_cast")(q, dtype="float64") * 100
    else:
        percent = q * 100.0 if is_number(q) else onp.asarray(q, "float64") * 100
    return percentile(a, percent, axis, out, overwrite_input, interpolation, keepdims)


def median(
    a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool | None = None, keepdims: bool = False
) -> Any:
    """The middle element along axes, or the mean of the middle two."""
    return percentile(a, 50.0, axis, out, overwrite_input, "midpoint", keepdims)


def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """The largest element along axes minus the smallest."""
    a = as_array(a)
    return np_operator("_npi_subtract")(max(a, axis, keepdims), min(a, axis, keepdims), out=out)


# --------------------------------------------------------------------------------------------------------- cumulative
@direct("_np_cumsum", "axis dtype out")
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative sum along an axis, of the flattened array if axis is None."""
    return np_operator("_np_cumsum")(a, axis=axis, dtype=name_of(dtype), out=out)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative product along an axis, of the flattened array if axis is None.

    int64 for integers unless dtype is given.
    """
    a = as_array(a)
    if dtype is not None or not is_float(a):
        a = cast(a, dtype or "int64")
    a, axis = (flat(a), 0) if axis is None else (a, axis)
    part, step = np_operator("slice_axis"), 1
    while step < a.shape[axis]:  # each element holds the product of the last `step` elements
        behind = part(a, axis=axis, begin=step, end=None) * part(a, axis=axis, begin=0, end=-step)
        a = concatenate([part(a, axis=axis, begin=0, end=step), behind], axis=axis)
        step *= 2
    return np_operator("_np_copy")(a, out=out)


# ------------------------------------------------------------------------------------------------------------ counting
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Counts each number in a vector of integers, int64; or sums the weights per number.

    Raises TypeError for floats, IndexError for negative numbers.
    """
    x = as_array(x)
    if is_float(x) and not isinstance(x, _core.SymbolBase):
        raise HybridNetTypeError("np.bincount: x", expected="integers", given=str(onp.dtype(x.dtype)))
    inputs = [x] if weights is None else [x, as_array(weights)]
    return np_operator("_npi_bincount")(*inputs, minlength=minlength, has_weights=weights is not None)


def _span(a: Any) -> tuple[float, float]:
    """The range of the bins of an array: the range of its values, or one unit around the only value."""
    if size(a) == 0:
        return 0.0, 1.0
    low, high = float(min(a)), float(max(a))
    if not (onp.isfinite(low) and onp.isfinite(high)):
        raise ParamError("np.histogram: a", expected="finite values", given=f"values from {low} to {high}")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, normed: bool | None = None, weights: Any = None, density: Any = None
) -> tuple[Any, Any]:
    """Returns the counts of the values in each bin, and the edges of the bins; the last bin includes its upper edge.

    bins: their number (range: first and last edge), ascending edges, or the name of one of NumPy's rules. weights:
    summed instead of counts. density (normed): as values of a density over the bins.
    """
    a = as_array(a)
    a = a if is_float(a) else cast(a, "float32" if onp.dtype(a.dtype).itemsize < 4 else "float64")
    if isinstance(bins, str):
        bins = array(onp.histogram_bin_edges(a.asnumpy(), bins, range), "float64")
    if is_number(bins):
        low, high = _span(a) if range is None else (float(range[0]), float(range[1]))
        if bins < 1 or low > high:
            raise ParamError("np.histogram", expected="bins and a rising range", given=f"{bins}, {(low, high)}")
        if low == high:
            low, high = low - 0.5, high + 0.5
        counts, edges = np_operator("_npi_histogram")(a, bin_cnt=int(bins), range=(low, high))
    else:
        edges = as_array(bins)
        counts, edges = np_operator("_npi_histogram")(a, edges)
    if weights is not None:
        counts = _weighed(flat(a), edges, flat(as_array(weights)))
    if density or normed:
        counts = counts / (sum(counts) * diff(edges))
    return counts, edges


def _weighed(values: Any, edges: Any, weights: Any) -> Any:
    """Sums weights per bin; bin 0 and the last hold values outside the range and are dropped."""
    count = edges.shape[0] - 1
    place = searchsorted(edges, values, side="right")
    place = choose(equal(values, edges[-1]), place * 0 + count, place)
    return bincount(place, weights, minlength=count + 2)[1 : count + 1]


# -------------------------------------------------------------------------------------------------------- without NaN
def _without_nan(a: Any, value: float) -> tuple[Any, Any]:
    """Returns the array with NaN replaced by a value, and the NaN mask; the mask is None for integers."""
    a = as_array(a)
    if not is_float(a):
        return a, None
    missing = not_equal(a, a)
    return choose(missing, value, a), missing


nansum = public_operator("nansum", "_npi_nansum", "axis dtype out keepdims")
nanprod = public_operator("nanprod", "_npi_nanprod", "axis dtype out keepdims")


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative sum with NaN as 0; int64 for integers unless dtype is given."""
    numbers, missing = _without_nan(a, 0)
    return cumsum(numbers, axis=axis, dtype=dtype or (None if missing is not None else "int64"), out=out)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """Cumulative product with NaN as 1; int64 for integers unless dtype is given."""
    return cumprod(_without_nan(a, 1)[0], axis=axis, dtype=dtype, out=out)


def _extreme(a: Any, axis: Axis, keepdims: bool, reduce: Callable[..., Any], least: float) -> Any:
    filled, missing = _without_nan(a, least)
    found = reduce(filled, axis=axis, keepdims=keepdims)
    if missing is None:
        return found
    return choose(all(missing, axis=axis, keepdims=keepdims), float("nan"), found)


def nanmax(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Largest element over axes that is not NaN; NaN if all are."""
    return np_operator("_np_copy")(_extreme(a, axis, keepdims, max, float("-inf")), out=out)


def nanmin(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False) -> Any:
    """Smallest element over axes that is not NaN; NaN if all are."""
    return np_operator("_np_copy")(_extreme(a, axis, keepdims, min, float("inf")), out=out)


def nanargmax(a: Any, axis: int | None = None) -> Any:
    """Position of the largest element that is not NaN; int64. 0 if all are NaN."""
    return argmax(_without_nan(a, float("-inf"))[0], axis=axis)


def nanargmin(a: Any, axis: int | None = None) -> Any:
    """Position of the smallest element that is not NaN; int64. 0 if all are NaN."""
    return argmin(_without_nan(a, float("inf"))[0], axis=axis)


def _present(a: Any, missing: Any, axis: Axis, keepdims: bool) -> Any:
    """The number of elements that are not NaN, in a's dtype."""
    return sum(cast(equal(missing, False), a.dtype), axis=axis, keepdims=keepdims)


def nanmean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Mean over axes of the elements that are not NaN."""
    a = as_array(a) if dtype is None else cast(as_array(a), dtype)
    filled, missing = _without_nan(a, 0)
    if missing is None:
        return mean(a, axis=axis, keepdims=keepdims, out=out)
    total, count = sum(filled, axis=axis, keepdims=keepdims), _present(a, missing, axis, keepdims)
    return np_operator("_npi_true_divide")(total, count, out=out)


def nanvar(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """Variance over axes of the elements that are not NaN; the divisor is their number minus ddof."""
    a = as_array(a) if dtype is None else cast(as_array(a), dtype)
    a = a if is_float(a) else cast(a, "float32")
    filled, missing = _without_nan(a, 0)
    deviation = choose(missing, 0, filled - nanmean(a, axis, keepdims=True))
    left = _present(a, missing, axis, keepdims) - ddof
    left = choose(less_equal(left, 0), float("nan"), left)
    return np_operator("_npi_true_divide")(sum(deviation * deviation, axis=axis, keepdims=keepdims), left, out=out)


def nanstd(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """Standard deviation over axes of the elements that are not NaN."""
    return np_operator("_npi_sqrt")(nanvar(a, axis, dtype, None, ddof, keepdims), out=out)


def _merged(a: Any, axis: Axis) -> tuple[Any, tuple[int, ...]]:
    """Merges the reduced axes into one, last; also returns the shape for keepdims."""
    rank = ndim(a)
    axes = tuple(i % rank for i in (axis if isinstance(axis, Sequence) else (axis,))) if axis is not None else None
    axes = tuple(i for i in onp.arange(rank).tolist()) if axes is None else axes
    kept = tuple(1 if i in axes else n for i, n in enumerate(a.shape))
    rest = tuple(i for i in onp.arange(rank).tolist() if i not in axes)
    sizes = tuple(a.shape[i] for i in rest)
    moved = transpose(a, (*rest, *axes)) if rank > 1 else a
    return np_operator("_np_reshape")(moved, newshape=(*sizes, int(onp.prod([a.shape[i] for i in axes])))), kept


def nanquantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool | None = None,
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Like :func:`quantile`, of the elements that are not NaN; NaN if all are."""
    a = as_array(a)
    a = a if is_float(a) else cast(a, "float32")
    merged, kept = _merged(a, axis)
    count = sum(equal(merged, merged), axis=-1, keepdims=True)
    ordered = sort(merged, axis=-1)
    shares = onp.asarray(q.asnumpy() if isinstance(q, _core.NDArrayBase) else q, "float64")
    if shares.size and not (shares.min() >= 0 and shares.max() <= 1):
        raise ParamError("np.nanquantile: q", expected="numbers from 0 to 1", given=str(shares.tolist()))
    found = [_ranked(ordered, count, float(share), interpolation) for share in shares.reshape(-1)]
    found = [f.reshape(kept) if keepdims else np_operator("_np_squeeze")(f, axis=(-1,)) for f in found]
    result = found[0] if shares.ndim == 0 else stack(found)
    if shares.ndim > 1:
        result = result.reshape((*shares.shape, *found[0].shape))
    return np_operator("_np_copy")(result, out=out)


def _ranked(ordered: Any, count: Any, share: float, interpolation: str) -> Any:
    """Returns the element at a fraction of the first `count` elements of the last axis, which is kept."""
    last = maximum(count - 1, 0)
    at = cast(last, "float64") * share
    low, high = floor(at), ceil(at)
    rounds = {"lower": low, "higher": high, "nearest": rint(at)}
    if interpolation in rounds:
        return take_along_axis(ordered, cast(rounds[interpolation], "int64"), -1)
    if interpolation not in ("linear", "midpoint"):
        raise ParamError(
            "interpolation", expected="linear, lower, higher, nearest or midpoint", given=repr(interpolation)
        )
    below = take_along_axis(ordered, cast(low, "int64"), -1)
    above = take_along_axis(ordered, cast(high, "int64"), -1)
    part = cast(at - low, ordered.dtype) if interpolation == "linear" else cast((high - low) * 0.5, ordered.dtype)
    step = above - below
    # The difference of infinities is NaN: they are weighted separately, and a weight of 0 ignores them.
    between = choose(equal(step * 0, 0), below + step * part, below * (1 - part) + above * part)
    return choose(equal(part, 0), below, choose(equal(below, above), below, between))


def nanpercentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool | None = None,
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Like :func:`percentile`, of the elements that are not NaN; NaN if all are."""
    shares = onp.asarray(q.asnumpy() if isinstance(q, _core.NDArrayBase) else q, "float64") / 100
    return nanquantile(a, shares, axis, out, overwrite_input, interpolation, keepdims)


def nanmedian(
    a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool | None = None, keepdims: bool = False
) -> Any:
    """Like :func:`median`, of the elements that are not NaN; NaN if all are."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "linear", keepdims)


# --------------------------------------------------------------------------------------------- several variables, areas
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    """Covariance matrix of variables in rows (or, with rowvar=False, in columns).

    ddof: 1 if None, 0 with bias. fweights: the number of times that each observation counts; aweights: their weights.
    """
    if ddof is not None and ddof != int(ddof):
        raise ParamError("np.cov: ddof", expected="an integer", given=str(ddof))
    x = _variables(m, rowvar)
    if y is not None:
        x = concatenate([x, _variables(y, rowvar)], axis=0)
    x = x if is_float(x) else cast(x, "float32")
    freedom = ddof if ddof is not None else (0 if bias else 1)
    weights = [as_array(w) for w in (fweights, aweights) if w is not None]
    if not weights:
        centered = x - mean(x, axis=1, keepdims=True)
        return _squeezed(dot(centered, transpose(centered)) / _at_least_0(x.shape[1] - freedom))
    weight = cast(weights[0] * weights[1] if len(weights) == 2 else weights[0], x.dtype)
    total = sum(weight)
    centered = x - expand_dims(dot(x, weight) / total, 1)
    lost = sum(weight * cast(as_array(aweights), x.dtype)) / total if aweights is not None else 1
    return _squeezed(dot(centered * weight, transpose(centered)) / (total - lost * freedom))


def _at_least_0(number: int) -> int:
    return number if number > 0 else 0


def _variables(m: Any, rowvar: bool) -> Any:
    m = atleast_2d(as_array(m))
    return m if rowvar or m.shape[0] == 1 else transpose(m)


def _squeezed(matrix: Any) -> Any:
    return matrix if matrix.shape != (1, 1) else np_operator("_np_reshape")(matrix, newshape=())


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    """Correlation coefficients of variables: covariances over the product of standard deviations."""
    from ._grids import diag

    c = cov(x, y, rowvar)
    if ndim(c) == 0:
        return c / c
    deviation = np_operator("_npi_sqrt")(diag(c))
    found = c / expand_dims(deviation, 1) / expand_dims(deviation, 0)
    return np_operator("clip")(found, a_min=-1, a_max=1)


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """Integrates y by the trapezoidal rule, at positions x or at distance dx."""
    y = as_array(y)
    y = moveaxis(y if is_float(y) else cast(y, "float32"), axis, -1)
    part = np_operator("slice_axis")
    heights = part(y, axis=-1, begin=1, end=None) + part(y, axis=-1, begin=0, end=-1)
    if x is None:
        return sum(heights, axis=-1) * (0.5 * dx)
    x = as_array(x)
    widths = diff(x if ndim(x) == 1 else moveaxis(x, axis, -1))
    return sum(heights * widths, axis=-1) * 0.5


trapz = trapezoid
