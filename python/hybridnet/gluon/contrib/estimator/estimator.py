"""Estimator: trains and evaluates a net."""

from __future__ import annotations

import copy
import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ....context import Context, cpu, gpu, num_gpus
from ....errors import ParamError, UnsupportedError
from ....metric import EvalMetric
from ....metric import Loss as LossMetric
from ...data import DataLoader
from ...loss import Loss
from ...trainer import Trainer
from ._events import BatchBegin, BatchEnd, EpochBegin, EpochEnd, EventHandler, TrainBegin, TrainEnd, handler_list
from ._metrics import check_known, metric_list, suggested_metric
from .batch_processor import BatchProcessor
from .event_handler import GradientUpdateHandler, LoggingHandler, MetricHandler, StoppingHandler, ValidationHandler

__all__ = ["Estimator"]


class UnavailableContextError(UnsupportedError, AssertionError):
    """The machine lacks a device. Also an AssertionError, which MXNet raised here."""


_EVENTS = (TrainBegin, EpochBegin, BatchBegin, BatchEnd, EpochEnd, TrainEnd)


def _check_loss(loss: Any) -> Loss:
    if not isinstance(loss, Loss):
        raise ParamError("loss must be a Loss, refer to gluon.loss.Loss", given=repr(loss))
    return loss


def _check_loader(data: Any) -> None:
    if not isinstance(data, DataLoader):
        raise ParamError(
            "Estimator only support input as Gluon DataLoader. Alternatively, you can transform your DataIter or any "
            f"NDArray into Gluon DataLoader. Refer to gluon.data.DataLoader; got {type(data).__name__}"
        )


