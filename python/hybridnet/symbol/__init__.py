"""``mx.sym``: graphs, the functions that create their variables, and every operator, creating nodes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .._public_names import dir_of
from ..ops._namespace import lazy_functions
from . import _internal, random, symbol
from ._creation import *
from ._gradient import gradient
from .symbol import *
from .symbol import Symbol as Symbol

if TYPE_CHECKING:  # for completion in editors; at run time the registry provides the names
    from ..ops._generated import *

_lazy, _names = lazy_functions(globals(), "", symbolic=True)
_SUBMODULES = ("contrib", "image", "linalg", "op", "sparse")
_NUMPY = {"np": "numpy", "npx": "numpy_extension", "numpy": "numpy", "numpy_extension": "numpy_extension"}


def __getattr__(name: str) -> Any:
    if name == "Custom":
        return importlib.import_module("hybridnet.operator").Custom
    if name in _NUMPY:
        return importlib.import_module(f"{__name__}.{_NUMPY[name]}")
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _lazy(name)


def _listed() -> list[str]:
    return sorted({*_names(), *_SUBMODULES, *_NUMPY})


__dir__ = dir_of(__name__, _listed)
