"""Values that a conversion to another dtype would change."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["lost_value"]


def lost_value(values: np.ndarray, dtype: np.dtype, exact: bool = False) -> Any:
    """Returns the first of the values that dtype cannot hold; None if it holds all.

    Integers and bool hold equal values only: no fraction, NaN or larger number. Floating types hold each number of
    their range, rounded; with exact, integers that need no rounding only.
    """
    source = values.dtype
    if source == dtype or values.size == 0:
        return None
    if dtype.kind in "biu":
        lost = _lost_in_integers(values, dtype)
    else:
        with np.errstate(all="ignore"):
            rounded = values.astype(dtype).astype(np.float64)
        if source.kind in "iu" and exact:
            lost = ~_are_integers(values, rounded)
        else:
            lost = ~np.isfinite(rounded) & np.isfinite(values)
    return values[lost][0] if lost.any() else None


def _lost_in_integers(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    low, high = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if values.dtype.kind == "b":
        return np.zeros(values.shape, bool)
    if values.dtype.kind in "iu":
        # Limits outside of the source's range cannot be exceeded; NumPy 1 would compare them as floating numbers.
        source = np.iinfo(values.dtype)
        below = values < low if low > source.min else np.zeros(values.shape, bool)
        return below | (values > high) if high < source.max else below
    numbers = values.astype(np.float64)
    # high + 1 is a power of two, which float64 holds; high of int64 it does not hold.
    return ~((numbers >= low) & (numbers < float(high + 1)) & (np.floor(numbers) == numbers))


def _are_integers(values: np.ndarray, rounded: np.ndarray) -> np.ndarray:
    """Whether rounded, in float64, equals the integers: they are compared as integers."""
    info = np.iinfo(values.dtype)
    in_range = (rounded >= info.min) & (rounded < float(int(info.max) + 1))
    return in_range & (np.where(in_range, rounded, 0).astype(values.dtype) == values)