class Estimator:
    """A training loop::

        est = Estimator(net, loss, train_metrics=mx.metric.Accuracy(), trainer=trainer)
        est.fit(train_loader, val_loader, epochs=5, event_handlers=[...])

    Parameters
    ----------
    net : Block
    loss : gluon.loss.Loss
    train_metrics, val_metrics : EvalMetric or list, optional
        Default: accuracy for softmax cross entropy, and the loss; val_metrics: copies of train_metrics.
    initializer : Initializer, optional
        For a net that is not initialized yet.
    trainer : Trainer, optional
        Default: SGD with learning rate 0.001.
    context : Context or list of Context, optional
        Default: the first GPU, if there is one, else the CPU.
    val_net, val_loss : optional
        Net and loss for evaluation; default: net and loss.
    batch_processor : BatchProcessor, optional

    Attributes: ``logger``. Raises ParamError for wrong arguments.
    """

    logger: Any = None

    def __init__(
        self,
        net: Any,
        loss: Loss,
        train_metrics: Any = None,
        val_metrics: Any = None,
        initializer: Any = None,
        trainer: Trainer | None = None,
        context: Any = None,
        val_net: Any = None,
        val_loss: Loss | None = None,
        batch_processor: Any = None,
    ) -> None:
        self.net = net
        self.loss = _check_loss(loss)
        self._train_metrics = metric_list(train_metrics)
        self._val_metrics = metric_list(val_metrics)
        self._name_metrics()
        self.val_loss = self.loss if val_loss is None else _check_loss(val_loss)
        self.val_net = net if val_net is None else val_net
        self.logger = logging.Logger(name="Estimator", level=logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.context = self._check_context(context)
        self._initialize(initializer)
        self.trainer = self._check_trainer(trainer)
        self.batch_processor = self._check_batch_processor(batch_processor)
        self.max_epoch: int | None = None
        self.max_batch: int | None = None
        self.batch_axis = 0

    # -- arguments --------------------------------------------------------------------------------------------------

    @staticmethod
    def _check_context(context: Any) -> list[Context]:
        if context is None:
            return [gpu(0)] if num_gpus() > 0 else [cpu()]
        listed = [context] if isinstance(context, Context) else context
        if not isinstance(listed, (list, tuple)) or not all(isinstance(ctx, Context) for ctx in listed):
            raise ParamError(
                "context must be a Context or a list of Context, for example mx.cpu() or [mx.gpu(0), mx.gpu(1)]",
                given=repr(context),
            )
        missing = [ctx for ctx in listed if ctx.device_type == "gpu" and ctx.device_id >= num_gpus()]
        if missing:
            raise UnavailableContextError(f"context {missing[0]} is not available: there are {num_gpus()} GPUs")
        return list(listed)

    @staticmethod
    def _check_batch_processor(batch_processor: Any) -> Any:
        if batch_processor is None:
            return BatchProcessor()
        for method in ("fit_batch", "evaluate_batch"):
            if not callable(getattr(batch_processor, method, None)):
                raise ParamError("Customized Batch Processor must contain fit_batch() and evaluate_batch() methods")
        return batch_processor

    def _is_initialized(self) -> bool:
        params = self.net.collect_params().values()
        return all(param._data is not None or param._deferred_init for param in params)

    def _initialize(self, initializer: Any) -> None:
        if not self._is_initialized():
            self.net.initialize(init=initializer, ctx=self.context)
        elif initializer:
            warnings.warn(
                "Network already fully initialized, skipping initialization. You don't need to pass initializer if you "
                "already initialized your net. You can use net.initialize(init=your_initializer, force_reinit=True) to "
                "force re-initialize.",
                stacklevel=3,
            )

    def _check_trainer(self, trainer: Any) -> Trainer:
        if trainer is None:
            warnings.warn("No trainer specified, default SGD optimizer with learning rate 0.001 is used.", stacklevel=3)
            return Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.001})
        if not isinstance(trainer, Trainer):
            raise ParamError("Trainer must be a Gluon Trainer instance, refer to gluon.Trainer", given=repr(trainer))
        return trainer

    # -- metrics ----------------------------------------------------------------------------------------------------

    def _name_metrics(self) -> None:
        if not self._train_metrics:
            suggested = suggested_metric(self.loss)
            self._train_metrics = [suggested] if suggested else []
            self._train_metrics.append(LossMetric(self.loss.name.rstrip("0123456789")))
        for metric in self._train_metrics:
            metric.name = "training " + metric.name
        if not self._val_metrics:
            self._val_metrics = [copy.deepcopy(metric) for metric in self._train_metrics]
        for metric in self._val_metrics:
            name = metric.name
            metric.name = name.replace("training", "validation") if "training" in name else "validation " + name

    @property
    def train_metrics(self) -> list[EvalMetric]:
        """The training metrics."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[EvalMetric]:
        """The validation metrics."""
        return self._val_metrics

    # -- loops ------------------------------------------------------------------------------------------------------

    def evaluate(self, val_data: DataLoader, batch_axis: int = 0, event_handlers: Any = None) -> None:
        """Runs val_net over a DataLoader; the results are in val_metrics."""
        _check_loader(val_data)
        for metric in self.val_metrics:
            metric.reset()
        handlers = self._prepare_default_validation_handlers(event_handlers)
        _, epoch_begin, batch_begin, batch_end, epoch_end, _ = self._categorize_handlers(handlers)
        for handler in epoch_begin:
            handler.epoch_begin(self)
        for batch in val_data:
            for handler in batch_begin:
                handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            for handler in batch_end:
                handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss)
        for handler in epoch_end:
            handler.epoch_end(self)

    def fit(
        self,
        train_data: DataLoader,
        val_data: DataLoader | None = None,
        epochs: int | None = None,
        event_handlers: Any = None,
        batches: int | None = None,
        batch_axis: int = 0,
    ) -> None:
        """Trains for a number of epochs or of batches, evaluating on val_data after each epoch.

        Handlers for updates, metrics, validation and logging are added unless event_handlers contains such a handler.
        Raises ParamError unless exactly one of epochs and batches is given.
        """
        _check_loader(train_data)
        if bool(epochs) == bool(batches):
            raise ParamError(
                "Fit only support exactly one type of iteration, train by number of epochs or number of batches. "
                "Please specify one and only one of: epochs or batches."
            )
        self.max_epoch = epochs
        self.max_batch = batches
        self.batch_axis = batch_axis
        handlers = self._categorize_handlers(self._prepare_default_handlers(val_data, event_handlers))
        train_begin, epoch_begin, _, _, epoch_end, train_end = handlers
        for handler in train_begin:
            handler.train_begin(self)
        stop = False
        while not stop:
            for handler in epoch_begin:
                handler.epoch_begin(self)
            self._fit_epoch(train_data, handlers[2], handlers[3], batch_axis)
            # A list, so that every handler is called, even after one that stops training.
            answers = [handler.epoch_end(self) for handler in epoch_end]
            stop = any(answers)
        for handler in train_end:
            handler.train_end(self)

    def _fit_epoch(
        self, train_data: DataLoader, batch_begin: Sequence[Any], batch_end: Sequence[Any], batch_axis: int
    ) -> None:
        for batch in train_data:
            for handler in batch_begin:
                handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.fit_batch(self, batch, batch_axis)
            answers = [h.batch_end(self, batch=batch, pred=pred, label=label, loss=loss) for h in batch_end]
            if any(answers):
                return

    # -- handlers ---------------------------------------------------------------------------------------------------

    def _with_defaults(self, given: list[EventHandler], defaults: list[Any], known: list[EvalMetric]) -> list[Any]:
        handlers = [*given, *defaults]
        if given:
            for handler in handlers:
                check_known(handler, known)
        return sorted(handlers, key=lambda handler: getattr(handler, "priority", 0))

    def _prepare_default_handlers(self, val_data: Any, event_handlers: Any) -> list[Any]:
        given = handler_list(event_handlers)

        def lacks(kind: type) -> bool:
            return not any(isinstance(handler, kind) for handler in given)

        defaults: list[Any] = [StoppingHandler(self.max_epoch, self.max_batch)]
        if lacks(GradientUpdateHandler):
            defaults.append(GradientUpdateHandler())
        if lacks(MetricHandler):
            defaults.append(MetricHandler(metrics=self.train_metrics))
        if lacks(ValidationHandler) and val_data is not None:
            defaults.append(ValidationHandler(val_data=val_data, eval_fn=self.evaluate))
        if lacks(LoggingHandler):
            defaults.append(LoggingHandler(metrics=self.train_metrics))
        return self._with_defaults(given, defaults, [*self.train_metrics, *self.val_metrics])

    def _prepare_default_validation_handlers(self, event_handlers: Any) -> list[Any]:
        given = handler_list(event_handlers)
        defaults: list[Any] = []
        if not any(isinstance(handler, MetricHandler) for handler in given):
            defaults.append(MetricHandler(metrics=self.val_metrics))
        if not any(isinstance(handler, LoggingHandler) for handler in given):
            defaults.append(LoggingHandler(metrics=self.val_metrics))
        return self._with_defaults(given, defaults, self.val_metrics)

    @staticmethod
    def _categorize_handlers(event_handlers: Sequence[EventHandler]) -> tuple[list[Any], ...]:
        """Returns the handlers of (train begin, epoch begin, batch begin, batch end, epoch end, train end)."""
        return tuple([handler for handler in event_handlers if isinstance(handler, kind)] for kind in _EVENTS)
