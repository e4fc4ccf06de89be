"""Operators by name, also where a function or method of this package has the same name."""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import _core

__all__ = ["main_operator"]


@cache
def main_operator(name: str) -> Any:
    """The operator's function object for NDArrays."""
    return _core.op_function(name, name, "hybridnet.ndarray")
