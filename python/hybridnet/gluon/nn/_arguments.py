"""Checks of the arguments of layers."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ParamError, suggestion

__all__ = ["fraction", "one_of", "positive", "sizes", "unknown_or_positive"]


def _keyword(what: str) -> str:
    return what.rpartition(".")[2]


def _integer_fix(what: str, value: Any, otherwise: str) -> str:
    if isinstance(value, (float, np.floating)) and value >= 1 and value.is_integer():
        return f"pass {_keyword(what)}={int(value)}"
    return otherwise


def positive(what: str, value: int) -> int:
    """Returns value if it is an int >= 1. `what`: "Dense.units". Raises ParamError."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        fix = _integer_fix(what, value, f"pass one integer, such as {_keyword(what)}=16")
        raise ParamError(what, expected="an int >= 1", given=repr(value), fix=fix)
    return int(value)


def unknown_or_positive(what: str, value: int) -> int:
    """Returns value if it is an int >= 1, or 0 or -1 for a size that the first batch determines. Raises ParamError."""
    if not isinstance(value, (int, numbers.Integral)) or isinstance(value, bool) or value < -1:
        fix = _integer_fix(what, value, "leave it out: the first batch determines the size")
        raise ParamError(what, expected="an int >= 1, or 0 or -1 for unknown", given=repr(value), fix=fix)
    return max(int(value), 0)


def _padding_fix(what: str, value: Any) -> str | None:
    """The fix for a padding that other libraries take as a word; None for other arguments and values."""
    if _keyword(what) != "padding" or not isinstance(value, str):
        return None
    if value.lower() == "valid":
        return "pass padding=0"
    if value.lower() == "same" and "Pool" in what:
        return "pass padding=pool_size // 2 for an odd pool_size, ceil_mode=True for an even one"
    if value.lower() == "same":
        return "pass padding=kernel_size // 2, such as padding=1 for 3 and padding=2 for 5"
    return None


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
        least = max(minimum, 1)
        keyword = _keyword(what)
        fix = _padding_fix(what, value) or f"pass {keyword}={least}, or {keyword}={(least,) * count}"
        raise ParamError(what, expected=f"an int or {count} ints >= {minimum}", given=repr(value), fix=fix)
    return tuple(int(v) for v in result)


def one_of(what: str, value: str, choices: Sequence[str]) -> str:
    """Returns value if it is one of choices. Raises ParamError."""
    if value not in choices:
        expected = f"one of {', '.join(map(repr, choices))}"
        raise ParamError(what, expected=expected, given=repr(value), fix=suggestion(str(value), choices))
    return value


def fraction(what: str, value: float) -> float:
    """Returns value if it is a number in [0, 1]. Raises ParamError."""
    if isinstance(value, numbers.Real) and 0 <= value <= 1:
        return value
    if isinstance(value, numbers.Real) and 1 < value <= 100:
        fix = f"pass {_keyword(what)}={value / 100:g} for {value} percent"
    else:
        fix = f"pass a fraction, such as {_keyword(what)}=0.5"
    raise ParamError(what, expected="a number in [0, 1]", given=repr(value), fix=fix)
