"""Functions of ``nd.contrib`` and ``sym.contrib`` composed of operators: one definition for arrays and Symbols."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

__all__ = ["isfinite", "isinf", "isnan", "zipfian_classes"]


def isinf(data: Any) -> Any:
    """Returns 1 where data is infinite, else 0."""
    return data.abs() == float("inf")


def isnan(data: Any) -> Any:
    """Returns 1 where data is not a number, else 0."""
    return data != data


def isfinite(data: Any) -> Any:
    """Returns 1 where data is a finite number, else 0."""
    return (data.abs() != float("inf")) * (data == data)


def zipfian_classes(
    F: ModuleType, true_classes: Any, num_sampled: int, range_max: int, **where: Any
) -> tuple[Any, Any, Any]:
    """Returns (sampled classes, expected counts of true_classes, expected counts of the sampled classes).

    F: ``nd`` or ``sym``. Class c in [0, range_max) is drawn num_sampled times, with replacement, with probability
    log((c + 2) / (c + 1)) / log(range_max + 1).
    """
    log_range = math.log(range_max + 1)
    drawn = F.random.uniform(0, log_range, shape=(num_sampled,), dtype="float64", **where).exp().astype("int64") - 1
    sampled = drawn % range_max

    def expected(classes: Any) -> Any:
        wide = classes.astype("float64")
        return F.log((wide + 2.0) / (wide + 1.0)) / log_range * num_sampled

    return sampled, expected(true_classes), expected(sampled)
