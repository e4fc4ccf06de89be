"""Checks of a run: tensors that cannot be computed where a condition of the import does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._arithmetic import calculate
from ._values import Value

__all__ = ["guarded", "has_sizes"]


def has_sizes(g: Any, value: Value, axes: Sequence[int], sizes: Sequence[int]) -> Value:
    """For each of the axes, whether it has the size, when the graph runs."""
    found = g.emit("shape_array", [value])
    own = g.emit("take", [found, g.shared(f"axes_{axes}", np.array(axes, "int64"))], axis=0)
    made: Value = g.emit("_npi_equal", [own, g.constant(sizes, "sizes", "int64", trainable=False)])
    return made


def guarded(g: Any, value: Value, condition: Value, message: str) -> Value:
    """The value; a run in which an element of `condition` is false raises an error with the message."""
    kept = g.emit("_npx_constraint_check", [g.cast(condition, "bool")], msg=message)
    if value.dtype == "bool":
        made: Value = g.emit("_npi_bitwise_and", [value, kept])
    else:
        # x - 0 is x for zeros of both signs.
        made = calculate(g, "-", value, g.cast(g.emit("_npi_logical_not", [kept]), value.dtype))
    return made
