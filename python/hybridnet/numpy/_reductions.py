"""Reductions over axes: over all elements if axis is None; () reduces nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._calls import as_array, name_of
from ._operators import direct, np_operator, public_operator

__all__ = ["amax", "amin", "argmax", "argmin", "max", "mean", "min", "prod", "product", "std", "sum", "var"]

sum = public_operator("sum", "_np_sum", "axis dtype keepdims initial out")
prod = public_operator("prod", "_np_prod", "axis dtype out keepdims")
product = public_operator("product", "_np_prod", "axis dtype out keepdims")
mean = public_operator("mean", "_npi_mean", "axis dtype out keepdims")
max = public_operator("max", "_np_max", "axis keepdims out")
min = public_operator("min", "_np_min", "axis keepdims out")
amax = public_operator("amax", "_np_max", "axis keepdims out")
amin = public_operator("amin", "_np_min", "axis keepdims out")
argmax = public_operator("argmax", "_npi_argmax", "axis out")
argmin = public_operator("argmin", "_npi_argmin", "axis out")


@direct("_npi_var", "axis dtype out ddof keepdims")
def var(
    a: Any,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Variance: squared deviations from the mean, summed over axes and divided by their size - ddof (or correction)."""
    return _spread("_npi_var", a, axis, dtype, out, ddof, keepdims, correction)


@direct("_npi_std", "axis dtype out ddof keepdims")
def std(
    a: Any,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Standard deviation: the square root of :func:`var`."""
    return _spread("_npi_std", a, axis, dtype, out, ddof, keepdims, correction)


def _spread(
    operator: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: int, keepdims: bool, correction: float | None
) -> Any:
    a, wanted = as_array(a), ddof if correction is None else correction
    whole = int(wanted)
    found = np_operator(operator)(a, axis=axis, dtype=name_of(dtype), ddof=whole, keepdims=keepdims, out=out)
    if whole == wanted:
        return found
    kept = np_operator("_npi_mean")(a, axis=axis, keepdims=keepdims)
    count = a.size / kept.size if kept.size > 0 else 0.0
    factor = (count - whole) / (count - wanted) if count > wanted else float("nan")
    found *= factor if operator == "_npi_var" else factor**0.5
    return found
