"""Elementwise arithmetic, comparison and logic with broadcasting; either operand may be a number."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..base import numeric_types
from ..errors import TypeError as HybridNetTypeError
from .ndarray import NDArray

__all__ = [
    "add", "divide", "equal", "greater", "greater_equal", "hypot", "lesser", "lesser_equal", "logical_and",
    "logical_or", "logical_xor", "maximum", "minimum", "modulo", "multiply", "not_equal", "pow", "power", "subtract",
    "true_divide",
]  # fmt: skip

_BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "modulo",
    "power",
    "maximum",
    "minimum",
    "hypot",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "lesser",
    "lesser_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
]
PYTHON_OPERATORS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "modulo": lambda a, b: a % b,
    "power": lambda a, b: a**b,
    "maximum": max,
    "minimum": min,
    "hypot": lambda a, b: (a * a + b * b) ** 0.5,
    "equal": lambda a, b: float(a == b),
    "not_equal": lambda a, b: float(a != b),
    "greater": lambda a, b: float(a > b),
    "greater_equal": lambda a, b: float(a >= b),
    "lesser": lambda a, b: float(a < b),
    "lesser_equal": lambda a, b: float(a <= b),
    "logical_and": lambda a, b: float(bool(a) and bool(b)),
    "logical_or": lambda a, b: float(bool(a) or bool(b)),
    "logical_xor": lambda a, b: float(bool(a) != bool(b)),
}


def _binary(name: str, lhs: Any, rhs: Any) -> Any:
    kind = _BINARY.index(name)
    if isinstance(lhs, _core.SymbolBase) or isinstance(rhs, _core.SymbolBase):
        return _core.symbol_binary(kind, lhs, rhs)
    if isinstance(lhs, numeric_types) and isinstance(rhs, numeric_types):
        return PYTHON_OPERATORS[name](lhs, rhs)
    result = _core.binary(kind, lhs, rhs)
    if result is NotImplemented:
        raise HybridNetTypeError(
            name, expected="NDArrays or numbers", given=f"{type(lhs).__name__} and {type(rhs).__name__}"
        )
    return result


def add(lhs: Any, rhs: Any) -> NDArray:
    """Returns lhs + rhs with broadcasting; either may be a number."""
    return _binary("add", lhs, rhs)


def subtract(lhs: Any, rhs: Any) -> NDArray:
    """Returns lhs - rhs with broadcasting; either may be a number."""
    return _binary("subtract", lhs, rhs)


def multiply(lhs: Any, rhs: Any) -> NDArray:
    """Returns lhs * rhs with broadcasting; either may be a number."""
    return _binary("multiply", lhs, rhs)


def divide(lhs: Any, rhs: Any) -> NDArray:
    """Returns lhs / rhs with broadcasting; either may be a number."""
    return _binary("divide", lhs, rhs)


true_divide = divide


def modulo(lhs: Any, rhs: Any) -> NDArray:
    """Returns lhs % rhs with broadcasting; either may be a number."""
    return _binary("modulo", lhs, rhs)


def power(base: Any, exp: Any) -> NDArray:
    """Returns base ** exp with broadcasting; either may be a number."""
    return _binary("power", base, exp)


pow = power


def maximum(lhs: Any, rhs: Any) -> NDArray:
    """Elementwise maximum with broadcasting; either operand may be a number."""
    return _binary("maximum", lhs, rhs)


def minimum(lhs: Any, rhs: Any) -> NDArray:
    """Elementwise minimum with broadcasting; either operand may be a number."""
    return _binary("minimum", lhs, rhs)


def hypot(left: Any, right: Any) -> NDArray:
    """Returns sqrt(left**2 + right**2) with broadcasting; either may be a number."""
    return _binary("hypot", left, right)


def equal(lhs: Any, rhs: Any) -> NDArray:
    """Returns 1 where lhs == rhs, else 0, with broadcasting."""
    return _binary("equal", lhs, rhs)


def not_equal(lhs: Any, rhs: Any) -> NDArray:
    """Returns 1 where lhs != rhs, else 0, with broadcasting."""
    return _binary("not_equal", lhs, rhs)


def greater(lhs: Any, rhs: Any) -> NDArray:
    """Returns 1 where lhs > rhs, else 0, with broadcasting."""
    return _binary("greater", lhs, rhs)


def greater_equal(lhs: Any, rhs: Any) -> NDArray:
    """Returns 1 where lhs >= rhs, else 0, with broadcasting."""
    return _binary("greater_equal", lhs, rhs)


def lesser(lhs: Any, rhs: Any) -> NDArray:
    """Returns 1 where lhs < rhs, else 0, with broadcasting."""
    return _binary("lesser", lhs, rhs)


def lesser_equal(lhs: Any, rhs: Any) -> NDArray:
    """Returns 1 where lhs <= rhs, else 0, with broadcasting."""
    return _binary("lesser_equal", lhs, rhs)


def logical_and(lhs: Any, rhs: Any) -> NDArray:
    """Returns 1 where both operands are nonzero, else 0, with broadcasting."""
    return _binary("logical_and", lhs, rhs)


def logical_or(lhs: Any, rhs: Any) -> NDArray:
    """Returns 1 where at least one operand is nonzero, else 0, with broadcasting."""
    return _binary("logical_or", lhs, rhs)


def logical_xor(lhs: Any, rhs: Any) -> NDArray:
    """Returns 1 where exactly one operand is nonzero, else 0, with broadcasting."""
    return _binary("logical_xor", lhs, rhs)
