"""Arithmetic, comparisons and logic of two tensors, or of a tensor and a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._export_table import export_form
from .._export_values import Open, Tensor
from .elementwise import _integer_quotient, _is_integer

Function = Callable[[Any, Any, Any], Any]  # takes the exporter and two operands; one of these may be a number


def _direct(op: str) -> Function:
    return lambda g, a, b: g.emit(op, a, b)


def _quotient(g: Any, a: Any, b: Any) -> Any:
    """a / b; integers round toward zero and give 0 where b is 0."""
    whole = a if isinstance(a, Tensor) else b
    if not _is_integer(whole):
        return g.emit("Div", a, b)
    if isinstance(b, Tensor):
        return _integer_quotient(g, a if isinstance(a, Tensor) else g.like(b, a), b)
    return g.emit("Div", a, b) if b != 0 else g.emit("Mul", a, 0)


def modulo(g: Any, a: Any, b: Any) -> Any:
    """The remainder with the sign of b; 0 where b is 0."""
    if not isinstance(b, Tensor) and b == 0:
        return g.emit("Mul", a, 0)
    x = a if isinstance(a, Tensor) else b
    by_zero = g.emit("Equal", b, 0) if isinstance(b, Tensor) else None
    divisor = b if by_zero is None else g.where(by_zero, 1, b)
    if _is_integer(x):
        rest = g.emit("Mod", a, divisor)
    else:
        rest = g.emit("Mod", a, divisor, fmod=1)
        if isinstance(b, Tensor):
            other_sign = g.emit("Less", g.emit("Mul", g.emit("Sign", rest), g.emit("Sign", b)), 0)
        else:
            other_sign = g.emit("Less" if b > 0 else "Greater", rest, 0)
        rest = g.where(other_sign, g.emit("Add", rest, b), rest)
    return rest if by_zero is None else g.where(by_zero, 0, rest)


def _power(g: Any, a: Any, b: Any) -> Any:
    if not isinstance(b, Tensor):
        if b == 1:
            return a
        if b == 2:
            return g.emit("Mul", a, a)
        if b == 0.5 and not _is_integer(a):
            return g.emit("Pow", a, b)  # the square root of -0 and of -infinity is another
        if b == -1 and not _is_integer(a):
            return g.emit("Reciprocal", a)
    return g.emit("Pow", a, b)


def _hypot(g: Any, a: Any, b: Any) -> Any:
    """sqrt(a^2 + b^2), by the larger of both, so that no square overflows."""
    a, b = (abs(x) if not isinstance(x, Tensor) else g.emit("Abs", x) for x in (a, b))
    large, small = g.emit("Max", a, b), g.emit("Min", a, b)
    ratio = g.emit("Div", small, g.where(g.emit("Equal", large, 0), 1, large))
    root = g.emit("Sqrt", g.emit("Add", g.emit("Mul", ratio, ratio), 1))
    return (
        g.where(g.emit("IsInf", large), large, g.emit("Mul", large, root))
        if not _is_integer(large)
        else g.cast(g.emit("Mul", g.cast(large, "float64"), root), large.dtype)
    )


def _integer_hypot(g: Any, a: Any, b: Any) -> Any:
    x = a if isinstance(a, Tensor) else b
    if not _is_integer(x):
        return _hypot(g, a, b)
    wide = [g.cast(y, "float64") if isinstance(y, Tensor) else y for y in (a, b)]
    return g.emit("Sqrt", g.emit("Add", *[g.emit("Mul", y, y) if isinstance(y, Tensor) else y * y for y in wide]))


def _logical(op: str) -> Function:
    def function(g: Any, a: Any, b: Any) -> Any:
        operands = [g.truth(x) if isinstance(x, Tensor) else g.const(x != 0, "bool") for x in (a, b)]
        return g.emit(op, *operands)

    return function


def _not_equal(g: Any, a: Any, b: Any) -> Any:
    return g.emit("Not", g.emit("Equal", a, b))


_NUMBERS = {"add", "sub", "mul", "div", "mod", "power", "maximum", "minimum", "hypot"}
_FUNCTIONS: dict[str, Function] = {
    "add": _direct("Add"), "sub": _direct("Sub"), "mul": _direct("Mul"), "div": _quotient, "mod": modulo,
    "power": _power, "maximum": _direct("Max"), "minimum": _direct("Min"), "hypot": _integer_hypot,
    "equal": _direct("Equal"), "not_equal": _not_equal, "greater": _direct("Greater"),
    "greater_equal": _direct("GreaterOrEqual"), "lesser": _direct("Less"), "lesser_equal": _direct("LessOrEqual"),
    "logical_and": _logical("And"), "logical_or": _logical("Or"), "logical_xor": _logical("Xor"),
}  # fmt: skip


def _of_tensors(name: str, function: Function) -> None:
    export_form(name)(lambda g, node: function(g, *node.inputs))


for _name, _function in _FUNCTIONS.items():
    _of_tensors(f"broadcast_{_name}", _function)
    _of_tensors(f"elemwise_{_name}" if _name in ("add", "sub", "mul", "div") else f"_{_name}", _function)
_of_tensors("_grad_add", _FUNCTIONS["add"])
for _name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    _of_tensors(f"_is_{_name}", _FUNCTIONS[_name.replace("less", "lesser")])


# ------------------------------------------------------------------------------------------------- tensors and numbers
_LIMITS = {"int8": (-(2**7), 2**7 - 1), "uint8": (0, 2**8 - 1), "int32": (-(2**31), 2**31 - 1), "bool": (0, 1)}


def scalar_operands(g: Any, x: Tensor, scalar: Any, dtype: str) -> tuple[Tensor, Any]:
    """The tensor and the number in the dtype in which an operator computes; dtype is that of its result."""
    if isinstance(scalar, Open):
        x = g.cast(x, dtype)
        return x, g.number(scalar, dtype)
    if dtype.startswith(("float", "bfloat")):
        return g.cast(x, dtype), scalar
    number = int(scalar) if math.isfinite(scalar) else 0
    low, high = _LIMITS.get(dtype, (-(2**63), 2**63 - 1))
    compute = dtype if low <= number <= high and dtype != "bool" else "int64"
    return g.cast(x, compute), number


def int_or_none(number: float) -> int | None:
    """The number toward zero; None for infinity and NaN."""
    return int(number) if math.isfinite(number) else None


def _of_scalar(name: str, function: Function, number_first: bool = False, compares: bool = False) -> None:
    def form(g: Any, node: Any) -> Any:
        x = node.inputs[0]
        dtype = node.outputs[0].dtype
        if compares:
            whole = isinstance(node.params["scalar"], Open) or node.params["scalar"] == int_or_none(
                node.params["scalar"]
            )
            dtype = "float64" if _is_integer(x) and not whole else x.dtype if dtype == "bool" else dtype
        x, number = scalar_operands(g, x, node.params["scalar"], dtype)
        return function(g, number, x) if number_first else function(g, x, number)

    export_form(name)(form)


for _name, _function in _FUNCTIONS.items():
    _word = {"add": "plus", "sub": "minus"}.get(_name, _name)
    _of_scalar(f"_{_word}_scalar", _function, compares=_name not in _NUMBERS)
for _name in ("sub", "div", "mod", "power"):
    _of_scalar(f"_r{ {'sub': 'minus'}.get(_name, _name) }_scalar", _FUNCTIONS[_name], number_first=True)
for _name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    _of_scalar(f"_is_{_name}_scalar", _FUNCTIONS[_name.replace("less", "lesser")], compares=True)


@export_form("add_n")
def _add_n(g: Any, node: Any) -> Any:
    first, *others = node.inputs
    if others and first.dtype in ("float32", "float64", "float16"):
        return g.emit("Sum", first, *others)
    for other in others:
        first = g.emit("Add", first, other)
    return first


@export_form("_contrib_quadratic")
def _quadratic(g: Any, node: Any) -> Any:
    x, p = node.inputs[0], node.params
    x = g.cast(x, "float64") if _is_integer(x) else x
    return g.emit("Add", g.emit("Mul", g.emit("Add", g.emit("Mul", x, p["a"]), p["b"]), x), p["c"])


@export_form("_contrib_div_sqrt_dim")
def _div_sqrt_dim(g: Any, node: Any) -> Any:
    x = node.inputs[0]
    size = x.dim(-1)
    if isinstance(size, Open):
        return g.emit("Div", x, g.emit("Sqrt", g.number(size, x.dtype)))
    return g.emit("Mul", x, size**-0.5)


@export_form("smooth_l1")
def _smooth_l1(g: Any, node: Any) -> Any:
    x, square = node.inputs[0], node.params["scalar"] ** 2
    size = g.emit("Abs", x)
    inside = g.emit("Mul", g.emit("Mul", x, x), 0.5 * square)
    if square == 0:
        return inside
    return g.where(g.emit("Less", size, 1 / square), inside, g.emit("Sub", size, 0.5 / square))


@export_form("hard_sigmoid")
def _hard_sigmoid(g: Any, node: Any) -> Any:
    return g.emit("HardSigmoid", node.inputs[0], alpha=node.params["alpha"], beta=node.params["beta"])


# ------------------------------------------------------------------------------------------------------------- integers
def _bitwise(op: str) -> Function:
    def function(g: Any, a: Any, b: Any) -> Any:
        tensors = [x for x in (a, b) if isinstance(x, Tensor)]
        if tensors[0].dtype == "bool":
            return _logical({"BitwiseAnd": "And", "BitwiseOr": "Or", "BitwiseXor": "Xor"}[op])(g, a, b)
        if g.opset < 18:
            return None
        return g.emit(op, a, b)

    return function


def _checked(name: str, op: str) -> None:
    @export_form(name)
    def form(g: Any, node: Any) -> Any:
        from .._export_errors import refuse_use

        made = _bitwise(op)(g, *node.inputs)
        if made is None:
            raise refuse_use(node, f"opset {g.opset} has no {op}", fix="export with opset_version=18 or more")
        return made


_checked("_broadcast_bitwise_and", "BitwiseAnd")
_checked("_broadcast_bitwise_or", "BitwiseOr")
_checked("_broadcast_bitwise_xor", "BitwiseXor")


@export_form("_bitwise_not")
def _bitwise_not(g: Any, node: Any) -> Any:
    x = node.inputs[0]
    if x.dtype == "bool":
        return g.emit("Not", x)
    return g.emit("Sub", -1, x) if x.dtype != "uint8" else g.emit("Sub", 255, x)


@export_form("_broadcast_copysign")
def _copysign(g: Any, node: Any) -> Any:
    """The sign of a zero is that of its reciprocal."""
    a, b = node.inputs
    if _is_integer(b):
        is_negative = g.emit("Less", b, 0)
    else:
        zero = g.emit("Equal", b, 0)
        sign = g.where(zero, g.emit("Reciprocal", b), b)
        is_negative = g.emit("Less", sign, 0)
    size = g.emit("Abs", a)
    return g.where(is_negative, g.emit("Neg", size), size)


@export_form("_broadcast_arctan2")
def _arctan2(g: Any, node: Any) -> Any:
    """The angle of (x, y): arctan of the smaller over the larger, mapped to the octant."""
    y, x = node.inputs
    if _is_integer(y):
        y, x = g.cast(y, "float64"), g.cast(x, "float64")
    ay, ax = g.emit("Abs", y), g.emit("Abs", x)
    large, small = g.emit("Max", ax, ay), g.emit("Min", ax, ay)
    ratio = g.emit("Div", small, g.where(g.emit("Equal", large, 0), 1, large))
    ratio = g.where(g.emit("IsInf", small), 1, ratio)
    angle = g.emit("Atan", ratio)
    angle = g.where(g.emit("Greater", ay, ax), g.emit("Sub", math.pi / 2, angle), angle)
    is_left = g.emit("Less", g.where(g.emit("Equal", x, 0), g.emit("Reciprocal", x), x), 0)
    angle = g.where(is_left, g.emit("Sub", math.pi, angle), angle)
    is_below = g.emit("Less", g.where(g.emit("Equal", y, 0), g.emit("Reciprocal", y), y), 0)
    return g.where(is_below, g.emit("Neg", angle), angle)


def _gcd_steps(g: Any, a: Tensor, b: Tensor) -> Any:
    """Euclid's algorithm as a Loop that ends when all remainders are zero."""
    spec = g._broadcast([a, b], a.dtype)
    a = g.emit("Abs", g.emit("Add", a, g.emit("Mul", b, 0), spec=spec))
    b = g.emit("Abs", g.emit("Add", b, g.emit("Mul", a, 0), spec=spec))

    def more(x: Tensor) -> Tensor:
        flat = g.reduce("Max", g.cast(g.emit("Greater", x, 0), "int32"), range(x.ndim), keepdims=False)
        return g.truth(flat)

    def body(counter: Tensor, carried: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        x, y = carried
        is_done = g.emit("Equal", y, 0)
        rest = g.emit("Mod", x, g.where(is_done, 1, y))
        next_x, next_y = g.where(is_done, x, y), g.where(is_done, 0, rest)
        return more(next_y), [next_x, next_y], []

    carried, _ = g.loop(None, more(b), [a, b], body)
    return carried[0]


@export_form("_broadcast_gcd")
def _gcd(g: Any, node: Any) -> Any:
    return _gcd_steps(g, *node.inputs)


@export_form("_broadcast_lcm")
def _lcm(g: Any, node: Any) -> Any:
    a, b = node.inputs
    divisor = _gcd_steps(g, a, b)
    is_zero = g.emit("Equal", divisor, 0)
    quotient = g.emit("Div", g.emit("Abs", a), g.where(is_zero, 1, divisor))
    return g.where(is_zero, 0, g.emit("Mul", quotient, g.emit("Abs", b)))
