"""Datasets, samplers and the DataLoader."""

from ..._lazy_names import names_from
from ..._public_names import dir_of
from . import batchify, sampler
from .dataloader import *
from .dataset import *
from .sampler import *

# Imported on first use: image datasets and transforms load layers and readers that most programs do not need.
__getattr__, __dir__ = names_from(
    __name__,
    {"._frame_dataset": "DataFrameDataset from_pandas", "._numpy_files": "NumpyFileDataset"},
    modules="vision",
)
__dir__ = dir_of(__name__, __dir__)
