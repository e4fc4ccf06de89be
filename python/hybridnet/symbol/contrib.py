"""Contributed operators, making nodes, and the control-flow functions."""

from __future__ import annotations

from typing import Any

from ..ops.namespace import lazy_functions
from .symbol import Symbol

_lazy, __dir__ = lazy_functions(globals(), "contrib", symbolic=True)
_CONTROL_FLOW = ("cond", "foreach", "while_loop")


def __getattr__(name: str) -> Any:
    if name in _CONTROL_FLOW:
        from ..contrib import control_flow

        return getattr(control_flow, name)
    return _lazy(name)


def isinf(data: Symbol) -> Symbol:
    """1 where data is infinite, else 0."""
    return data.abs() == float("inf")


def isnan(data: Symbol) -> Symbol:
    """1 where data is not a number, else 0."""
    return data != data


def isfinite(data: Symbol) -> Symbol:
    """1 where data is a finite number, else 0."""
    return (data.abs() != float("inf")) * (data == data)
