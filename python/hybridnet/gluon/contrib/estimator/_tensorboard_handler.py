"""TensorBoardHandler: writes the metrics of a training for TensorBoard."""

from __future__ import annotations

import math
from typing import Any

from ....contrib._event_files import event_writer
from ....errors import ParamError
from ._events import BatchEnd, EpochEnd, TrainBegin, TrainEnd

__all__ = ["TensorBoardHandler"]


class TensorBoardHandler(TrainBegin, BatchEnd, EpochEnd, TrainEnd):
    """Writes metrics and the learning rate after each epoch, ``tensorboard --logdir folder`` shows them.

    The value 'training accuracy' has the name 'accuracy/training', so that curves of one metric are side by side.

    Parameters
    ----------
    logging_dir : str
        Folder of the files; each training adds one.
    batch_period : int, optional
        Number of batches between two values of the training loss and metrics within an epoch; default: none.
    priority : float, default -400

    Raises ImportError, when training begins, unless tensorboardX, tensorboard, mxboard or torch is installed.
    """

    state_names = ("current_epoch", "current_batch")

    def __init__(self, logging_dir: str, batch_period: int | None = None, priority: float = -400) -> None:
        if batch_period is not None and batch_period < 1:
            raise ParamError("TensorBoardHandler: batch_period", expected="an integer >= 1", given=repr(batch_period))
        self.logging_dir = logging_dir
        self.batch_period = batch_period
        self.priority = priority
        self.current_epoch = 0
        self.current_batch = 0
        self._writer: Any = None

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_epoch = 0
        self.current_batch = 0
        self._writer = event_writer(self.logging_dir, "TensorBoardHandler")

    def _write(self, values: dict[str, float], ending: str, step: int) -> None:
        for name, value in values.items():
            kind, _, metric = name.partition(" ")
            known = kind in ("training", "validation") and metric
            tag = f"{metric}/{kind}" if known else name.replace(" ", "_")
            if not math.isnan(value):
                self._writer.add_scalar(tag + ending, value, step)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch += 1
        if self.batch_period and self.current_batch % self.batch_period == 0:
            pairs = [pair for metric in estimator.train_metrics for pair in metric.get_name_value()]
            self._write(dict(pairs), "_by_batch", self.current_batch)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        values = {**estimator._epoch_values(), "learning rate": estimator.trainer.learning_rate}
        self._write(values, "", self.current_epoch)
        self._writer.flush()
        self.current_epoch += 1

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._close()

    def training_failed(self, estimator: Any) -> None:
        """Writes what was recorded before the failure."""
        self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
