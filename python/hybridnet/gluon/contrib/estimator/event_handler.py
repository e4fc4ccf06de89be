"""All events and handlers, under MXNet's module name."""

from ._checkpoint_handler import CheckpointHandler
from ._early_stopping import EarlyStoppingHandler
from ._events import BatchBegin, BatchEnd, EpochBegin, EpochEnd, EventHandler, TrainBegin, TrainEnd
from ._logging_handler import LoggingHandler
from ._training_handlers import GradientUpdateHandler, MetricHandler, StoppingHandler, ValidationHandler

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "CheckpointHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "GradientUpdateHandler",
    "LoggingHandler",
    "MetricHandler",
    "StoppingHandler",
    "TrainBegin",
    "TrainEnd",
    "ValidationHandler",
]
