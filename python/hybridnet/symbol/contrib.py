"""Contributed operators, creating nodes, and the control-flow functions."""

from __future__ import annotations

from typing import Any

from .._public_names import dir_of
from ..ops._contrib import isfinite as isfinite
from ..ops._contrib import isinf as isinf
from ..ops._contrib import isnan as isnan
from ..ops._contrib import zipfian_classes
from ..ops._namespace import lazy_functions
from .symbol import Symbol

_lazy, _names = lazy_functions(globals(), "contrib", symbolic=True)
_CONTROL_FLOW = ("cond", "foldl", "foldr", "foreach", "map", "reduce", "scan", "until", "while_loop")


def __getattr__(name: str) -> Any:
    if name in _CONTROL_FLOW:
        from .._control_flow import functions, scan

        return getattr(functions if name in functions.__all__ else scan, name)
    return _lazy(name)


def _listed() -> list[str]:
    return sorted({*_names(), *_CONTROL_FLOW})


def rand_zipfian(true_classes: Symbol, num_sampled: int, range_max: int) -> tuple[Symbol, Symbol, Symbol]:
    """Returns nodes of classes drawn with a log-uniform (Zipfian) probability, and of expected counts."""
    from .. import symbol

    return zipfian_classes(symbol, true_classes, num_sampled, range_max)


__dir__ = dir_of(__name__, _listed)
