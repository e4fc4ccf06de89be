"""Estimator: trains and evaluates a net."""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ...._keywords import ChecksKeywords
from ...._public_names import dir_of
from ...._user_line import warn
from ....context import Context, cpu, gpu, num_gpus
from ....errors import ParamError, UnsupportedError
from ....metric import EvalMetric
from ....metric import Loss as LossMetric
from ...data import DataLoader
from ...loss import Loss
from ...trainer import Trainer
from ._arguments import check_iterations, check_loader, check_loss, number_of_batches, unknown_keyword_of_fit
from ._compiled_step import compiled_step
from ._events import BatchBegin, BatchEnd, EpochBegin, EpochEnd, EventHandler, TrainBegin, TrainEnd, handler_list
from ._history import History, HistoryHandler
from ._metrics import check_known, make_names_distinct, metric_list, suggested_metric
from ._prediction import predict
from ._progress_bar import ProgressBarHandler
from ._training_checkpoint import TrainingCheckpointHandler
from .batch_processor import BatchProcessor
from .event_handler import (
    EarlyStoppingHandler,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    ValidationHandler,
)

__all__ = ["Estimator"]


class UnavailableContextError(UnsupportedError, AssertionError):
    """The machine lacks a device. Also an AssertionError, which MXNet raised here."""


_EVENTS = (TrainBegin, EpochBegin, BatchBegin, BatchEnd, EpochEnd, TrainEnd)


