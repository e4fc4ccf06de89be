"""Comparison of arrays: tolerances by dtype, and failures that show position and size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ndarray import NDArray

_INTEGERS = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")
Tolerance = float | Mapping[Any, float] | None


def default_dtype() -> type:
    """Returns float32, the dtype of the random inputs."""
    return np.float32


def default_rtols() -> dict[np.dtype, float]:
    """Returns relative tolerances by dtype, as in MXNet's tests."""
    floats = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-5}
    return {np.dtype(name): value for name, value in {**floats, **dict.fromkeys(_INTEGERS, 0.0)}.items()}


def default_atols() -> dict[np.dtype, float]:
    """Returns absolute tolerances by dtype, as in MXNet's tests."""
    floats = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-20}
    return {np.dtype(name): value for name, value in {**floats, **dict.fromkeys(_INTEGERS, 0.0)}.items()}


def default_numeric_eps() -> dict[np.dtype, float]:
    """Returns step widths of finite differences by dtype: powers of two, so that adding one loses no bits."""
    return {np.dtype("float16"): 2.0**-6, np.dtype("float32"): 2.0**-9, np.dtype("float64"): 2.0**-14}


def effective_dtype(dat: Any) -> np.dtype:
    """Returns the dtype that has the precision of dat's values."""
    return np.dtype(dat.dtype)


def get_tolerance(dat: Any, tol: Tolerance, default_tol: Mapping[np.dtype, float]) -> float:
    """Returns tol if it is a number; else its entry for the dtype of dat, else that of default_tol."""
    if isinstance(tol, int | float | np.number):
        return float(tol)
    dtype = effective_dtype(dat)
    if tol is not None:
        given = {np.dtype(key): value for key, value in tol.items()}
        if dtype in given:
            return given[dtype]
    return default_tol.get(dtype, 0.0)


def get_tols(x: Any, y: Any, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """Returns (rtol, atol) for comparing x with y: those of the less precise of the two."""
    x, y = (value if hasattr(value, "dtype") else np.asarray(value) for value in (x, y))
    relative = max(get_tolerance(x, rtol, default_rtols()), get_tolerance(y, rtol, default_rtols()))
    return relative, max(get_tolerance(x, atol, default_atols()), get_tolerance(y, atol, default_atols()))


def get_rtol(rtol: float | None = None, dtype: Any = "float64") -> float:
    """Returns rtol, or the default of dtype."""
    return default_rtols()[np.dtype(dtype)] if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: Any = "float64") -> float:
    """Returns atol, or the default of dtype."""
    return default_atols()[np.dtype(dtype)] if atol is None else atol


def get_etol(etol: float | None = None) -> float:
    """Returns the fraction of elements that may disagree; 0 by default."""
    return 0.0 if etol is None else etol


def _numpy(value: Any) -> Any:
    return value.asnumpy() if isinstance(value, NDArray) else value


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have equal shapes and equal elements."""
    return bool(np.array_equal(_numpy(a), _numpy(b)))


def checkShapes(a: Any, b: Any) -> None:
    """Raises AssertionError if the shapes differ."""
    if a.shape != b.shape:
        raise AssertionError(f"shapes differ: {a.shape} and {b.shape}")


def almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether |a - b| <= atol + rtol * |b| everywhere."""
    a, b = _numpy(a), _numpy(b)
    if not use_broadcast:
        checkShapes(a, b)
    return bool(np.allclose(a, b, rtol=get_rtol(rtol), atol=get_atol(atol), equal_nan=equal_nan))


