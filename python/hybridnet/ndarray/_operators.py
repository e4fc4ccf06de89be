"""Operators by name, even if a function or method of this package has the same name."""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import _core

__all__ = ["main_operator"]


@cache
def main_operator(name: str) -> Any:
    """The operator's function object for NDArrays."""
    return _core.op_function(name, name, "hybridnet.ndarray")


# Kinds of _core.binary, by the names of NumPy's universal functions.
UFUNC_OPERATORS = {
    "add": 0, "subtract": 1, "multiply": 2, "divide": 3, "true_divide": 3, "remainder": 4, "power": 5, "float_power": 5,
    "equal": 9, "not_equal": 10, "greater": 11, "greater_equal": 12, "less": 13, "less_equal": 14,
}  # fmt: skip
