"""Arithmetic with arrays of sizes: the results are numbers and sizes again, and no nodes are made for them.

Files compute the parameters of their nodes in the graph: ``Shape``, ``Gather``, ``Mul``, ``Concat``, then ``Reshape``.
The operators that such chains are made of are here and in size_arrays.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arithmetic import total
from .._node import dtype_of
from .._size_arithmetic import divided, held, is_never_negative, remainder, without_fraction
from .._sizes import Number, apply, is_number
from .._table import on_sizes
from .._values import Value, sizes_of

Sized = list[tuple[np.ndarray, str]]
Rule = Callable[..., Number]  # from elements to an element

_MOST_FACTORS = 16  # powers with more factors are not written as products


class _NoSize(Exception):
    """The result is no expression of sizes."""


def _mapped(rule: Rule, *arrays: Any) -> np.ndarray:
    """Applies a rule to the elements of arrays, by NumPy's broadcasting."""
    made = np.frompyfunc(rule, len(arrays), 1)(*arrays)
    return np.asarray(made, dtype=object)


def _computed(rule: Rule, dtype: str, *values: Value) -> Sized | None:
    try:
        array = _mapped(rule, *[sizes_of(value) for value in values])
        return [(_mapped(lambda item: held(item, dtype), array), dtype)]
    except (_NoSize, ZeroDivisionError, OverflowError):
        return None


def _simple(operator: str) -> Rule:
    return lambda *items: apply(operator, *items)


def _of_all(operator: str) -> Rule:
    return lambda *items: total(operator, items)


def _equal(a: Number, b: Number) -> Number:
    for size, other in ((a, b), (b, a)):
        if not is_number(size) and is_never_negative(size) and is_number(other) and other < 0:  # type: ignore[operator]
            return 0  # files ask whether a size is -1
    return apply("==", a, b)


def _negated(a: Number) -> Number:
    return apply("==", a, 0)


def _chosen(condition: Number, x: Number, y: Number) -> Number:
    if is_number(condition):
        return x if condition else y
    return apply("?", condition, x, y)


def _root(item: Any) -> Number:
    if not is_number(item) or item < 0:
        raise _NoSize
    return float(item**0.5)


def _power(base: Any, exponent: Any) -> Number:
    if not is_number(exponent) or not (is_number(base) or exponent in range(_MOST_FACTORS)):
        raise _NoSize
    if is_number(base):
        result: float = base**exponent
        return result
    return total("*", [1, *[base] * int(exponent)])


# In the dtype of the last input.
_ARITHMETIC: dict[str, Rule] = {
    "Abs": _simple("abs"),
    "Add": _simple("+"),
    "Ceil": _simple("ceil"),
    "Floor": _simple("floor"),
    "Max": _of_all("max"),
    "Min": _of_all("min"),
    "Mul": _simple("*"),
    "Neg": _simple("neg"),
    "Round": _simple("round"),
    "Sqrt": _root,
    "Sub": _simple("-"),
    "Sum": _of_all("+"),
    "Where": _chosen,
}

# With results of bool.
_QUESTIONS: dict[str, Rule] = {
    "And": _simple("min"),
    "Equal": _equal,
    "Greater": lambda a, b: apply("<", b, a),
    "GreaterOrEqual": lambda a, b: apply("<=", b, a),
    "Less": _simple("<"),
    "LessOrEqual": _simple("<="),
    "Not": _negated,
    "Or": _simple("max"),
}


def _elementwise(name: str, rule: Rule, dtype: str | None) -> None:
    @on_sizes(name)
    def compute(g: Any, node: Any, *values: Value) -> Sized | None:
        return _computed(rule, dtype or values[-1].dtype, *values)


for _name, _rule in _ARITHMETIC.items():
    _elementwise(_name, _rule, None)
for _name, _rule in _QUESTIONS.items():
    _elementwise(_name, _rule, "bool")


@on_sizes("Div")
def divide(g: Any, node: Any, a: Value, b: Value) -> Sized | None:
    """Quotients; those of integers lose their fraction."""
    return _computed(lambda x, y: divided(x, y, a.dtype), a.dtype, a, b)


@on_sizes("Reciprocal")
def reciprocal(g: Any, node: Any, x: Value) -> Sized | None:
    return _computed(lambda item: divided(1, item, x.dtype), x.dtype, x)


@on_sizes("Mod")
def mod(g: Any, node: Any, a: Value, b: Value) -> Sized | None:
    return _computed(lambda x, y: remainder(x, y, bool(node.attr("fmod", 0))), a.dtype, a, b)


@on_sizes("Pow")
def power(g: Any, node: Any, base: Value, exponent: Value) -> Sized | None:
    """Powers of numbers, and of sizes by small whole exponents."""
    return _computed(_power, base.dtype, base, exponent)


@on_sizes("Clip")
def clip(g: Any, node: Any, x: Value, least: Value | None = None, most: Value | None = None) -> Sized | None:
    """Numbers between limits."""
    if node.version < 11:
        return None
    made: Any = sizes_of(x)
    for rule, limit in ((_simple("max"), least), (_simple("min"), most)):
        made = made if limit is None else _mapped(rule, made, sizes_of(limit))
    return [(made, x.dtype)]


@on_sizes("Cast")
def cast(g: Any, node: Any, x: Value) -> Sized | None:
    return _converted(x, dtype_of(node.attr("to"), node.proto))


@on_sizes("CastLike")
def cast_like(g: Any, node: Any, x: Value, like: Value) -> Sized | None:
    return _converted(x, like.dtype)


def _converted(x: Value, dtype: str) -> Sized | None:
    """Another dtype; to integers without the fraction."""
    if dtype == "bool":
        return _computed(lambda item: _negated(_negated(item)), dtype, x)
    is_float = dtype.startswith(("float", "bfloat"))
    return _computed(lambda item: item if is_float else without_fraction(item), dtype, x)


def _reduction(name: str, operator: str, first_with_input: int) -> None:
    """first_with_input: the opset from which on the axes are an input."""

    @on_sizes(name)
    def compute(g: Any, node: Any, x: Value, axes: Value | None = None) -> Sized | None:
        array: Any = sizes_of(x)
        given: Any = node.attr("axes") if node.version < first_with_input else None
        if axes is not None:
            given = sizes_of(axes)
            given = [int(item) for item in given.reshape(-1)]
        if not given and node.attr("noop_with_empty_axes", 0):
            return [(array, x.dtype)]
        if array.size == 0:
            return None
        joined = np.frompyfunc(_simple(operator), 2, 1)
        for axis in sorted(axis % array.ndim for axis in given or range(array.ndim))[::-1]:
            array = np.asarray(joined.reduce(array, axis=axis, keepdims=bool(node.attr("keepdims", 1))), dtype=object)
        return [(_mapped(lambda item: held(item, x.dtype), array), x.dtype)]


_reduction("ReduceProd", "*", 18)
_reduction("ReduceSum", "+", 13)
_reduction("ReduceMax", "max", 18)
_reduction("ReduceMin", "min", 18)

__all__ = ["cast", "cast_like", "clip", "divide", "mod", "power", "reciprocal"]
