"""Results of operators on values with errors and derivatives: NumPy in float64, rounded to the dtype of the result."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .memory import EPSILON, LARGEST, SIGN_OF_ZERO, Unclear, Value, certain, checked, constant, rounded, with_rank

Number = float | int
Operand = Value | Number


def common_dtype(values: Sequence[Value]) -> np.dtype:
    """The common dtype of arrays of mx.np."""
    dtypes = [value.dtype for value in values]
    floats = [dtype for dtype in dtypes if dtype.kind == "f"]
    return max(floats, key=lambda dtype: dtype.itemsize) if floats else np.dtype(np.result_type(*dtypes))


def wide(value: Value) -> np.ndarray:
    return value.data.astype(np.float64)


def _times(partial: np.ndarray, error: np.ndarray) -> np.ndarray:
    return np.where(error == 0, 0, np.maximum(np.abs(partial) * error, SIGN_OF_ZERO))


def combined(
    shape: tuple[int, ...], terms: Sequence[tuple[np.ndarray | float, np.ndarray | None]], flat: float = 0
) -> Any:
    """Returns the slope of a result from partial derivatives and slopes of operands; None if all are constant."""
    total: Any = None
    for partial, slope in terms:
        if slope is None:
            continue
        if not np.all(np.isfinite(partial)):
            raise Unclear("a derivative that is not finite")
        spread = with_rank(slope, len(shape))
        part = np.empty((*slope.shape[:2], *shape))
        part[0] = partial * spread[0]
        part[1] = (np.abs(partial) + flat) * spread[1]
        total = part if total is None else total + part
    return total


def pointwise(
    operands: Sequence[Operand],
    dtype: np.dtype,
    function: Callable[..., Any],
    partials: Callable[..., Sequence[Any]] | None = None,
    *,
    ulps: float = 0,
    flat: float = 0,
    jump: Callable[..., Any] | None = None,
    loose: Callable[..., Any] | None = None,
) -> Value:
    """Computes an elementwise operator.

    function: computes on arrays, in float64 for floating results and in the dtype for others. partials: derivatives by
    each operand. jump: distance to the next jump of the function or its derivative. loose: where the sign of a zero is
    undetermined. flat: error of derivatives that are computed as a difference, such as 1 - y * y.
    """
    arrays = [operand if isinstance(operand, Value) else constant(operand, dtype) for operand in operands]
    if dtype.kind != "f":
        data = function(*(array.data.astype(dtype) for array in arrays))
        data = np.asarray(data).astype(dtype)
        return Value(data, np.zeros(data.shape))
    numbers = [wide(array) for array in arrays]
    result = np.asarray(function(*numbers), dtype=np.float64)
    errors = [array.error for array in arrays]
    slopes = [array.slope for array in arrays]
    if jump is not None:
        _check_jump(jump(*numbers), errors, any(slope is not None for slope in slopes))
    error = np.zeros(result.shape)
    slope = None
    if partials is not None and (any(slope is not None for slope in slopes) or any(np.any(e > 0) for e in errors)):
        derivatives = [np.asarray(partial, dtype=np.float64) for partial in partials(*numbers)]
        for partial, own in zip(derivatives, errors, strict=True):
            error = error + _times(partial, own)
        slope = combined(result.shape, list(zip(derivatives, slopes, strict=True)), flat)
    error = np.broadcast_to(error, result.shape)
    if loose is not None:
        error = np.where((result == 0) & loose(*numbers) & (error == 0), SIGN_OF_ZERO, error)
    made = rounded(result, dtype, error, ulps)
    made.slope = slope
    return made


def _check_jump(distance: np.ndarray, errors: list[np.ndarray], differentiated: bool) -> None:
    error = certain(np.asarray(sum(errors[1:], errors[0])))
    close = np.asarray(distance) <= 4 * error
    if np.any(close & (error > 0)) or (differentiated and np.any(np.asarray(distance) <= 4 * error)):
        raise Unclear("close to a jump")


def compare(operands: Sequence[Operand], dtype: np.dtype, function: Callable[..., Any]) -> Value:
    """Compares operands, in float64 or, for integers, exactly; the result is ones and zeros of a dtype."""
    arrays = [operand if isinstance(operand, Value) else None for operand in operands]
    known = [array for array in arrays if array is not None]
    meet = common_dtype(known)
    values = [
        (array.data.astype(meet) if array is not None else np.asarray(operand, dtype=meet))
        for array, operand in zip(arrays, operands, strict=True)
    ]
    error = certain(np.asarray(sum((array.error for array in known[1:]), known[0].error)))
    if np.any(error > 0):
        distance = np.abs(values[0].astype(np.float64) - values[1].astype(np.float64))
        if np.any((error > 0) & (distance <= 4 * error)):
            raise Unclear("close to a jump")
    return constant(function(*values), dtype)


def select(condition: Value, yes: Operand, no: Operand, dtype: np.dtype) -> Value:
    """Computes where(condition, yes, no)."""
    arrays = [operand if isinstance(operand, Value) else constant(operand, dtype) for operand in (yes, no)]
    if np.any(certain(condition.error) > 0):
        raise Unclear("a rounded condition")
    test = condition.data != 0
    shape = np.broadcast_shapes(test.shape, *(array.shape for array in arrays))
    cast_arrays = [array.data.astype(dtype) for array in arrays]
    if dtype == np.float16 or any(array.dtype == np.float64 and dtype != np.float64 for array in arrays):
        for array, given in zip(arrays, cast_arrays, strict=True):
            if not np.array_equal(given.astype(np.float64), wide(array), equal_nan=True):
                raise Unclear("a choice that rounds")
    full = np.broadcast_to(test, shape)
    slope = combined(shape, [(full.astype(np.float64), arrays[0].slope), ((~full).astype(np.float64), arrays[1].slope)])
    return Value(
        np.where(test, *cast_arrays), np.broadcast_to(np.where(test, arrays[0].error, arrays[1].error), shape), slope
    )


# ---------------------------------------------------------------------------------------------------------- reductions
def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    return tuple(a % rank for a in (axis if isinstance(axis, tuple) else (axis,)))


def _sum_of_exact(terms: np.ndarray, total_of_absolute: np.ndarray, dtype: np.dtype) -> bool:
    """True if sums of these terms are exact in any order."""
    bits = 10 if dtype == np.float16 else 23
    for shift in (0, 2, 4, 8, 12):
        scaled = terms * 2.0**shift
        if np.all(scaled == np.round(scaled)):
            return bool(np.all(total_of_absolute * 2.0**shift <= 2.0**bits))
    return False


def _sum_error(terms: np.ndarray, absolute: np.ndarray, error: np.ndarray, count: int, dtype: np.dtype) -> np.ndarray:
    """The largest error of a sum in any order."""
    finite = np.isfinite(absolute)
    if np.sum(np.abs(terms[np.isfinite(terms)])) > 0.5 * LARGEST[dtype]:
        raise Unclear("a sum that may overflow")
    if np.all(finite) and np.all(error <= 1e-200) and _sum_of_exact(terms, absolute, dtype):
        return np.maximum(error, SIGN_OF_ZERO)
    rounding = (count + 4) * EPSILON[dtype] * np.where(finite, absolute, 0)
    if dtype == np.float32:
        rounding = rounding + 1e-44
    return np.where(finite, error + rounding, error)


def summed(value: Value, axis: Any, keepdims: bool, dtype: np.dtype, mean: bool = False) -> Value:
    axes = _axes(axis, value.data.ndim)
    count = math.prod(value.shape[a] for a in axes)
    if mean and count == 0:
        raise Unclear("the mean of nothing")
    if dtype.kind != "f":
        data = np.sum(value.data, axis=axes, dtype=dtype, keepdims=keepdims)
        return constant(data)
    terms = wide(value)
    result = np.sum(terms, axis=axes, keepdims=keepdims)
    absolute = np.sum(np.abs(terms), axis=axes, keepdims=keepdims)
    error = _sum_error(terms, absolute, np.sum(value.error, axis=axes, keepdims=keepdims), count, dtype)
    scale = 1.0 / count if mean else 1.0
    if mean and count & (count - 1):
        error = error + 2 * EPSILON[dtype] * np.where(np.isfinite(absolute), absolute, 0) * scale
    made = rounded(np.asarray(result * scale), dtype, np.asarray(error * scale if scale > 1e-6 else error), 0)
    if value.slope is not None:
        made.slope = np.sum(value.slope, axis=tuple(a + 2 for a in axes), keepdims=keepdims) * scale
    return made


def extreme(value: Value, axis: Any, keepdims: bool, largest: bool) -> Value:
    """Computes max or min; NaN if an element is NaN."""
    axes = _axes(axis, value.data.ndim)
    if math.prod(value.shape[a] for a in axes) == 0:
        raise Unclear("the largest of nothing")
    pick = np.max if largest else np.min
    data = pick(value.data, axis=axes, keepdims=True)
    error = np.max(value.error, axis=axes, keepdims=True)
    zeros = (data == 0) & (error == 0) if value.dtype.kind == "f" else np.zeros(data.shape, bool)
    error = np.where(zeros, SIGN_OF_ZERO, error)
    slope = None
    if value.slope is not None:
        chosen = np.abs(value.data.astype(np.float64) - data) <= 4 * (value.error + certain(error))
        if np.any(np.sum(chosen, axis=axes) != 1):
            raise Unclear("equal largest elements")
        slope = np.sum(value.slope * chosen, axis=tuple(a + 2 for a in axes), keepdims=True)
    shape = data.shape if keepdims else tuple(s for a, s in enumerate(data.shape) if a not in axes)
    return checked(
        Value(
            np.asarray(data).reshape(shape),
            np.asarray(error).reshape(shape),
            None if slope is None else slope.reshape(*slope.shape[:2], *shape),
        )
    )


def position(value: Value, axis: int, largest: bool, dtype: np.dtype) -> Value:
    """Computes argmax or argmin of elements that all differ."""
    if value.shape[axis] == 0:
        raise Unclear("the largest of nothing")
    if value.dtype.kind == "f" and not np.all(np.isfinite(value.data)):
        raise Unclear("the position of NaN")
    ordered = np.sort(wide(value), axis=axis)
    if np.any(np.abs(np.diff(ordered, axis=axis)) <= 8 * np.max(value.error, initial=0)):
        raise Unclear("equal elements")
    return constant((np.argmax if largest else np.argmin)(value.data, axis=axis), dtype)


def softmax(value: Value, axis: int, log: bool) -> Value:
    if value.shape[axis] == 0:
        raise Unclear("softmax of nothing")
    x = wide(value)
    if np.any(np.isposinf(x)) or (log and np.any(np.isinf(x))) or np.any(np.all(np.isneginf(x), axis=axis)):
        raise Unclear("softmax of infinities")
    top = np.max(x, axis=axis, keepdims=True)
    powers = np.exp(x - top)
    total = np.sum(powers, axis=axis, keepdims=True)
    p = powers / total
    result = x - top - np.log(total) if log else p
    error = np.sum(value.error, axis=axis, keepdims=True) * (2 if log else 2 * p)
    span = np.abs(x - top)
    noise = EPSILON[value.dtype] * (8 + 4 * span) * (1 if log else p) + (0 if log else 1e-37)
    error = np.where(np.isfinite(result), error + np.where(np.isfinite(noise), noise, 0), 0)
    made = rounded(result, value.dtype, error, 8)
    if value.slope is not None:
        s = value.slope
        at = axis % x.ndim + 1
        signed, absolute = s
        made.slope = np.empty_like(s)
        inner = np.sum(p * signed, axis=at, keepdims=True)
        inner_absolute = np.sum(p * absolute, axis=at, keepdims=True)
        factor = 1 if log else p
        made.slope[0] = factor * (signed - inner)
        made.slope[1] = factor * (absolute + inner_absolute)
    return made


# ------------------------------------------------------------------------------------------------------------ products
def bilinear(
    left: Value, right: Value, dtype: np.dtype, function: Callable[[np.ndarray, np.ndarray], np.ndarray], terms: int,
    *, exact: bool = True, slack: float = 1,
) -> Value:  # fmt: skip
    """Computes sums of products of elements of two arrays. exact: kernels compute only these sums."""
    if dtype.kind != "f":
        return constant(function(left.data.astype(dtype), right.data.astype(dtype)), dtype)
    a, b = wide(left), wide(right)
    result = np.asarray(function(a, b))
    absolute = np.asarray(function(np.abs(a), np.abs(b)))
    finite = np.isfinite(absolute)
    plain = bool(np.all(finite))
    with_error = not (np.all(left.error == 0) and np.all(right.error == 0))
    if with_error and not plain:
        raise Unclear("rounded numbers beside infinities")
    error = function(left.error, np.abs(b)) + function(np.abs(a), right.error) if with_error else np.zeros(result.shape)
    error = np.where(error <= 1e-200, np.minimum(error, SIGN_OF_ZERO), error)
    whole = all(np.all(x * 4 == np.round(x * 4)) for x in (a, b)) if plain else False
    if (
        exact
        and whole
        and np.all(error <= 1e-200)
        and np.all(absolute * 16 <= (2**23 if dtype != np.float16 else 1024))
    ):
        error = np.maximum(error, SIGN_OF_ZERO)
    else:
        largest = [np.max(np.abs(x[np.isfinite(x)]), initial=0) for x in (a, b)]
        if largest[0] * largest[1] * terms > 0.1 * LARGEST[dtype]:
            raise Unclear("a sum that may overflow")
        error = (
            error + (terms + 4) * slack * EPSILON[dtype] * np.where(finite, absolute, 0) + np.where(finite, 1e-44, 0)
        )
    made = rounded(result, dtype, np.where(finite, error, 0), 0)
    made.slope = _bilinear_slope(left, right, a, b, function)
    return made


def _bilinear_slope(left: Value, right: Value, a: np.ndarray, b: np.ndarray, function: Any) -> Any:
    total: Any = None
    for slope, other, first in ((left.slope, b, True), (right.slope, a, False)):
        if slope is None:
            continue
        if not np.all(np.isfinite(other)):
            raise Unclear("a derivative that is not finite")
        signed = [function(s, other) if first else function(other, s) for s in slope[0]]
        sized = [function(s, np.abs(other)) if first else function(np.abs(other), s) for s in slope[1]]
        part = np.stack([np.stack(signed), np.stack(sized)])
        total = part if total is None else total + part
    return total


def _windows(x: np.ndarray, kernel: tuple[int, int], stride: tuple[int, int]) -> np.ndarray:
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))
    return view[:, :, :: stride[0], :: stride[1]]


def convolution(data: Value, weight: Value, pad: int) -> Value:
    kernel = weight.shape[2:]

    def run(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        return np.einsum("nchwij,ocij->nohw", _windows(padded, kernel, (1, 1)), w)

    if any(size + 2 * pad < k for size, k in zip(data.shape[2:], kernel, strict=True)):
        raise Unclear("a kernel larger than the data")
    return bilinear(data, weight, data.dtype, run, math.prod(weight.shape[1:]), exact=False, slack=8)


def pooled(data: Value, kind: str) -> Value:
    """Computes pooling of 2x2 windows with stride 2."""
    n, c, h, w = data.shape
    if h < 2 or w < 2 or n * c == 0:
        raise Unclear("too small to pool")
    h, w = h // 2 * 2, w // 2 * 2

    def split(array: np.ndarray, lead: int) -> np.ndarray:
        cut = array[..., :h, :w]
        shape = (*array.shape[: lead + 2], h // 2, 2, w // 2, 2)
        return np.moveaxis(cut.reshape(shape), -3, -2).reshape(*shape[:-4], h // 2, w // 2, 4)

    parts = Value(split(data.data, 0), split(data.error, 0), None if data.slope is None else split(data.slope, 2))
    if kind == "max":
        return extreme(parts, -1, False, True)
    return summed(parts, -1, False, data.dtype, mean=True)


# ------------------------------------------------------------------------------------------------------ moved elements
def moved(values: Sequence[Value], function: Callable[..., np.ndarray]) -> Value:
    """Computes an operator that only moves elements, such as transpose and concat; `function` takes arrays."""
    data = np.ascontiguousarray(function(*(value.data for value in values)))
    data = data.reshape(function(*(value.data for value in values)).shape)
    error = np.asarray(function(*(value.error for value in values)))
    slope = None
    if any(value.slope is not None for value in values):
        count = next(value.slope.shape[1] for value in values if value.slope is not None)
        rows = []
        for kind, cell in itertools.product(range(2), range(count)):
            rows.append(function(*(np.zeros(v.shape) if v.slope is None else v.slope[kind, cell] for v in values)))
        slope = np.stack(rows).reshape(2, count, *data.shape)
    return Value(data, error, slope)
