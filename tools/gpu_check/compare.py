"""How far the values of a GPU are from those of the CPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["CLASSES", "Difference", "compare"]

CLASSES = ("exact", "1 ulp", "within", "WRONG")
# Relative to the largest magnitude of a result: the same operator in another order of sums.
TOLERANCE = {"float16": 1e-2, "bfloat16": 6e-2, "float32": 5e-5, "float64": 1e-7}
_INTEGERS = {2: np.int16, 4: np.int32, 8: np.int64}


@dataclass(frozen=True)
class Difference:
    """kind: one of CLASSES. relative: to the largest magnitude. ulps: the most, of finite values; -1: not counted."""

    kind: str = "exact"
    relative: float = 0.0
    ulps: int = 0
    note: str = ""

    @property
    def rank(self) -> int:
        return CLASSES.index(self.kind)

    def worse(self, other: Difference) -> Difference:
        """Returns the worse of two."""
        return self if (self.rank, self.relative) >= (other.rank, other.relative) else other


def compare(found: np.ndarray, expected: np.ndarray) -> Difference:
    """Compares a result of the GPU with the CPU's."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return Difference(
            "WRONG", np.inf, -1, f"{found.dtype}{found.shape}, on the CPU {expected.dtype}{expected.shape}"
        )
    if found.tobytes() == expected.tobytes():
        return Difference()
    if expected.dtype.name not in TOLERANCE:
        differ = found != expected
        note = f"{int(differ.sum())} of {differ.size} values"
        return Difference("WRONG" if differ.any() else "exact", float(differ.mean()), -1, note)
    return _compare_floats(found, expected)


def _compare_floats(found: np.ndarray, expected: np.ndarray) -> Difference:
    a, b = found.astype("float64"), expected.astype("float64")
    if (np.isnan(a) != np.isnan(b)).any():
        return Difference("WRONG", np.inf, -1, "NaN in other places")
    numbers = ~np.isnan(b)
    ulps = _most_ulps(_ordered(found)[numbers], _ordered(expected)[numbers])
    if ulps <= 1:
        return Difference("exact" if ulps == 0 else "1 ulp", _relative(a[numbers], b[numbers]), ulps)
    if (np.isinf(a) != np.isinf(b)).any() or (a[np.isinf(b)] != b[np.isinf(b)]).any():
        return Difference("WRONG", np.inf, ulps, "infinities in other places")
    finite = np.isfinite(b)
    relative = _relative(a[finite], b[finite])
    kind = "within" if relative <= TOLERANCE[expected.dtype.name] else "WRONG"
    return Difference(kind, relative, ulps)


def _most_ulps(a: np.ndarray, b: np.ndarray) -> int:
    """The largest distance; distances of values with unlike signs are cut off at 2**62, as they may not fit 64 bits."""
    unlike = (a < 0) != (b < 0)
    half = 1 << 61
    near = np.where(unlike, np.clip(a, -half, half), a) - np.where(unlike, np.clip(b, -half, half), b)
    return int(np.abs(near).max(initial=0))


def _relative(a: np.ndarray, b: np.ndarray) -> float:
    finite = np.isfinite(a) & np.isfinite(b)
    scale = max(float(np.abs(b[finite]).max(initial=0)), 1e-3)
    return float(np.abs(a[finite] - b[finite]).max(initial=0)) / scale


def _ordered(values: np.ndarray) -> np.ndarray:
    """Integers in the order of the values, 1 apart for neighbors; both zeros are 0."""
    size = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(_INTEGERS[size]).astype("int64")
    magnitude = bits & ((1 << (8 * size - 1)) - 1)
    return np.where(bits < 0, -magnitude, magnitude)
