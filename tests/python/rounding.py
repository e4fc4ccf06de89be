"""Comparison of results that agree within rounding (docs/numerics.md)."""

from __future__ import annotations

import numpy as np


def assert_close(actual: np.ndarray, expected: np.ndarray, scale: float = 1.0) -> None:
    """Sums in another order differ by rounding, which counts against the largest term: at least `scale`."""
    scale = max(scale, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5 * scale)


def assert_all_close(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Biases in front of BatchNorm have gradients that cancel to zero: their terms are as large as the others'."""
    scale = max(float(np.abs(e).max(initial=0.0)) for e in expected)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, scale)
