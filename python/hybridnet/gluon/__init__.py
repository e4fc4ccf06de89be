"""Gluon: blocks, parameters, trainers, data."""

from . import data, loss, nn, rnn, utils
from ._hybrid_block import HybridBlock
from ._parameter_dict import ParameterDict
from ._symbol_block import SymbolBlock
from .block import Block
from .parameter import (
    Constant,
    DeferredInitializationError,
    Parameter,
    ParameterLoadError,
    tensor_types,
)
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
