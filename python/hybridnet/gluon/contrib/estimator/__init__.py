"""Estimator: a training loop with events."""

from .batch_processor import BatchProcessor
from .estimator import Estimator
from .event_handler import *
