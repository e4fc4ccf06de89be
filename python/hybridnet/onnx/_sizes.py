"""Sizes that depend on the shapes of inputs.

An ONNX file computes with sizes in the graph: ``Shape``, ``Gather``, ``Mul``, ``Concat``, then ``Reshape``. While a
file is imported, small tensors of integers that follow from shapes are arrays of numbers and :class:`Size` objects. A
Size is an expression over the sizes of arrays; operators receive it as an expression of ``_with_sizes``, so one graph
serves all sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import TypeError as HybridNetTypeError

__all__ = ["OPERATORS", "Dim", "Item", "Number", "Size", "apply", "is_number", "num_operands", "text_of"]


@dataclass(frozen=True)
class Dim:
    """The size of axis `axis` of a value (of the importer)."""

    value: Any
    axis: int


@dataclass(frozen=True)
class Item:
    """Element `index` of a value (of the importer) that holds integers: a number that a loop carries."""

    value: Any
    index: int


@dataclass(frozen=True)
class Size:
    """An expression over sizes in postfix notation, and its result for each of the importer's trial sizes."""

    trials: tuple[float, ...]
    expression: tuple[Dim | Item | str, ...]

    @property
    def reads_data(self) -> bool:
        """Whether it follows from the elements of a tensor, too: nodes with such parameters cut the graph."""
        return any(isinstance(token, Item) for token in self.expression)

    def __bool__(self) -> bool:
        raise HybridNetTypeError("the size is not known while the file is imported")


Number = int | float | Size

# The operators of expressions, and the number of operands of those that do not have two.
OPERATORS: dict[str, Callable[..., float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: math.floor(a / b),
    "%": lambda a, b: a - b * math.floor(a / b),
    "max": max,
    "min": min,
    "==": lambda a, b: int(a == b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    "?": lambda condition, a, b: a if condition else b,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "neg": lambda a: -a,
    "abs": abs,
}
_OTHER_COUNTS = {"?": 3, **dict.fromkeys(("floor", "ceil", "trunc", "round", "neg", "abs"), 1)}


def num_operands(operator: str) -> int:
    """The number of operands of an operator."""
    return _OTHER_COUNTS.get(operator, 2)


def is_number(value: Any) -> bool:
    """Whether it is a number that is known while the file is imported."""
    return not isinstance(value, Size)


def _expression(value: Number) -> tuple[Dim | Item | str, ...]:
    return value.expression if isinstance(value, Size) else (text_of(value),)


def text_of(number: float) -> str:
    """The text of a number in an expression: integers have no point."""
    return str(int(number)) if abs(number) < 2**53 and number == int(number) else repr(float(number))


def apply(operator: str, *operands: Number) -> Number:
    """Applies an operator of the expressions to numbers and sizes.

    ``//`` and ``%`` round down; ``?`` takes a condition and two values; a division by zero raises ZeroDivisionError.
    """
    function = OPERATORS[operator]
    if all(is_number(operand) for operand in operands):
        return function(*operands)
    count = max(len(operand.trials) for operand in operands if isinstance(operand, Size))
    trials = tuple(
        function(*(operand.trials[i] if isinstance(operand, Size) else operand for operand in operands))
        for i in range(count)
    )
    return Size(trials, (*_joined(map(_expression, operands)), operator))


def _joined(parts: Iterable[tuple[Dim | Item | str, ...]]) -> tuple[Dim | Item | str, ...]:
    return tuple(token for part in parts for token in part)
