"""Datasets, samplers and the DataLoader."""

from ..._lazy_names import names_from
from . import batchify, sampler
from .dataloader import *
from .dataset import *
from .sampler import *

# Imported on first use: image datasets and transforms load layers and readers that most programs do not need.
__getattr__, __dir__ = names_from(__name__, modules="vision")
