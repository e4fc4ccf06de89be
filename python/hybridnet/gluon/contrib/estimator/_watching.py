"""Comparison of metric values for checkpoints and early stopping."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...._user_line import warn

__all__ = ["comparison_for", "comparison_for_name", "worst"]


def _greater(a: float, b: float) -> bool:
    return a > b


def _less(a: float, b: float) -> bool:
    return a < b


def comparison_for(mode: str, monitor: Any, handler: str) -> Callable[[float, float], bool]:
    """Returns greater or less, by mode 'max', 'min' or 'auto': greater for accuracy and F1, else less."""
    return comparison_for_name(mode, str(monitor.get()[0]), handler)


def comparison_for_name(mode: str, name: str, handler: str) -> Callable[[float, float], bool]:
    """Returns the comparison of comparison_for for a metric of this name."""
    if mode not in ("auto", "min", "max"):
        warn(f"{handler}: mode {mode} is unknown, fallback to auto mode", RuntimeWarning)
        mode = "auto"
    if mode == "auto":
        mode = "max" if "acc" in name.lower() or "f1" in name.lower() else "min"
    return _greater if mode == "max" else _less


def worst(comparison: Callable[[float, float], bool]) -> float:
    """The value that is worse than every other value."""
    return -math.inf if comparison is _greater else math.inf
