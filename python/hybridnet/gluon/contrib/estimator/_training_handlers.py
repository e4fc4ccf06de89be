"""Handlers that run the training of an Estimator: stopping, metrics, validation, updates."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from ....errors import ParamError
from ....metric import Loss
from ...utils import clip_global_norm
from ._events import BatchEnd, EpochBegin, EpochEnd, TrainBegin
from ._metrics import metric_list

__all__ = ["GradientUpdateHandler", "MetricHandler", "StoppingHandler", "ValidationHandler"]


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Stops after max_epoch epochs or max_batch batches (the estimator's)."""

    state_names = ("current_batch", "current_epoch")

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None) -> None:
        self.max_epoch = max_epoch
        self.max_batch = max_batch
        self.current_batch = 0
        self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.max_epoch = estimator.max_epoch
        self.max_batch = estimator.max_batch
        self.current_batch = 0
        self.current_epoch = 0
        self.stop_training = False

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        self.current_batch += 1
        self.stop_training |= self.current_batch == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        self.current_epoch += 1
        self.stop_training |= self.current_epoch == self.max_epoch
        return self.stop_training

    def is_finished(self) -> bool:
        """Whether all epochs or batches are done, which is so if a complete training is resumed."""
        pairs = ((self.max_epoch, self.current_epoch), (self.max_batch, self.current_batch))
        return any(limit and count >= limit for limit, count in pairs)


class MetricHandler(EpochBegin, BatchEnd):
    """Resets metrics before an epoch and updates them after each batch."""

    def __init__(self, metrics: Any, priority: float = -1000) -> None:
        self.metrics = metric_list(metrics)
        self.priority = priority

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            if isinstance(metric, Loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Calls eval_fn(val_data=, batch_axis=, event_handlers=) every epoch_period epochs or batch_period batches."""

    state_names = ("current_batch", "current_epoch")

    def __init__(
        self,
        val_data: Any,
        eval_fn: Callable[..., Any],
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        priority: float = -1000,
        event_handlers: Any = None,
    ) -> None:
        self.val_data = val_data
        self.eval_fn = eval_fn
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.current_batch = 0
        self.current_epoch = 0
        self.priority = priority
        self.event_handlers = event_handlers

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch = 0
        self.current_epoch = 0

    def _evaluate(self, estimator: Any) -> None:
        self.eval_fn(val_data=self.val_data, batch_axis=estimator.batch_axis, event_handlers=self.event_handlers)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch += 1
        if self.batch_period and self.current_batch % self.batch_period == 0:
            self._evaluate(estimator)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_epoch += 1
        if self.epoch_period and self.current_epoch % self.epoch_period == 0:
            self._evaluate(estimator)


class GradientUpdateHandler(BatchEnd):
    """Updates the parameters after each batch.

    clip_global_norm: bound of the 2-norm of all gradients together, after division by the batch size. (The optimizer's
    clip_gradient bounds each value.) Raises ParamError unless it is positive.
    """

    def __init__(self, priority: float = -2000, clip_global_norm: float | None = None) -> None:
        is_number = isinstance(clip_global_norm, numbers.Real) and not isinstance(clip_global_norm, bool)
        if clip_global_norm is not None and not (is_number and clip_global_norm > 0):
            raise ParamError(
                "GradientUpdateHandler: clip_global_norm",
                expected="a number > 0",
                given=repr(clip_global_norm),
                fix="pass clip_global_norm=1.0, for example, or leave it out",
            )
        self.priority = priority
        self.clip_global_norm = clip_global_norm

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if getattr(estimator, "_train_step", None) is not None:
            return  # the compiled step has updated the parameters
        losses = kwargs["loss"] if isinstance(kwargs["loss"], list) else [kwargs["loss"]]
        size = sum(loss.shape[0] for loss in losses)
        if self.clip_global_norm is None:
            estimator.trainer.step(size)
            return
        trainer = estimator.trainer
        trainer.allreduce_grads()
        for gradients in _gradients_by_context(trainer):
            clip_global_norm(gradients, self.clip_global_norm / trainer._scale_for(size), check_isfinite=False)
        trainer.update(size)


def _gradients_by_context(trainer: Any) -> list[list[Any]]:
    by_parameter = [param.list_grad() for param in trainer._params if param.grad_req != "null"]
    return [list(gradients) for gradients in zip(*by_parameter, strict=True)]
