"""Estimator: a training loop with events."""

from ...._drawing._plots import plot_history as plot_history
from ...._public_names import dir_of
from ._history import History as History
from .batch_processor import BatchProcessor as BatchProcessor
from .estimator import Estimator as Estimator
from .event_handler import *

__dir__ = dir_of(__name__)
