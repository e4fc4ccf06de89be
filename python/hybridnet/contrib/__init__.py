"""Contributed parts: control flow of arrays and graphs (foreach, while_loop, cond)."""

from __future__ import annotations

import importlib
from typing import Any

from . import control_flow
from .control_flow import cond, foreach, while_loop

__all__ = ["cond", "control_flow", "foreach", "while_loop"]

# Under MXNet's names; imported when asked for.
_SUBMODULES = {
    "amp": "hybridnet.contrib.amp",
    "autograd": "hybridnet.contrib.autograd",
    "io": "hybridnet.contrib.io",
    "text": "hybridnet.contrib.text",
    "ndarray": "hybridnet.ndarray.contrib",
    "nd": "hybridnet.ndarray.contrib",
    "symbol": "hybridnet.symbol.contrib",
    "sym": "hybridnet.symbol.contrib",
}


def __getattr__(name: str) -> Any:
    if name not in _SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(_SUBMODULES[name])
