"""Datasets, samplers and the DataLoader."""

from . import batchify, sampler
from .dataloader import *
from .dataset import *
from .sampler import *


def __getattr__(name: str):
    # Image datasets and transforms bring layers and readers along; most programs need neither.
    if name == "vision":
        import importlib

        return importlib.import_module(f"{__name__}.vision")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
