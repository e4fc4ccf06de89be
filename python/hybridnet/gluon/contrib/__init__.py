"""Layers and loops beside the main ones. Submodules are imported when they are first used."""

import importlib
from typing import Any

_LAZY = ("cnn", "data", "estimator", "nn", "rnn")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
