"""Datasets, samplers and the DataLoader."""

from ..._lazy_names import names_from
from . import batchify, sampler
from .dataloader import *
from .dataset import *
from .sampler import *

# Image datasets and transforms bring layers and readers along; most programs need neither.
__getattr__, __dir__ = names_from(__name__, modules="vision")
