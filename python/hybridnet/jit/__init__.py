"""Compilation of whole programs: training steps."""

from .._lazy_names import refusing
from .._public_names import dir_of
from ._train_step import TrainStep, train_step

__all__ = ["TrainStep", "train_step"]

__getattr__ = refusing(__name__)
__dir__ = dir_of(__name__)
