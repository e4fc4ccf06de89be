"""Gluon: blocks, parameters, trainers, data."""

from typing import TYPE_CHECKING

from .._lazy_names import names_from
from .._public_names import dir_of
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

if TYPE_CHECKING:
    from ._training_file import load_training as load_training
    from ._training_file import save_training as save_training

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

# Imported on first use: rarely needed and slow to import.
__getattr__, __dir__ = names_from(
    __name__, {"_training_file": "load_training save_training"}, modules="contrib model_zoo"
)
__dir__ = dir_of(__name__, __dir__)
