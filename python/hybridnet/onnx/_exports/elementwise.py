"""Functions of single elements: rounding, powers, trigonometry, tests, casts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._export_table import export_form
from .._export_values import Tensor


def _plain(name: str, onnx_name: str) -> None:
    export_form(name)(lambda g, node: g.emit(onnx_name, *node.inputs))


for _name, _onnx_name in {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs",
    "negative": "Neg", "erf": "Erf", "softsign": "Softsign", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "arcsinh": "Asinh",
    "arccosh": "Acosh", "arctanh": "Atanh", "sign": "Sign", "_contrib_sign_ste": "Sign",
}.items():  # fmt: skip
    _plain(_name, _onnx_name)


@export_form(
    "_copy", "BlockGrad", "MakeLoss", "make_loss", "_contrib_gradientmultiplier", "cast_storage",
    "IdentityAttachKLSparseReg", "_identity_with_attr_like_rhs",
)  # fmt: skip
def _same(g: Any, node: Any) -> Tensor:
    """Operators that differ from a copy in their gradients, states and storage."""
    first: Tensor = node.inputs[0]
    return first


@export_form("square")
def _square(g: Any, node: Any) -> Tensor:
    return g.emit("Mul", node.inputs[0], node.inputs[0])


@export_form("rsqrt")
def _rsqrt(g: Any, node: Any) -> Tensor:
    return g.emit("Reciprocal", g.emit("Sqrt", _floating(g, node.inputs[0])))


@export_form("reciprocal")
def _reciprocal(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    if x.dtype.startswith(("int", "uint")):
        return _integer_quotient(g, g.like(x, 1), x)
    return g.emit("Reciprocal", x)


def _integer_quotient(g: Any, a: Tensor, b: Tensor) -> Tensor:
    """a / b rounded toward zero, 0 where b is 0."""
    by_zero = g.emit("Equal", b, 0)
    return g.where(by_zero, 0, g.emit("Div", a, g.where(by_zero, 1, b)))


def cube_root(g: Any, x: Tensor) -> Tensor:
    """The cube root, of negative numbers, too."""
    return g.emit("Mul", g.emit("Sign", x), g.emit("Pow", g.emit("Abs", x), 1 / 3))


@export_form("cbrt")
def _cbrt(g: Any, node: Any) -> Tensor:
    return cube_root(g, _floating(g, node.inputs[0]))


@export_form("rcbrt")
def _rcbrt(g: Any, node: Any) -> Tensor:
    return g.emit("Reciprocal", cube_root(g, _floating(g, node.inputs[0])))


def _floating(g: Any, x: Tensor) -> Tensor:
    """Integers compute in float64."""
    return x if x.dtype.startswith(("float", "bfloat")) else g.cast(x, "float64")


def _times(name: str, factor: float, function: str | None = None) -> None:
    def form(g: Any, node: Any) -> Tensor:
        x = _floating(g, node.inputs[0])
        return g.emit("Mul", g.emit(function, x) if function else x, factor)

    export_form(name)(form)


_times("log2", 1 / math.log(2), "Log")
_times("log10", 1 / math.log(10), "Log")
_times("degrees", 180 / math.pi)
_times("radians", math.pi / 180)


@export_form("expm1")
def _expm1(g: Any, node: Any) -> Tensor:
    """e^x - 1 = 2 t / (1 - t) with t = tanh(x / 2), which is exact for small x."""
    x = _floating(g, node.inputs[0])
    t = g.emit("Tanh", g.emit("Mul", x, 0.5))
    small = g.emit("Div", g.emit("Add", t, t), g.emit("Sub", 1, t))
    is_small = g.emit("Less", g.emit("Abs", x), 0.5)
    return g.where(is_small, small, g.emit("Sub", g.emit("Exp", x), 1))


def log1p(g: Any, x: Tensor) -> Tensor:
    """log(1 + x), exact for small x (Kahan): log(u) x / (u - 1) with u = 1 + x."""
    u = g.emit("Add", x, 1)
    rest = g.emit("Sub", u, 1)
    logarithm = g.emit("Log", u)
    ratio = g.emit("Div", x, g.where(g.emit("Equal", rest, 0), 1, rest))
    small = g.where(g.emit("Equal", rest, 0), x, g.emit("Mul", logarithm, ratio))
    return g.where(g.emit("Less", x, 1), small, logarithm)


@export_form("log1p")
def _log1p(g: Any, node: Any) -> Tensor:
    return log1p(g, _floating(g, node.inputs[0]))


# ------------------------------------------------------------------------------------------------------------ rounding
def _is_integer(x: Tensor) -> bool:
    return not x.dtype.startswith(("float", "bfloat"))


@export_form("floor")
def _floor(g: Any, node: Any) -> Tensor:
    x: Tensor = node.inputs[0]
    return x if _is_integer(x) else g.emit("Floor", x)


@export_form("ceil")
def _ceil(g: Any, node: Any) -> Tensor:
    x: Tensor = node.inputs[0]
    return x if _is_integer(x) else g.emit("Ceil", x)


def truncated(g: Any, x: Tensor) -> Tensor:
    """Rounds toward zero."""
    if _is_integer(x):
        return x
    return g.where(g.emit("Less", x, 0), g.emit("Ceil", x), g.emit("Floor", x))


@export_form("trunc", "fix")
def _trunc(g: Any, node: Any) -> Tensor:
    return truncated(g, node.inputs[0])


def round_half_away(g: Any, x: Tensor) -> Tensor:
    """Rounds to the nearest integer, halves away from zero."""
    if _is_integer(x):
        return x
    whole = truncated(g, x)
    is_far = g.emit("GreaterOrEqual", g.emit("Abs", g.emit("Sub", x, whole)), 0.5)
    return g.where(is_far, g.emit("Add", whole, g.emit("Sign", x)), whole)


@export_form("round", "_contrib_round_ste")
def _round(g: Any, node: Any) -> Tensor:
    return round_half_away(g, node.inputs[0])


@export_form("rint")
def _rint(g: Any, node: Any) -> Tensor:
    """Halves go to the lower number."""
    x: Tensor = node.inputs[0]
    if _is_integer(x):
        return x
    low = g.emit("Floor", x)
    is_far = g.emit("Greater", g.emit("Sub", x, low), 0.5)
    return g.where(is_far, g.emit("Add", low, 1), low)


@export_form("_round_even")
def _round_even(g: Any, node: Any) -> Tensor:
    x: Tensor = node.inputs[0]
    return x if _is_integer(x) else g.emit("Round", x)


@export_form("clip")
def _clip(g: Any, node: Any) -> Tensor:
    x, low, high = node.inputs[0], node.params["a_min"], node.params["a_max"]
    if _is_integer(x):
        info = {"int8": 7, "uint8": 8, "int32": 31, "int64": 63}.get(x.dtype, 1)
        limit = 2**info - 1
        bottom = 0 if x.dtype.startswith("u") else -limit - 1
        low, high = (int(min(max(bound, bottom), limit)) for bound in (low, high))
    bounds = [None if math.isinf(bound) else bound for bound in (low, high)]
    if bounds[1] is None:
        bounds.pop()
    return g.emit("Clip", x, *bounds) if any(bound is not None for bound in bounds) else x


# ----------------------------------------------------------------------------------------------------------- selection
@export_form("where")
def _where(g: Any, node: Any) -> Tensor:
    condition, x, y = node.inputs
    if condition.ndim == 1 and x.ndim > 1:
        condition = g.reshape(condition, [condition.dim(0), *[1] * (x.ndim - 1)])
    return g.where(condition, x, y)


@export_form("logical_not")
def _logical_not(g: Any, node: Any) -> Tensor:
    return g.emit("Equal", node.inputs[0], 0) if node.inputs[0].dtype != "bool" else g.emit("Not", node.inputs[0])


@export_form("_is_zero")
def _is_zero(g: Any, node: Any) -> Tensor:
    return _logical_not(g, node)


@export_form("all_finite", "multi_all_finite")
def _all_finite(g: Any, node: Any) -> Tensor:
    results = []
    for x in node.inputs:
        x = g.flat(x)
        bad = g.emit("Or", g.emit("IsNaN", x), g.emit("IsInf", x))
        results.append(g.reduce("Max", g.cast(bad, "float32"), [0], keepdims=True))
    worst = results[0] if len(results) == 1 else g.emit("Max", *results)
    return g.emit("Sub", 1, worst)


@export_form("_finite_or")
def _finite_or(g: Any, node: Any) -> Tensor:
    x, p = node.inputs[0], node.params
    x = g.where(g.emit("IsNaN", x), p["nan"], x)
    for sign, name in ((1, "posinf"), (0, "neginf")):
        is_inf = g.emit("IsInf", x, detect_positive=sign, detect_negative=1 - sign)
        x = g.where(is_inf, p[name], x)
    return x


# --------------------------------------------------------------------------------------------------------------- casts
@export_form("Cast", "amp_cast")
def _cast(g: Any, node: Any) -> Tensor:
    """Floats beyond an 8-bit type go through int64, so that they wrap around as in HybridNet."""
    x: Tensor = node.inputs[0]
    target = node.outputs[0].dtype
    if target in ("int8", "uint8") and not _is_integer(x):
        x = g.cast(x, "int32")
    return g.cast(x, target)


@export_form("amp_multicast")
def _multicast(g: Any, node: Any) -> Sequence[Tensor]:
    return [g.cast(x, spec.dtype) for x, spec in zip(node.inputs, node.outputs, strict=True)]


@export_form("zeros_like")
def _zeros_like(g: Any, node: Any) -> Tensor:
    return g.full(node.inputs[0].dims, 0, node.outputs[0].dtype)


@export_form("ones_like")
def _ones_like(g: Any, node: Any) -> Tensor:
    return g.full(node.inputs[0].dims, 1, node.outputs[0].dtype)
