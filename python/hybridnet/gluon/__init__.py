"""Gluon: blocks, parameters, trainers, data."""

from . import data, loss, nn, rnn, utils
from .block import Block
from .hybrid_block import HybridBlock
from .parameter import (
    Constant,
    DeferredInitializationError,
    Parameter,
    ParameterDict,
    ParameterLoadError,
    tensor_types,
)
from .symbol_block import SymbolBlock
from .trainer import Trainer

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "ParameterLoadError",
    "SymbolBlock",
    "Trainer",
    "contrib",
    "data",
    "loss",
    "model_zoo",
    "nn",
    "rnn",
    "tensor_types",
    "utils",
]

_LAZY = ("contrib", "model_zoo")


def __getattr__(name: str):
    # Rarely needed and slow to import.
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
