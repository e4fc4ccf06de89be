"""Remainders, powers, and functions of the bits of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arithmetic import calculate
from .._element_types import bits_of, is_signed, wrapped
from .._table import form

_FLOATS = ("float32", "float64", "float16", "bfloat16")
_POWER = ("broadcast_power", "_power_scalar", "_rpower_scalar")


@form("Mod")
def mod(g: Any, node: Any, a: Any, b: Any) -> Any:
    """A remainder, with the sign of the divisor, or of the dividend if fmod is set. It is NaN for floats modulo 0."""
    is_float = a.dtype in _FLOATS
    if not node.attr("fmod", 0):
        return (
            _nan_at_zero(g, calculate(g, "%", a, b, node.name), b) if is_float else calculate(g, "%", a, b, node.name)
        )
    if not is_float:
        quotient = calculate(g, "/", a, b)
        return calculate(g, "-", a, calculate(g, "*", quotient, b), node.name)
    size = calculate(g, "%", g.emit("abs", [a]), g.emit("abs", [b]))
    return _nan_at_zero(g, g.emit("_npi_copysign", [size, a], name=node.name), b)


def _nan_at_zero(g: Any, remainder: Any, divisor: Any) -> Any:
    if divisor.is_const and np.all(divisor.const != 0):
        return remainder
    is_zero = g.emit("_npi_equal_scalar", [divisor], scalar=0)
    return g.emit("_npi_where_lscalar", [is_zero, remainder], scalar=float("nan"))


@form("Pow")
def power(g: Any, node: Any, a: Any, b: Any) -> Any:
    """A power in the dtype of the base; an exponent of another dtype is not rounded to it first."""
    if a.dtype != b.dtype and a.dtype in _FLOATS and b.is_const and b.const.size == 1 and b.ndim <= a.ndim:
        return g.emit("_power_scalar", [a], name=node.name, scalar=b.const.reshape(-1)[0].item())
    both = a.dtype if a.dtype == b.dtype else _common(a.dtype, b.dtype)
    result = g.arithmetic(node.name, _POWER, g.cast(a, both), g.cast(b, both))
    return wrapped(g, g.cast(result, a.dtype), a.element)


def _common(base: str, exponent: str) -> str:
    if base not in _FLOATS:
        return "float64" if exponent in _FLOATS else "int64"
    return "float64" if "float64" in (base, exponent) else "float32"


@form("BitwiseNot")
def bitwise_not(g: Any, node: Any, x: Any) -> Any:
    return wrapped(g, g.emit("_npi_bitwise_not", [x], name=node.name), x.element)


def _bitwise(onnx_name: str, op: str) -> None:
    @form(onnx_name)
    def make(g: Any, node: Any, a: Any, b: Any) -> Any:
        return g.emit(op, [a, b], name=node.name)


for _name in ("And", "Or", "Xor"):
    _bitwise(f"Bitwise{_name}", f"_npi_bitwise_{_name.lower()}")


@form("BitShift")
def bit_shift(g: Any, node: Any, x: Any, by: Any) -> Any:
    """A shift, as a product or quotient with a power of two. A count out of range shifts all bits out."""
    bits = bits_of(x)
    count = g.cast(by, "int64")
    out_of_range = g.emit("_npi_less_scalar", [count], scalar=0)
    count = g.emit("_npi_where", [out_of_range, g.constant(np.array(bits)), _limited(g, count, bits)])
    wide = g.cast(x, "int64")
    if node.attr("direction") == "LEFT":
        return wrapped(g, g.cast(_left(g, wide, count), x.dtype, node.name), x.element)
    shifted = _right(g, wide, count)
    if bits == 64 and not is_signed(x):  # the bits that enter are 0, not copies of the sign
        entered = _left(g, g.constant(np.array(-1)), calculate(g, "-", 64, count))
        shifted = g.emit("_npi_bitwise_and", [shifted, g.emit("_npi_bitwise_not", [entered])])
    return g.cast(shifted, x.dtype, node.name)


def _limited(g: Any, count: Any, most: int) -> Any:
    return calculate(g, "min", count, most)


def _powers_of_two(g: Any, count: Any) -> list[Any]:
    """Two factors whose product is 2 to the power of a count up to 64; int64 holds each of them."""
    first = _limited(g, count, 32)
    rest = calculate(g, "-", count, first)
    return [g.emit("_rpower_scalar", [part], scalar=2) for part in (first, rest)]


def _left(g: Any, x: Any, count: Any) -> Any:
    for factor in _powers_of_two(g, count):
        x = calculate(g, "*", x, factor)
    return x


def _right(g: Any, x: Any, count: Any) -> Any:
    for factor in _powers_of_two(g, count):
        x = g.emit("_npi_floor_divide", [x, factor])
    return x
