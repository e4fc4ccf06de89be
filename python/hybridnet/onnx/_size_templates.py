"""Parameters with expressions over sizes and values of inputs: the templates of _with_sizes and _with_values.

``shape=({#0.0},{#1.1 2 *},-1)``: see src/ops/sized/size_template.h.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from ._export_values import Element, Number, Open, Tensor, merged
from ._sizes import OPERATORS, num_operands

__all__ = ["filled", "typed_params"]


def typed_params(op: str, attrs: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of an operator as Python values, from their texts."""
    params = {}
    for described in _core.describe_op(op)["fields"]:
        text = attrs.get(described["name"])
        if text is None:
            default = described["default"]
            params[described["name"]] = tuple(default) if isinstance(default, list) else default
        elif described["kind"].split(" or ")[0] in ("int", "float", "bool", "tuple of int", "tuple of float"):
            params[described["name"]] = ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
        else:
            params[described["name"]] = text
    return params


class _Part:
    """A number of an expression: its value for each trial; the Number, if it is a size; the two sizes of a quotient."""

    def __init__(self, trials: Sequence[float], number: Number | None, quotient: Any = None) -> None:
        self.trials, self.number, self.quotient = tuple(trials), number, quotient

    def result(self) -> Any:
        """A number, or an Open."""
        if self.number is not None:
            return self.number
        if len(set(self.trials)) == 1:
            return self.trials[0]
        return Open([int(trial) for trial in self.trials])


def _applied(token: str, operands: list[_Part]) -> _Part:
    trials = [OPERATORS[token](*values) for values in zip(*(part.trials for part in operands), strict=True)]
    numbers = [part.number for part in operands]
    number: Any = None
    quotient = None
    if token in ("floor", "ceil", "trunc", "round") and numbers[0] is not None:
        number = numbers[0]  # an integer already
    elif token in ("floor", "trunc") and operands[0].quotient is not None:
        number = operands[0].quotient[0] // operands[0].quotient[1]
    elif token == "ceil" and operands[0].quotient is not None:
        a, b = operands[0].quotient
        number = (a + (b - 1)) // b
    elif all(x is not None for x in numbers):
        known: list[Any] = [x for x in numbers if x is not None]
        a, b = (*known, 0)[:2]
        if token == "/":
            quotient = (a, b)
        elif token in ("+", "-", "*", "//", "%"):
            number = {
                "+": lambda: a + b,
                "-": lambda: a - b,
                "*": lambda: a * b,
                "//": lambda: a // b,
                "%": lambda: a % b,
            }[token]()
        elif token == "neg":
            number = 0 - a
        elif token in ("max", "min"):
            number = _extreme(token, a, b)
    if number is not None and not isinstance(number, Open):
        number = int(number)
    return _Part(trials, number, quotient)


def _extreme(token: str, a: Any, b: Any) -> Any:
    if not isinstance(a, Open):
        a, b = b, a
    if not isinstance(a, Open):
        return max(a, b) if token == "max" else min(a, b)
    return a.maximum(b) if token == "max" else a.minimum(b)


def _leaf(token: str, inputs: Sequence[Tensor], trials: int) -> _Part:
    if token[0] == "#":
        place, _, axis = token[1:].partition(".")
        tensor = inputs[int(place)]
        if not axis:
            return _Part([tensor.ndim] * trials, tensor.ndim)
        number = tensor.dim(int(axis))
        return _Part(number.trials if isinstance(number, Open) else [number] * trials, number)
    if token[0] == "@":
        place, _, index = token[1:].partition(".")
        element = _element(inputs, int(place), int(index or 0), trials)
        return _Part(element.trials, element)
    value = float(token)
    whole = int(value) if value == int(value) else None
    return _Part([value if whole is None else whole] * trials, whole)


def _element(inputs: Sequence[Tensor], place: int, index: int, trials: int) -> Open:
    """A value of an input; the numbers for the trials are invented: 1 and 2 for two trials, which are within most
    limits, others for more, which differ from those of other values."""
    first = 1 if trials == 2 else 2 + 3 * index + 200 * place
    return Open([first + trial for trial in range(trials)], Element(inputs[place], index))


def _evaluated(expression: str, inputs: Sequence[Tensor], trials: int) -> Any:
    """The result of an expression: a number, an Open, or a list of Opens for all values of an input."""
    tokens = expression.split()
    if len(tokens) == 1 and tokens[0][0] == "@" and "." not in tokens[0]:
        place = int(tokens[0][1:])
        count = int(inputs[place].dim(0)) if inputs[place].ndim else 1
        return [_element(inputs, place, index, trials) for index in range(count)]
    stack: list[_Part] = []
    for token in tokens:
        if token in OPERATORS:
            count = num_operands(token)
            operands = stack[-count:]
            del stack[-count:]
            stack.append(_applied(token, operands))
        else:
            stack.append(_leaf(token, inputs, trials))
    return stack[0].result()


def filled(op: str, template: str, inputs: Sequence[Tensor], trials: int) -> dict[str, Any]:
    """The parameters of an operator from a template: numbers that depend on sizes are Opens with their expressions."""
    texts: list[dict[str, str]] = [{} for _ in range(trials)]
    known: dict[tuple[int, ...], Open] = {}

    def text_of(value: Any, trial: int) -> str:
        if isinstance(value, list):
            return ",".join(text_of(item, trial) for item in value)
        if isinstance(value, Open):
            known.setdefault(value.trials, value)
            return str(value.trials[trial])
        return str(int(value)) if value == int(value) else repr(value)

    for part in filter(None, template.split(";")):
        name, _, text = part.partition("=")
        pieces = re.split(r"\{([^}]*)\}", text)
        values = [_evaluated(piece, inputs, trials) if i % 2 else piece for i, piece in enumerate(pieces)]
        for trial in range(trials):
            made = "".join(value if i % 2 == 0 else text_of(value, trial) for i, value in enumerate(values))
            texts[trial][name] = re.sub(r",\s*,", ",", made)
    params = [typed_params(op, one) for one in texts]
    return {key: _with_forms(merged([one[key] for one in params]), known) for key in params[0]}


def _with_forms(value: Any, known: dict[tuple[int, ...], Open]) -> Any:
    if isinstance(value, Open):
        return known.get(value.trials, value)
    if isinstance(value, (tuple, list)):
        return tuple(_with_forms(item, known) for item in value)
    return value
