"""Reductions over axes. Of all elements where axis is None; () reduces nothing."""

from __future__ import annotations

from ._operators import public_operator

__all__ = ["amax", "amin", "argmax", "argmin", "max", "mean", "min", "prod", "product", "std", "sum", "var"]

sum = public_operator("sum", "_np_sum", "axis dtype keepdims initial out")
prod = public_operator("prod", "_np_prod", "axis dtype out keepdims")
product = public_operator("product", "_np_prod", "axis dtype out keepdims")
mean = public_operator("mean", "_npi_mean", "axis dtype out keepdims")
std = public_operator("std", "_npi_std", "axis dtype out ddof keepdims")
var = public_operator("var", "_npi_var", "axis dtype out ddof keepdims")
max = public_operator("max", "_np_max", "axis keepdims out")
min = public_operator("min", "_np_min", "axis keepdims out")
amax = public_operator("amax", "_np_max", "axis keepdims out")
amin = public_operator("amin", "_np_min", "axis keepdims out")
argmax = public_operator("argmax", "_npi_argmax", "axis out")
argmin = public_operator("argmin", "_npi_argmin", "axis out")