def _violations(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> np.ndarray:
    """Returns each difference as a multiple of its tolerance: above 1 is a mismatch."""
    wide = np.result_type(a.dtype, b.dtype, np.float64)
    a, b = np.broadcast_arrays(a.astype(wide), b.astype(wide))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        violation = np.where(a == b, 0.0, np.abs(a - b) / (atol + rtol * np.abs(b) + 1e-20))
    both_nan = np.isnan(a) & np.isnan(b)
    return np.where(np.isnan(violation), np.where(both_nan & equal_nan, 0.0, np.inf), violation)


def find_max_violation(
    a: Any, b: Any, rtol: float | None = None, atol: float | None = None
) -> tuple[tuple[int, ...], float]:
    """Returns (index, difference as a multiple of the tolerance) of the worst element."""
    violation = _violations(np.asarray(_numpy(a)), np.asarray(_numpy(b)), get_rtol(rtol), get_atol(atol), False)
    where = np.unravel_index(int(np.argmax(violation)), violation.shape)
    return tuple(int(i) for i in where), float(violation[where])


def _report(a: np.ndarray, b: np.ndarray, violation: np.ndarray, names: Sequence[str], limits: str, shown: int) -> str:
    wide_a, wide_b = np.broadcast_arrays(a, b)
    bad = int(np.count_nonzero(violation > 1))
    lines = [f"{names[0]} and {names[1]} differ in {bad} of {violation.size} elements ({limits})."]
    for flat in np.argsort(violation, axis=None)[::-1][: min(bad, max(shown, 1))]:
        at = tuple(int(i) for i in np.unravel_index(int(flat), violation.shape))
        lines.append(
            f"  at {at}: {names[0]} = {wide_a[at]!r}, {names[1]} = {wide_b[at]!r}, "
            f"{violation[at]:.3g} times the tolerance"
        )
    return "\n".join(lines)


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Raises AssertionError unless |a - b| <= atol + rtol * |b| everywhere.

    a, b: arrays of either kind, or numbers. rtol, atol: numbers, or mappings from dtypes to numbers; None takes the
    defaults of the less precise dtype. The message lists the worst ``mismatches[0]`` elements.
    """
    if not use_broadcast:
        checkShapes(a, b)
    relative, absolute = get_tols(a, b, rtol, atol)
    a, b = np.asarray(_numpy(a)), np.asarray(_numpy(b))
    if a.dtype == np.bool_ and b.dtype == np.bool_:
        np.testing.assert_equal(a, b)
        return
    if np.allclose(a, b, rtol=relative, atol=absolute, equal_nan=equal_nan):
        return
    violation = _violations(a, b, relative, absolute, equal_nan)
    limits = f"rtol={relative:g}, atol={absolute:g}"
    raise AssertionError(_report(a, b, violation, names, limits, mismatches[0]))


def assert_allclose(a: Any, b: Any, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True) -> None:
    """Same as :func:`assert_almost_equal`, with NumPy's tolerances."""
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    etol: float | None = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Same as :func:`assert_almost_equal`, but accepts a fraction of up to etol mismatching elements."""
    relative, absolute = get_tols(a, b, rtol, atol)
    left, right = np.asarray(_numpy(a)), np.asarray(_numpy(b))
    violation = _violations(left, right, relative, absolute, equal_nan)
    if np.count_nonzero(violation > 1) > get_etol(etol) * violation.size:
        limits = f"rtol={relative:g}, atol={absolute:g}, share {get_etol(etol):g} may differ"
        raise AssertionError(_report(left, right, violation, names, limits, mismatches[0]))


def assert_almost_equal_ignore_nan(
    a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None, names: Sequence[str] = ("a", "b")
) -> None:
    """Same as :func:`assert_almost_equal`, ignoring elements that are NaN in either array."""
    a, b = np.array(_numpy(a)), np.array(_numpy(b))
    unknown = np.isnan(a) | np.isnan(b)
    a[unknown] = b[unknown] = 0
    assert_almost_equal(a, b, rtol, atol, names)


def assert_exception(f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """Raises AssertionError unless f(*args, **kwargs) raises exception_type."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)} did not raise {exception_type.__name__}")


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Tolerance = None, atol: Tolerance = None) -> None:
    """Applies :func:`assert_almost_equal` to nested tuples; None on either side matches anything."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, tuple):
        for one, other in zip(t1, t2):
            compare_ndarray_tuple(one, other, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def same_array(array1: NDArray, array2: NDArray) -> bool:
    """Whether two arrays share memory: changes the first and checks whether the second has changed."""
    array1[:] += 1
    followed = same(array1, array2)
    array1[:] -= 1
    return followed and same(array1, array2)


def np_reduce(dat: np.ndarray, axis: Any, keepdims: bool, numpy_reduce_func: Callable[..., Any]) -> np.ndarray:
    """Applies numpy_reduce_func to one axis after the other; axis: None (all), an int, or several."""
    axes = tuple(range(dat.ndim)) if axis is None else tuple(np.atleast_1d(axis))
    axes = tuple(int(a) % dat.ndim for a in axes)
    result = dat
    for each in sorted(axes, reverse=True):
        result = numpy_reduce_func(result, axis=each)
    return np.reshape(result, [1 if i in axes else n for i, n in enumerate(dat.shape)]) if keepdims else result


def collapse_sum_like(a: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Sums a over the axes along which an array of the given shape would be broadcast to a."""
    shape = tuple(shape)
    lead = a.ndim - len(shape)
    if lead < 0 or any(n not in (1, a.shape[lead + i]) for i, n in enumerate(shape)):
        raise AssertionError(f"shape {shape} does not broadcast to {a.shape}")
    axes = tuple(range(lead)) + tuple(lead + i for i, n in enumerate(shape) if n != a.shape[lead + i])
    return np.sum(a, axis=axes, dtype=None if a.dtype.kind == "b" else a.dtype).reshape(shape)
