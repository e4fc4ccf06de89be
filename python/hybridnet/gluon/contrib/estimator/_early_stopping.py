"""EarlyStoppingHandler: stops when a metric does not improve any more."""

from __future__ import annotations

import math
from typing import Any

from ...._user_line import warn
from ....errors import ParamError
from ....metric import CompositeEvalMetric, EvalMetric
from ._events import EpochEnd, TrainBegin, TrainEnd
from ._watching import comparison_for, worst

__all__ = ["EarlyStoppingHandler"]


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Stops training after patience epochs without improvement.

    Parameters
    ----------
    monitor : EvalMetric
        One of the estimator's metrics.
    min_delta : float, default 0
        Smallest change that counts as an improvement.
    patience : int, default 0
    mode : {'auto', 'min', 'max'}
        Whether smaller or larger is better; 'auto': larger for accuracy and F1.
    baseline : float, optional
        Value that the metric must improve on from the start.

    Raises ParamError unless monitor is a simple metric.
    """

    state_names = ("wait", "stopped_epoch", "current_epoch", "stop_training", "best")

    def __init__(
        self,
        monitor: EvalMetric,
        min_delta: float = 0,
        patience: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
    ) -> None:
        if not isinstance(monitor, EvalMetric):
            raise ParamError(
                (
                    "Please provide one of the metric objects from estimator.train_metrics and estimator.val_metrics "
                    "as monitor"
                ),
                given=repr(monitor),
            )
        if isinstance(monitor, CompositeEvalMetric):
            raise ParamError(
                "CompositeEvalMetric is not supported for EarlyStoppingHandler, please specify a simple metric instead."
            )
        self.monitor = monitor
        self.baseline = baseline
        self.patience = patience
        self.monitor_op = comparison_for(mode, monitor, "EarlyStoppingHandler")
        self.min_delta = min_delta if worst(self.monitor_op) < 0 else -min_delta
        self._start()

    def _start(self) -> None:
        self.wait = 0
        self.stopped_epoch = 0
        self.current_epoch = 0
        self.stop_training = False
        self.best = worst(self.monitor_op) if self.baseline is None else self.baseline

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._start()

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        name, value = self.monitor.get()
        if math.isnan(value):
            warn(
                f"{name} is not updated, make sure you pass one of the metric objects from estimator.train_metrics and "
                "estimator.val_metrics as monitor.",
                RuntimeWarning,
            )
        elif self.monitor_op(value - self.min_delta, self.best):
            self.best = value
            self.wait = 0
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch = self.current_epoch
                self.stop_training = True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.stop_training:
            estimator.logger.info(
                "[Epoch %d] EarlyStoppingHandler: early stopping due to %s not improving",
                self.stopped_epoch,
                self.monitor.get()[0],
            )
