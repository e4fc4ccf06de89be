"""Handlers that change the learning rate: by epoch, and when a metric stops improving."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...._user_line import warn
from ....errors import ParamError
from ....metric import EvalMetric
from ._events import EpochBegin, EpochEnd, TrainBegin
from ._watching import comparison_for, worst

__all__ = ["LearningRateHandler", "ReduceLROnPlateauHandler"]


def _check_no_scheduler(estimator: Any, owner: str) -> None:
    if estimator.trainer.optimizer.lr_scheduler is not None:
        raise ParamError(
            f"{owner}: the trainer's optimizer has an lr_scheduler",
            because="both would set the learning rate",
            fix=f"create the Trainer without lr_scheduler, or leave {owner} out",
        )


def _check_rate(epoch: Any, rate: Any) -> None:
    if not isinstance(rate, numbers.Real) or not 0 <= float(rate) < math.inf:
        raise ParamError(
            f"LearningRateHandler: rate of epoch {epoch}", expected="a finite number >= 0", given=repr(rate)
        )


def _check_schedule(schedule: Any) -> None:
    """Raises ParamError unless it is a dict or a list of rates, and not empty."""
    if isinstance(schedule, str) or not isinstance(schedule, (Mapping, Sequence)) or not schedule:
        raise ParamError(
            "LearningRateHandler: schedule",
            expected="a function, dict or list of rates",
            given=repr(schedule),
            fix="pass [0.1, 0.01], a rate for each epoch; or {0: 0.1, 5: 0.01}, which changes it in these epochs",
        )
    rates = schedule if isinstance(schedule, Mapping) else dict(enumerate(schedule))
    for epoch, rate in rates.items():
        if not isinstance(epoch, numbers.Integral) or epoch < 0:
            raise ParamError("LearningRateHandler: epochs of the schedule", expected="integers >= 0", given=repr(epoch))
        _check_rate(epoch, rate)


class LearningRateHandler(TrainBegin, EpochBegin):
    """Sets the learning rate at the begin of each epoch. (A schedule per update is the optimizer's lr_scheduler.)

    Parameters
    ----------
    schedule : callable, dict or list
        ``schedule(epoch)`` returns the rate of an epoch, counted from 0: a function, or a scheduler of mx.lr_scheduler
        whose unit is then the epoch. A dict maps the epochs that change the rate to rates; a list has the rates of the
        first epochs.
    priority : float, default -1500

    Raises ParamError for an empty schedule, a rate that is not a finite number >= 0, and if the trainer's optimizer has
    an lr_scheduler.
    """

    state_names = ("current_epoch",)

    def __init__(
        self,
        schedule: Callable[[int], float] | Mapping[int, float] | Sequence[float],
        priority: float = -1500,
    ) -> None:
        if not callable(schedule):
            _check_schedule(schedule)
        self.schedule = schedule
        self.priority = priority
        self.current_epoch = 0

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        _check_no_scheduler(estimator, "LearningRateHandler")
        self.current_epoch = 0

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        rate = self._rate(self.current_epoch)
        self.current_epoch += 1
        if rate is None:
            return
        _check_rate(self.current_epoch - 1, rate)
        estimator.trainer.set_learning_rate(rate)

    def _rate(self, epoch: int) -> Any:
        """Returns the rate of an epoch; None if it does not change."""
        if callable(self.schedule):
            return self.schedule(epoch)
        if isinstance(self.schedule, Mapping):
            return self.schedule.get(epoch)
        return self.schedule[epoch] if epoch < len(self.schedule) else None


class ReduceLROnPlateauHandler(TrainBegin, EpochEnd):
    """Multiplies the learning rate by factor when monitor has not improved for more than patience epochs.

    Parameters
    ----------
    monitor : EvalMetric
        One of the estimator's metrics.
    factor : float, default 0.1
    patience : int, default 10
    mode : {'auto', 'min', 'max'}
        Whether smaller or larger is better; 'auto': larger for accuracy and F1.
    min_delta : float, default 0
        Smallest change that counts as an improvement.
    cooldown : int, default 0
        Epochs after a reduction that are not counted.
    min_lr : float, default 0

    Raises ParamError unless monitor is a metric and factor is between 0 and 1.
    """

    state_names = ("best", "wait", "rest")

    def __init__(
        self,
        monitor: EvalMetric,
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "auto",
        min_delta: float = 0,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        if not isinstance(monitor, EvalMetric):
            raise ParamError(
                "ReduceLROnPlateauHandler: monitor",
                expected="one of estimator.train_metrics and estimator.val_metrics",
                given=repr(monitor),
            )
        if not 0 < factor < 1:
            raise ParamError("ReduceLROnPlateauHandler: factor", expected="between 0 and 1", given=repr(factor))
        self.monitor = monitor
        self.factor = factor
        self.patience = patience
        self.monitor_op = comparison_for(mode, monitor, "ReduceLROnPlateauHandler")
        self.min_delta = min_delta if worst(self.monitor_op) < 0 else -min_delta
        self.cooldown = cooldown
        self.min_lr = min_lr
        self._start()

    def _start(self) -> None:
        self.best = worst(self.monitor_op)
        self.wait = 0
        self.rest = 0

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        _check_no_scheduler(estimator, "ReduceLROnPlateauHandler")
        self._start()

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        name, value = self.monitor.get()
        if math.isnan(value):
            warn(f"ReduceLROnPlateauHandler: {name} has no value in this epoch", RuntimeWarning)
            return
        if self.rest > 0:
            self.rest -= 1
            self.wait = 0
        if self.monitor_op(value - self.min_delta, self.best):
            self.best = value
            self.wait = 0
        elif self.rest == 0:
            self.wait += 1
        if self.wait > self.patience:
            self._reduce(estimator, name)

    def _reduce(self, estimator: Any, name: str) -> None:
        before = estimator.trainer.learning_rate
        rate = max(before * self.factor, self.min_lr)
        self.wait = 0
        self.rest = self.cooldown
        if rate < before:
            estimator.trainer.set_learning_rate(rate)
            estimator.logger.info("%s does not improve: learning rate %g", name, rate)
