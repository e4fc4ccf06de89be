"""Contributed operators, and the control-flow functions."""

from __future__ import annotations

from typing import Any

from ..ops.namespace import lazy_functions
from .ndarray import NDArray

_lazy, __dir__ = lazy_functions(globals(), "contrib", symbolic=False)
_CONTROL_FLOW = ("cond", "foreach", "while_loop")


def __getattr__(name: str) -> Any:
    if name in _CONTROL_FLOW:
        from ..contrib import control_flow

        return getattr(control_flow, name)
    return _lazy(name)


def isinf(data: NDArray) -> NDArray:
    """1 where data is infinite, else 0."""
    return data.abs() == float("inf")


def isnan(data: NDArray) -> NDArray:
    """1 where data is not a number, else 0."""
    return data != data


def isfinite(data: NDArray) -> NDArray:
    """1 where data is a finite number, else 0."""
    return (data.abs() != float("inf")) * (data == data)


def rand_zipfian(
    true_classes: NDArray, num_sampled: int, range_max: int, ctx: Any = None
) -> tuple[NDArray, NDArray, NDArray]:
    """Classes drawn with probability log((c + 2) / (c + 1)) / log(range_max + 1), and expected counts of both kinds."""
    from . import random
    from .ndarray import _function

    log_range = _log(float(range_max + 1))
    drawn = random.uniform(0, log_range, shape=(num_sampled,), dtype="float64", ctx=ctx).exp().astype("int64") - 1
    sampled = drawn % range_max

    def expected(classes: NDArray) -> NDArray:
        wide = classes.astype("float64")
        return _function("log")((wide + 2.0) / (wide + 1.0)) / log_range * num_sampled

    return sampled, expected(true_classes.as_in_context(sampled.context)), expected(sampled)


def _log(value: float) -> float:
    import math

    return math.log(value)
