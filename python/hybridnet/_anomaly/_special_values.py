"""NaN and infinite values of arrays: their count and place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _core

__all__ = ["Special", "special_of", "values_of"]


class Special(NamedTuple):
    """The NaN and infinite values of an array."""

    nans: int
    infs: int
    first: tuple[int, ...]
    values: np.ndarray

    def text(self, nan: bool, inf: bool) -> str:
        """Count, place and shape: "2 NaN among 6 values, the first at [0, 1] of shape (2, 3)"."""
        parts = [f"{self.nans} NaN"] if nan and self.nans else []
        if inf and self.infs:
            parts.append(f"{self.infs} infinit{'y' if self.infs == 1 else 'ies'}")
        size, shape = self.values.size, self.values.shape
        place = f", the first at {list(self.first)} of shape {shape}" if shape else ""
        return f"{' and '.join(parts)} among {size} value{'s' * (size != 1)}{place}"


def values_of(array: Any) -> np.ndarray | None:
    """The values of a floating array, the stored ones of a sparse array; None for other dtypes."""
    if np.dtype(array.dtype).kind not in "fV":  # V: bfloat16
        return None
    return _core.asnumpy(array if array.stype == "default" else array.data)


def special_of(array: Any) -> Special | None:
    """Returns the NaN and infinite values of an array or number; None if there are none."""
    if isinstance(array, float):
        value = np.asarray(array)
        return None if np.isfinite(value) else Special(int(np.isnan(value)), int(np.isinf(value)), (), value)
    values = values_of(array)
    if values is None or np.isfinite(values).all():
        return None
    nans = np.isnan(values)
    bad = ~np.isfinite(values)
    nan_count = int(nans.sum())
    first = np.unravel_index(int(np.argmax(nans if nan_count else bad)), values.shape)
    return Special(nan_count, int(bad.sum()) - nan_count, tuple(int(i) for i in first), values)
