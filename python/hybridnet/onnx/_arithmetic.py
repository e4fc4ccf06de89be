"""Steps that several forms share: arithmetic of tensors with numbers and sizes, counting, cutting, permuting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._builder import Runtime
from ._sizes import Number, Size, apply
from ._values import Value

__all__ = ["Term", "calculate", "count", "cut", "join", "permute", "terms", "total"]

# The operators of two tensors, of a tensor and a number, and of a number and a tensor.
_OPERATORS = {
    "+": ("broadcast_add", "_plus_scalar", "_plus_scalar"),
    "-": ("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "*": ("broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "/": ("broadcast_div", "_div_scalar", "_rdiv_scalar"),
    "%": ("broadcast_mod", "_mod_scalar", "_rmod_scalar"),
    "max": ("broadcast_maximum", "_maximum_scalar", "_maximum_scalar"),
    "min": ("broadcast_minimum", "_minimum_scalar", "_minimum_scalar"),
    "<": ("broadcast_lesser", "_lesser_scalar", "_greater_scalar"),
    "<=": ("broadcast_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar"),
    "==": ("broadcast_equal", "_equal_scalar", "_equal_scalar"),
}

Term = Any  # a Value, a number, or a Size


def calculate(g: Any, operator: str, a: Term, b: Term, name: str = "") -> Any:
    """An operator of two terms. Tensors have one dtype, which comparisons keep: they give 1 and 0."""
    if not isinstance(a, Value) and not isinstance(b, Value):
        return apply(operator, a, b)
    both, number_last, number_first = _OPERATORS[operator]
    if not isinstance(b, Value):
        return g.emit(number_last, [a], name=name, scalar=b)
    if not isinstance(a, Value):
        return g.emit(number_first, [b], name=name, scalar=a)
    return g.arithmetic(name, (both, number_last, number_first), a, b)


def total(operator: str, terms: Sequence[Number]) -> Number:
    """All terms joined by an operator: a product of sizes, for example."""
    result = terms[0]
    for term in terms[1:]:
        result = apply(operator, result, term)
    return result


def terms(g: Any, value: Value) -> list[Term]:
    """The elements of a vector: numbers and Sizes, or float64 tensors of one element if they are computed from data."""
    items = g.items(value)
    if not any(isinstance(item, Runtime) for item in items):
        return list(items)
    whole = g.cast(g.reshape(value, [-1]), "float64")
    return [cut(g, whole, 0, index, index + 1) for index in range(len(items))]


def count(g: Any, size: Term, dtype: str, shape: Sequence[int] = (-1,)) -> Value:
    """The numbers 0, 1, 2 ... up to a size, exclusive. shape: -1 for their axis, and axes of size 1 around it."""
    if isinstance(size, Value):
        shapes = tuple((length,) for length in g.data_size())
        line = g.emit("_arange", [], start=0, stop=Runtime(size, 0), shapes=shapes, dtype=dtype)
    elif isinstance(size, Size):
        line = g.emit("_arange", [], start=0, stop=size, dtype=dtype)
    else:
        line = g.constant(range(int(size)), "numbers", dtype)
    return line if tuple(shape) == (-1,) else g.reshape(line, shape)


def cut(g: Any, value: Value, axis: int, begin: Any, end: Any, name: str = "") -> Value:
    """The elements begin to end, exclusive, of an axis; end may be None."""
    return g.emit("slice_axis", [value], name=name, axis=axis, begin=begin, end=end)


def join(g: Any, values: Sequence[Value], axis: int, name: str = "") -> Value:
    """Tensors one after another along an axis."""
    if len(values) == 1:
        return values[0]
    return g.emit("Concat", values, name=name, num_args=len(values), dim=axis)


def permute(g: Any, value: Value, axes: Sequence[int], name: str = "") -> Value:
    """Axis i of the result is axis axes[i] of the value."""
    if list(axes) == list(range(value.ndim)):
        return value
    return g.emit("transpose", [value], name=name, axes=tuple(axes))
