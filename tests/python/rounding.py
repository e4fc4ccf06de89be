"""Comparisons of results that agree within rounding (docs/numerics.md)."""

from __future__ import annotations

import numpy as np


def assert_close(actual: np.ndarray, expected: np.ndarray, scale: float = 1.0) -> None:
    """Checks equality within rounding of the largest term (at least `scale`): sums may be in another order."""
    scale = max(scale, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5 * scale)


def assert_all_close(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Compares with a common scale: gradients of biases in front of BatchNorm are large terms that cancel."""
    scale = max(float(np.abs(e).max(initial=0.0)) for e in expected)
    for a, e in zip(actual, expected, strict=True):
        assert_close(a, e, scale)
