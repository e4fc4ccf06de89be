"""Compilation of whole programs: training steps."""

from ._train_step import TrainStep, train_step

__all__ = ["TrainStep", "train_step"]
