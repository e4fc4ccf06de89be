"""Elementwise functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as onp

from .. import _core
from ..errors import ValueError as HybridNetValueError
from ._operators import _converted, _scalar_array, binary, direct, np_operator, public_operator, unary

__all__ = [
    "abs", "absolute", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "around",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clip", "copysign", "cos", "cosh",
    "deg2rad", "degrees", "divide", "equal", "exp", "expm1", "fabs", "fix", "floor", "floor_divide", "gcd", "greater",
    "greater_equal", "hypot", "invert", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "lcm", "ldexp", "less",
    "less_equal", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor",
    "maximum", "minimum", "mod", "multiply", "nan_to_num", "negative", "not_equal", "power", "rad2deg", "radians",
    "reciprocal", "remainder", "rint", "round", "round_", "sign", "sin", "sinh", "sqrt", "square", "subtract", "tan",
    "tanh", "true_divide", "trunc", "where",
]  # fmt: skip

# ------------------------------------------------------------------------------------------------------- two arguments
add = binary("add", "_npi_add")
subtract = binary("subtract", "_npi_subtract", "_npi_rsubtract_scalar")
multiply = binary("multiply", "_npi_multiply")
divide = binary("divide", "_npi_true_divide", "_npi_rtrue_divide_scalar")
true_divide = binary("true_divide", "_npi_true_divide", "_npi_rtrue_divide_scalar")
mod = binary("mod", "_npi_mod", "_npi_rmod_scalar")
remainder = binary("remainder", "_npi_mod", "_npi_rmod_scalar")
floor_divide = binary("floor_divide", "_npi_floor_divide", "_npi_rfloor_divide_scalar")
power = binary("power", "_npi_power", "_npi_rpower_scalar")
maximum = binary("maximum", "_npi_maximum")
minimum = binary("minimum", "_npi_minimum")
hypot = binary("hypot", "_npi_hypot")
equal = binary("equal", "_npi_equal")
not_equal = binary("not_equal", "_npi_not_equal")
greater = binary("greater", "_npi_greater", "_npi_less_scalar")
greater_equal = binary("greater_equal", "_npi_greater_equal", "_npi_less_equal_scalar")
less = binary("less", "_npi_less", "_npi_greater_scalar")
arctan2 = binary("arctan2", "_npi_arctan2", "_npi_rarctan2_scalar")
copysign = binary("copysign", "_npi_copysign", "_npi_rcopysign_scalar")
ldexp = binary("ldexp", "_npi_ldexp", "_npi_rldexp_scalar")
lcm = binary("lcm", "_npi_lcm")
gcd = binary("gcd", "_npi_gcd")
bitwise_and = binary("bitwise_and", "_npi_bitwise_and")
bitwise_or = binary("bitwise_or", "_npi_bitwise_or")
bitwise_xor = binary("bitwise_xor", "_npi_bitwise_xor")
less_equal = binary("less_equal", "_npi_less_equal", "_npi_greater_equal_scalar")

# -------------------------------------------------------------------------------------------------------- one argument
exp = unary("exp", "_npi_exp")
expm1 = unary("expm1", "_npi_expm1")
log = unary("log", "_npi_log")
log2 = unary("log2", "_npi_log2")
log10 = unary("log10", "_npi_log10")
log1p = unary("log1p", "_npi_log1p")
sqrt = unary("sqrt", "_npi_sqrt")
cbrt = unary("cbrt", "_npi_cbrt")
sin = unary("sin", "_npi_sin")
cos = unary("cos", "_npi_cos")
tan = unary("tan", "_npi_tan")
arcsin = unary("arcsin", "_npi_arcsin")
arccos = unary("arccos", "_npi_arccos")
arctan = unary("arctan", "_npi_arctan")
sinh = unary("sinh", "_npi_sinh")
cosh = unary("cosh", "_npi_cosh")
tanh = unary("tanh", "_npi_tanh")
arcsinh = unary("arcsinh", "_npi_arcsinh")
arccosh = unary("arccosh", "_npi_arccosh")
arctanh = unary("arctanh", "_npi_arctanh")
degrees = unary("degrees", "_npi_degrees")
rad2deg = unary("rad2deg", "_npi_degrees")
radians = unary("radians", "_npi_radians")
deg2rad = unary("deg2rad", "_npi_radians")
negative = unary("negative", "_npi_negative")
abs = unary("abs", "_npi_absolute")
absolute = unary("absolute", "_npi_absolute")
sign = unary("sign", "_npi_sign")
square = unary("square", "_npi_square")
reciprocal = unary("reciprocal", "_npi_reciprocal")
floor = unary("floor", "_npi_floor")
ceil = unary("ceil", "_npi_ceil")
trunc = unary("trunc", "_npi_trunc")
fix = unary("fix", "_npi_fix")
rint = unary("rint", "_npi_rint")
fabs = unary("fabs", "_npi_absolute")
isnan = unary("isnan", "_npi_isnan")
isinf = unary("isinf", "_npi_isinf")
isfinite = unary("isfinite", "_npi_isfinite")
isposinf = unary("isposinf", "_npi_isposinf")
isneginf = unary("isneginf", "_npi_isneginf")
logical_not = unary("logical_not", "_npi_logical_not")
bitwise_not = unary("bitwise_not", "_npi_bitwise_not")
invert = unary("invert", "_npi_bitwise_not")
around = public_operator("around", "_npi_around", "decimals out")
round = public_operator("round", "_npi_around", "decimals out")
round_ = public_operator("round_", "_npi_around", "decimals out")


def nan_to_num(
    x: Any,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    out: Any = None,
) -> Any:
    """Replaces NaN and infinities by numbers: 0, the largest and the smallest number of the dtype by default.

    copy=False writes into x.
    """
    if not copy and out is None:
        out = x
    return np_operator("_npi_nan_to_num")(x, nan=nan, posinf=posinf, neginf=neginf, out=out)


# -------------------------------------------------------------------------------------------------- composed functions
def logical_and(x1: Any, x2: Any, out: Any = None) -> Any:
    """Whether both operands are nonzero, with broadcasting."""
    return bitwise_and(not_equal(x1, 0), not_equal(x2, 0), out=out)


def logical_or(x1: Any, x2: Any, out: Any = None) -> Any:
    """Whether at least one operand is nonzero, with broadcasting."""
    return bitwise_or(not_equal(x1, 0), not_equal(x2, 0), out=out)


def logical_xor(x1: Any, x2: Any, out: Any = None) -> Any:
    """Whether exactly one operand is nonzero, with broadcasting."""
    return bitwise_xor(not_equal(x1, 0), not_equal(x2, 0), out=out)


@direct("_npi_clip", "a_min a_max out", needed=2)
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Limits elements to the range from a_min to a_max; None: no bound. Bounds may be arrays.

    min, max: NumPy 2's names for a_min and a_max.
    """
    a_min, a_max = a_min if min is None else min, a_max if max is None else max
    if a_min is None and a_max is None:
        return np_operator("_np_copy")(_converted(a), out=out)
    if _is_tensor(a_min) or _is_tensor(a_max) or isinstance(a_min, onp.ndarray) or isinstance(a_max, onp.ndarray):
        lower = a if a_min is None else maximum(a, a_min)
        return _into(out, lower if a_max is None else minimum(lower, a_max))
    low = -math.inf if a_min is None else float(a_min)
    high = math.inf if a_max is None else float(a_max)
    return np_operator("_npi_clip")(a, a_min=low, a_max=high, out=out)


@direct("_npi_where", inputs=3)
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Takes x where the condition is nonzero, else y, elementwise. With the condition alone: :func:`nonzero` of it."""
    if x is None and y is None:
        from . import nonzero

        return nonzero(condition)
    if x is None or y is None:
        raise HybridNetValueError("np.where", expected="x and y, or neither", given="one of them")
    condition, x, y = _converted(condition), _converted(x), _converted(y)
    if not _is_tensor(condition):
        condition = _scalar_array(condition)
    if _is_tensor(x) and _is_tensor(y):
        return np_operator("_npi_where")(condition, x, y)
    if _is_tensor(x):
        return np_operator("_npi_where_rscalar")(condition, x, scalar=float(y))
    if _is_tensor(y):
        return np_operator("_npi_where_lscalar")(condition, y, scalar=float(x))
    return np_operator("_npi_where_scalar2")(condition, x=float(x), y=float(y))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (_core.NDArrayBase, _core.SymbolBase))


def _into(out: Any, result: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out
