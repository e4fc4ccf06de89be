"""All events and handlers, under MXNet's module name."""

from ...._public_names import dir_of
from ._checkpoint_handler import CheckpointHandler
from ._curves_handler import CurvesHandler
from ._early_stopping import EarlyStoppingHandler
from ._events import BatchBegin, BatchEnd, EpochBegin, EpochEnd, EventHandler, TrainBegin, TrainEnd
from ._history import HistoryHandler
from ._learning_rates import LearningRateHandler, ReduceLROnPlateauHandler
from ._logging_handler import LoggingHandler
from ._progress_bar import ProgressBarHandler
from ._tensorboard_handler import TensorBoardHandler
from ._training_checkpoint import TrainingCheckpointHandler
from ._training_handlers import GradientUpdateHandler, MetricHandler, StoppingHandler, ValidationHandler

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "CheckpointHandler",
    "CurvesHandler",
    "EarlyStoppingHandler",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "GradientUpdateHandler",
    "HistoryHandler",
    "LearningRateHandler",
    "LoggingHandler",
    "MetricHandler",
    "ProgressBarHandler",
    "ReduceLROnPlateauHandler",
    "StoppingHandler",
    "TensorBoardHandler",
    "TrainBegin",
    "TrainEnd",
    "TrainingCheckpointHandler",
    "ValidationHandler",
]

__dir__ = dir_of(__name__)
