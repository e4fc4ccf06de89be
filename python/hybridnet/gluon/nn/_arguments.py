"""Checks of the arguments of layers."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from ...errors import ParamError

__all__ = ["one_of", "positive", "sizes", "unknown_or_positive"]


def positive(what: str, value: int) -> int:
    """Returns value if it is an int >= 1. `what`: "Dense.units". Raises ParamError."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ParamError(what, expected="an int >= 1", given=repr(value))
    return int(value)


def unknown_or_positive(what: str, value: int) -> int:
    """Returns value if it is an int >= 1, or 0 or -1 for a size that the first batch determines. Raises ParamError."""
    if not isinstance(value, (int, numbers.Integral)) or isinstance(value, bool) or value < -1:
        raise ParamError(what, expected="an int >= 1, or 0 or -1 for unknown", given=repr(value))
    return max(int(value), 0)


def sizes(what: str, value: int | Sequence[int], count: int, minimum: int) -> tuple[int, ...]:
    """Returns count ints >= minimum from one int or a sequence. Raises ParamError."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        result: tuple[Any, ...] = (int(value),) * count
    else:
        try:
            result = tuple(value)  # type: ignore[arg-type]
        except TypeError:
            result = (None,)
    if len(result) != count or not all(isinstance(v, numbers.Integral) and int(v) >= minimum for v in result):
        raise ParamError(what, expected=f"an int or {count} ints >= {minimum}", given=repr(value))
    return tuple(int(v) for v in result)


def one_of(what: str, value: str, choices: Sequence[str]) -> str:
    """Returns value if it is one of choices. Raises ParamError."""
    if value not in choices:
        raise ParamError(what, expected=f"one of {', '.join(map(repr, choices))}", given=repr(value))
    return value
