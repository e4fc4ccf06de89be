"""LoggingHandler: logs epochs, batches and metrics."""

from __future__ import annotations

import math
import time
from typing import Any

from ....errors import ParamError
from ._events import BatchBegin, BatchEnd, EpochBegin, EpochEnd, TrainBegin, TrainEnd
from ._metrics import metric_list

__all__ = ["LoggingHandler"]


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Logs to estimator.logger.

    Parameters
    ----------
    log_interval : int or 'epoch', default 'epoch'
        Number of batches between two log lines.
    metrics : list of EvalMetric, optional
    priority : float, default inf

    Raises ParamError for an invalid log_interval.
    """

    state_names = ("current_epoch", "batch_index", "processed_samples")

    def __init__(self, log_interval: int | str = "epoch", metrics: Any = None, priority: float = math.inf) -> None:
        if not isinstance(log_interval, int) and log_interval != "epoch":
            raise ParamError("log_interval must be either an integer or string 'epoch'", given=repr(log_interval))
        self.metrics = metric_list(metrics)
        self.priority = priority
        self.log_interval = log_interval
        self._start_counting()

    def _start_counting(self) -> None:
        self.batch_index = 0
        self.current_epoch = 0
        self.processed_samples = 0
        self.log_interval_time = 0.0
        self.train_start = self.epoch_start = self.batch_start = time.time()

    def _values(self) -> str:
        return ", ".join("{}: {:.4f}".format(*metric.get()) for metric in self.metrics)

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._start_counting()
        estimator.logger.info(
            "Training begin: using optimizer %s with current learning rate %.4f ",
            type(estimator.trainer.optimizer).__name__,
            estimator.trainer.learning_rate,
        )
        if estimator.max_epoch:
            estimator.logger.info("Train for %d epochs.", estimator.max_epoch)
        else:
            estimator.logger.info("Train for %d batches.", estimator.max_batch)

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        seconds = time.time() - self.train_start
        estimator.logger.info(
            "Train finished using total %ds with %d epochs. %s", seconds, self.current_epoch, self._values()
        )

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.batch_start = time.time()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(self.log_interval, int):
            self.processed_samples += kwargs["batch"][0].shape[0]
            self.log_interval_time += time.time() - self.batch_start
            if self.batch_index % self.log_interval == 0:
                estimator.logger.info(
                    "[Epoch %d][Batch %d][Samples %s] time/interval: %.3fs %s",
                    self.current_epoch,
                    self.batch_index,
                    self.processed_samples,
                    self.log_interval_time,
                    self._values(),
                )
                self.log_interval_time = 0.0
        self.batch_index += 1

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.epoch_start = time.time()
        if any("training" in metric.name for metric in self.metrics):
            estimator.logger.info(
                "[Epoch %d] Begin, current learning rate: %.4f", self.current_epoch, estimator.trainer.learning_rate
            )
        else:
            estimator.logger.info("Validation Begin")

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        seconds = time.time() - self.epoch_start
        estimator.logger.info("[Epoch %d] Finished in %.3fs, %s", self.current_epoch, seconds, self._values())
        self.current_epoch += 1
        self.batch_index = 0
