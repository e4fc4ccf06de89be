"""Comparison of metric values for checkpoints and early stopping."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["comparison_for", "worst"]


def _greater(a: float, b: float) -> bool:
    return a > b


def _less(a: float, b: float) -> bool:
    return a < b


def comparison_for(mode: str, monitor: Any, handler: str) -> Callable[[float, float], bool]:
    """Returns greater or less, by mode 'max', 'min' or 'auto': greater for accuracy and F1, else less."""
    if mode not in ("auto", "min", "max"):
        warnings.warn(f"{handler}: mode {mode} is unknown, fallback to auto mode", RuntimeWarning, stacklevel=3)
        mode = "auto"
    if mode == "auto":
        name = str(monitor.get()[0]).lower()
        mode = "max" if "acc" in name or "f1" in name else "min"
    return _greater if mode == "max" else _less


def worst(comparison: Callable[[float, float], bool]) -> float:
    """The value that is worse than every other value."""
    return -math.inf if comparison is _greater else math.inf
