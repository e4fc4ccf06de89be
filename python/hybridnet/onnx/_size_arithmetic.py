"""Arithmetic of numbers and Sizes by the rules of ONNX's element types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ndarray._dtypes import numpy_dtype
from ._sizes import Dim, Item, Number, Size, apply, is_number, num_operands

__all__ = ["divided", "held", "is_never_negative", "is_whole", "remainder", "without_fraction"]

_INTEGERS = {"int8", "uint8", "int32", "int64"}
# Digits that a dtype does not keep of the 53 of an expression's numbers.
_LOST_DIGITS = {"float32": 29, "float16": 42, "bfloat16": 45}
_ROUNDED = {"floor", "ceil", "trunc", "round", "//", "==", "<", "<="}


def held(value: Number, dtype: str) -> Number:
    """The number that a tensor of the dtype holds: integers wrap around, floats are rounded."""
    if isinstance(value, Size):
        return value if dtype not in _LOST_DIGITS or is_whole(value) else _rounded(value, _LOST_DIGITS[dtype])
    if dtype == "bool":
        return int(bool(value))
    if dtype in _INTEGERS:
        bits = 8 * np.dtype(dtype).itemsize
        low = 0 if dtype.startswith("u") else -(1 << (bits - 1))
        return (int(value) - low) % (1 << bits) + low
    number: float = float(np.asarray(value, dtype="float64").astype(numpy_dtype(dtype)))
    return number


def _rounded(size: Size, digits: int) -> Number:
    """Veltkamp's splitting: (c * x) - (c * x - x) for c = 2^digits + 1 is x without the last digits, rounded."""
    scaled = apply("*", size, 2**digits + 1)
    return apply("-", scaled, apply("-", scaled, size))


def _holds(value: Number, of_leaf: Callable[[float], bool], rule: Callable[[str, list[bool]], bool]) -> bool:
    """Whether a property is certain for the result of an expression. of_leaf: for numbers; Dims have it. rule: for the
    result of an operator, from its name and whether its operands have the property."""
    if not isinstance(value, Size):
        return of_leaf(value)
    stack: list[bool] = []
    for token in value.expression:
        if isinstance(token, Dim):
            stack.append(True)
        elif isinstance(token, Item):
            stack.append(of_leaf(-1.0))
        elif token[-1].isdigit() or token.endswith(("inf", "nan")):
            stack.append(of_leaf(float(token)))
        else:
            count = num_operands(token)
            operands = stack[-count:]
            del stack[-count:]
            stack.append(rule(token, operands[1:] if token == "?" else operands))
    return stack[0]


def is_whole(value: Number) -> bool:
    """Whether the number has no fraction, for any sizes."""
    return _holds(
        value,
        lambda number: math.isfinite(number) and number == int(number),
        lambda operator, operands: operator in _ROUNDED or (operator != "/" and all(operands)),
    )


def is_never_negative(value: Number) -> bool:
    """Whether the number is 0 or above, for any sizes. False if that is not certain."""

    def rule(operator: str, operands: list[bool]) -> bool:
        if operator in ("-", "neg"):
            return False
        if operator == "max":
            return any(operands)
        return operator in ("abs", "==", "<", "<=") or (operands[1] if operator == "%" else all(operands))

    return _holds(value, lambda number: number >= 0, rule)


def divided(a: Any, b: Any, dtype: str) -> Number:
    """A quotient; of integers without its fraction."""
    if dtype not in _INTEGERS:
        return apply("/", a, b)
    if is_number(a) and is_number(b):
        return abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
    if is_never_negative(a) and is_never_negative(b):
        return apply("//", a, b)
    return apply("trunc", apply("/", a, b))


def remainder(a: Any, b: Any, of_dividend: bool) -> Number:
    """The remainder of a division, with the sign of the divisor, or of the dividend."""
    if not of_dividend:
        return apply("%", a, b)
    if is_number(a) and is_number(b):
        return math.fmod(a, b) if isinstance(a, float) or isinstance(b, float) else int(math.fmod(a, b))
    return apply("-", a, apply("*", b, apply("trunc", apply("/", a, b))))


def without_fraction(value: Number) -> Number:
    """The number rounded toward zero, as casts to integers do."""
    return value if is_whole(value) else apply("trunc", value)