class Estimator(ChecksKeywords):
    """A training loop::

        est = Estimator(net, loss, train_metrics=mx.metric.Accuracy(), trainer=trainer)
        history = est.fit(train_loader, val_loader, epochs=5, event_handlers=[...])
        est.evaluate(test_loader)  # a dict of values
        scores = est.predict(images)

    Parameters
    ----------
    net : Block
    loss : gluon.loss.Loss
    train_metrics, val_metrics : EvalMetric or list, optional
        Default: accuracy for softmax cross entropy, and the loss; val_metrics: copies of train_metrics. The second
        metric of a name gets the name "accuracy_2".
    initializer : Initializer, optional
        For a net that is not initialized yet.
    trainer : Trainer, optional
        Default: SGD with learning rate 0.001.
    context : Context or list of Context, optional
        Default: the first GPU, if there is one, else the CPU.
    val_net, val_loss : optional
        Net and loss for evaluation; default: net and loss.
    batch_processor : BatchProcessor, optional
    compiled : bool, optional
        Whether fit() runs steps of mx.jit.train_step, which compute the bits of a hybridized net and loss. Default: if
        it can, that is for a hybridized net, a loss of gluon.loss, an optimizer of mx.optimizer, one context, and no
        handlers or batch processors of your own that may read gradients. True: fit() raises ParamError if it cannot.

    Attributes: ``logger``; ``history``, the History of the last fit(). Raises ParamError for wrong arguments.
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
        compiled: bool | None = None,
    ) -> None:
        self.net = net
        self.loss = check_loss(loss)
        self._train_metrics = metric_list(train_metrics, "train_metrics")
        self._val_metrics = metric_list(val_metrics, "val_metrics")
        self._name_metrics()
        self.val_loss = self.loss if val_loss is None else check_loss(val_loss)
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
        self.compiled = compiled
        self.history = History()
        self._train_step: Any = None
        self._train_data: Any = None
        self._handlers: list[Any] = []
        self._num_batches: int | None = None
        self._has_validated = False
        self._shows_progress = False
        self._is_evaluating = False

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
            warn(
                "Network already fully initialized, skipping initialization. You don't need to pass initializer if you "
                "already initialized your net. You can use net.initialize(init=your_initializer, force_reinit=True) to "
                "force re-initialize.",
            )

    def _check_trainer(self, trainer: Any) -> Trainer:
        if trainer is None:
            warn("No trainer specified, default SGD optimizer with learning rate 0.001 is used.")
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
        make_names_distinct(self._train_metrics, "train_metrics")
        make_names_distinct(self._val_metrics, "val_metrics")
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

    def evaluate(self, val_data: DataLoader, batch_axis: int = 0, event_handlers: Any = None) -> dict[str, float]:
        """Runs val_net over a DataLoader. Returns the values of val_metrics by name."""
        check_loader(val_data, "val_data")
        for metric in self.val_metrics:
            metric.reset()
        handlers = self._prepare_default_validation_handlers(event_handlers)
        self._is_evaluating = True
        try:
            self._evaluate(val_data, batch_axis, handlers)
        finally:
            self._is_evaluating = False
        return dict(pair for metric in self.val_metrics for pair in metric.get_name_value())

    def _evaluate(self, val_data: DataLoader, batch_axis: int, handlers: Sequence[Any]) -> None:
        _, epoch_begin, batch_begin, batch_end, epoch_end, _ = self._categorize_handlers(handlers)
        for handler in epoch_begin:
            handler.epoch_begin(self)
        for batch in val_data:
            for handler in batch_begin:
                handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            for handler in batch_end:
                handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss)
        self._has_validated = True
        for handler in epoch_end:
            handler.epoch_end(self)

    def predict(self, data: Any, batch_size: int = 128, batch_axis: int = 0) -> Any:
        """Returns the outputs of val_net, in prediction mode, for all samples: one array, or a list if it has several.

        Parameters
        ----------
        data : DataLoader, NDArray or numpy.ndarray
            Batches of a loader are data, or lists whose first part is the data; labels are ignored.
        batch_size : int, default 128
            Number of samples that run at once; not for a DataLoader.
        batch_axis : int, default 0
            Axis of the samples, also of the outputs.

        Raises ParamError if there is no sample, or batch_size < 1.
        """
        return predict(self, data, batch_size, batch_axis)

    def fit(
        self,
        train_data: DataLoader,
        val_data: DataLoader | None = None,
        epochs: int | None = None,
        event_handlers: Any = None,
        batches: int | None = None,
        batch_axis: int = 0,
        **unknown: NoReturn,
    ) -> History:
        """Trains for a number of epochs or of batches, evaluating on val_data after each epoch; returns the history.

        Handlers for updates, metrics, validation and logging are added unless event_handlers contains such a handler.
        A ProgressBarHandler replaces the logging. Raises ParamError unless exactly one of epochs and batches is given,
        an integer >= 1, and for data that are not loaders.
        """
        if unknown:
            raise unknown_keyword_of_fit(Estimator.fit, unknown)
        check_loader(train_data, "train_data")
        if val_data is not None:
            check_loader(val_data, "val_data")
        self.max_epoch, self.max_batch = check_iterations(epochs, batches)
        self.batch_axis = batch_axis
        self._train_data = train_data
        self._num_batches = number_of_batches(train_data)
        self._handlers = self._prepare_default_handlers(val_data, event_handlers)
        try:
            self._train_step = compiled_step(self, self._handlers)
            self._fit(train_data, batch_axis)
        except BaseException:
            for handler in self._handlers:
                getattr(handler, "training_failed", lambda estimator: None)(self)
            raise
        finally:
            # Compiled plans and loaders would otherwise live as long as the estimator.
            self._train_step = self._train_data = None
            self._shows_progress = False
        return self.history

    def _fit(self, train_data: DataLoader, batch_axis: int) -> None:
        train_begin, epoch_begin, batch_begin, batch_end, epoch_end, train_end = self._categorize_handlers(
            self._handlers
        )
        for handler in train_begin:
            handler.train_begin(self)
        within_epoch = self._restore()
        stop = self._is_complete()
        while not stop:
            self._has_validated = False
            for handler in epoch_begin:
                handler.epoch_begin(self)
            if within_epoch:
                # The handlers have begun an epoch that had begun before: their states are restored once more.
                self._restore()
                within_epoch = False
            self._fit_epoch(train_data, batch_begin, batch_end, batch_axis)
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

    def _restore(self) -> bool:
        """Continues from a training file, if a handler has one; returns whether an epoch had begun."""
        checkpoints = [handler for handler in self._handlers if isinstance(handler, TrainingCheckpointHandler)]
        answers = [handler.restore(self) for handler in checkpoints]
        return any(answers)

    def _is_complete(self) -> bool:
        """Whether the training that was restored had ended."""
        stopping = (
            handler for handler in self._handlers if isinstance(handler, (StoppingHandler, EarlyStoppingHandler))
        )
        done = any(h.is_finished() if isinstance(h, StoppingHandler) else h.stop_training for h in stopping)
        if done:
            self.logger.info("The training is complete; nothing is left to do.")
        return done

    def _epoch_metrics(self) -> list[EvalMetric]:
        """Returns the metrics with values of the current epoch: those for validation only if it ran."""
        if self._is_evaluating:
            return self.val_metrics
        return [*self.train_metrics, *(self.val_metrics if self._has_validated else ())]

    def _epoch_values(self) -> dict[str, float]:
        return dict(pair for metric in self._epoch_metrics() for pair in metric.get_name_value())

    # -- handlers ---------------------------------------------------------------------------------------------------

    def _with_defaults(self, given: list[EventHandler], defaults: list[Any], known: list[EvalMetric]) -> list[Any]:
        handlers = [*given, *defaults]
        if given:
            for handler in handlers:
                check_known(handler, known)
        # Handlers of libraries may lack both attributes.
        return sorted(handlers, key=lambda h: (getattr(h, "runs_last", False), getattr(h, "priority", 0)))

    def _prepare_default_handlers(self, val_data: Any, event_handlers: Any) -> list[Any]:
        given = handler_list(event_handlers)

        def lacks(kind: type) -> bool:
            return not any(isinstance(handler, kind) for handler in given)

        defaults: list[Any] = [StoppingHandler(self.max_epoch, self.max_batch)]
        self._shows_progress = not lacks(ProgressBarHandler)
        if lacks(HistoryHandler):
            defaults.append(HistoryHandler())
        if lacks(GradientUpdateHandler):
            defaults.append(GradientUpdateHandler())
        if lacks(MetricHandler):
            defaults.append(MetricHandler(metrics=self.train_metrics))
        if lacks(ValidationHandler) and val_data is not None:
            defaults.append(ValidationHandler(val_data=val_data, eval_fn=self.evaluate))
        if lacks(LoggingHandler) and not self._shows_progress:
            defaults.append(LoggingHandler(metrics=self.train_metrics))
        return self._with_defaults(given, defaults, [*self.train_metrics, *self.val_metrics])

    def _prepare_default_validation_handlers(self, event_handlers: Any) -> list[Any]:
        given = handler_list(event_handlers)
        defaults: list[Any] = []
        if not any(isinstance(handler, MetricHandler) for handler in given):
            defaults.append(MetricHandler(metrics=self.val_metrics))
        shown = self._shows_progress or any(isinstance(h, (LoggingHandler, ProgressBarHandler)) for h in given)
        if not shown:
            defaults.append(LoggingHandler(metrics=self.val_metrics))
        return self._with_defaults(given, defaults, self.val_metrics)

    @staticmethod
    def _categorize_handlers(event_handlers: Sequence[EventHandler]) -> tuple[list[Any], ...]:
        """Returns the handlers of (train begin, epoch begin, batch begin, batch end, epoch end, train end)."""
        return tuple([handler for handler in event_handlers if isinstance(handler, kind)] for kind in _EVENTS)


__dir__ = dir_of(__name__)
