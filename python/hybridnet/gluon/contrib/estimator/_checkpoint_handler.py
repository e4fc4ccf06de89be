"""CheckpointHandler: saves parameters and optimizer states during training, and resumes from them."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any

from .... import random
from ...._files import read_text, replacing
from ...._user_line import warn
from ....errors import FormatError, ParamError
from ....metric import EvalMetric
from ._events import BatchEnd, EpochEnd, TrainBegin
from ._watching import comparison_for, worst

__all__ = ["CheckpointHandler"]


def _state_in(path: str) -> Any:
    try:
        return json.loads(read_text(path, "CheckpointHandler"))
    except ValueError as error:
        raise FormatError(f"CheckpointHandler: '{path}' holds no state of random numbers: {error}") from error


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Writes ``prefix-epoch0batch9.params``, ``.states`` and ``.random`` into a folder, and a ``prefix-symbol.json`` if
    hybridized. Training resumed from the end of an epoch continues with the same random numbers.

    Parameters
    ----------
    model_dir : str
        Created if it does not exist.
    model_prefix : str, default 'model'
    monitor : EvalMetric, optional
        Required for save_best.
    verbose : int, default 0
        1: logs each saved file.
    save_best : bool, default False
        Whether the best model, by monitor, is kept as ``prefix-best.params``.
    mode : {'auto', 'min', 'max'}
        Whether smaller or larger is better; 'auto': larger for accuracy and F1.
    epoch_period, batch_period : int, optional
        Number of epochs (default 1) or batches between two checkpoints.
    max_checkpoints : int, default 5
        Number of checkpoints that are kept besides the best.
    resume_from_checkpoint : bool, default False
        Whether training resumes from the last checkpoint in the folder.

    TrainingCheckpointHandler also continues in the middle of an epoch, with metrics and the states of other handlers.

    Raises ParamError for save_best without a metric, and if there is nothing left to train.
    """

    state_names = ("current_epoch", "current_batch", "best", "saved_checkpoints")

    def __init__(
        self,
        model_dir: str,
        model_prefix: str = "model",
        monitor: EvalMetric | None = None,
        verbose: int = 0,
        save_best: bool = False,
        mode: str = "auto",
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        max_checkpoints: int = 5,
        resume_from_checkpoint: bool = False,
    ) -> None:
        if save_best and not isinstance(monitor, EvalMetric):
            raise ParamError(
                "To save best model only, please provide one of the metric objects from estimator.train_metrics and "
                "estimator.val_metrics as monitor."
            )
        os.makedirs(model_dir, exist_ok=True)
        self.monitor = monitor
        self.verbose = verbose
        self.model_dir = model_dir
        self.model_prefix = model_prefix
        self.save_best = save_best
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.current_batch = 0
        self.current_epoch = 0
        # Set before this by the checkpoint from which training resumes.
        self.trained_epoch = -1
        self.trained_batch = -1
        self.max_checkpoints = max_checkpoints
        self.resume_from_checkpoint = resume_from_checkpoint
        self.saved_checkpoints: list[str] = []
        if save_best:
            self.monitor_op = comparison_for(mode, monitor, "CheckpointHandler")
            self.best = worst(self.monitor_op)

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_epoch = 0
        self.current_batch = 0
        if self.save_best:
            self.best = worst(self.monitor_op)
        if not self.resume_from_checkpoint:
            return
        if bool(estimator.max_batch) != bool(self.batch_period) or bool(estimator.max_epoch) != bool(self.epoch_period):
            raise ParamError(
                "To use resume from checkpoint, you must only specify the same type of period you used for training. "
                "For example, if you are training based on number of epochs, you must save only based on epochs, and "
                "set batch_period to None."
            )
        self._resume(estimator)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.current_batch == 0:
            self._save_symbol(estimator, kwargs.get("batch"))
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save_checkpoint(estimator)
        self.current_batch += 1

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save_checkpoint(estimator)
        self.current_epoch += 1

    # -- saving -----------------------------------------------------------------------------------------------------

    def _save_symbol(self, estimator: Any, batch: Any) -> None:
        graph = getattr(estimator.net, "_cached_graph", None)
        if not graph and getattr(estimator, "_train_step", None) is not None:
            # The compiled step has a graph of its own; a prediction makes that of the net.
            data, _ = estimator.batch_processor._get_data_and_label(batch, estimator.context, estimator.batch_axis)
            estimator.net(data[0])
            graph = estimator.net._cached_graph
        if graph:
            graph[1].save(os.path.join(self.model_dir, self.model_prefix + "-symbol.json"))
        else:
            estimator.logger.info(
                "Model architecture(symbol file) is not saved, please use HybridBlock to construct your model, and "
                "call net.hybridize() before passing to Estimator in order to save model architecture as symbol file."
            )

    def _save_checkpoint(self, estimator: Any) -> None:
        epoch = self.current_epoch + self.trained_epoch + 1
        # At the end of an epoch current_batch is one ahead of the last batch.
        batch = self.current_batch + self.trained_batch + (1 if self.batch_period and estimator.max_batch else 0)
        if self.trained_epoch < 0:
            batch = self.current_batch
        prefix = f"{self.model_prefix}-epoch{epoch}batch{batch}"
        self._save(estimator, prefix)
        self.saved_checkpoints.append(prefix)
        while len(self.saved_checkpoints) > self.max_checkpoints:
            old = self.saved_checkpoints.pop(0)
            for ending in (".params", ".states", ".random"):
                path = os.path.join(self.model_dir, old + ending)
                if os.path.exists(path):
                    os.remove(path)
        if self.verbose > 0:
            estimator.logger.info(
                "[Epoch %d] CheckpointHandler: trained total %d batches, saving model at %s with prefix: %s",
                self.current_epoch,
                self.current_batch + 1,
                self.model_dir,
                prefix,
            )
        if self.save_best:
            self._save_if_best(estimator)

    def _save(self, estimator: Any, prefix: str) -> None:
        # The parameters last: resuming looks for them, so a checkpoint with parameters is complete.
        path = os.path.join(self.model_dir, prefix)
        with replacing(path + ".random", "CheckpointHandler") as file:
            file.write(json.dumps(random.get_state()).encode())
        estimator.trainer.save_states(path + ".states")
        estimator.net.save_parameters(path + ".params")

    def _save_if_best(self, estimator: Any) -> None:
        name, value = self.monitor.get()  # type: ignore[union-attr]
        if math.isnan(value):
            warn(
                f"Skipping save best because {name} is not updated, make sure you pass one of the metric objects "
                "estimator.train_metrics and estimator.val_metrics as monitor",
                RuntimeWarning,
            )
        elif self.monitor_op(value, self.best):
            self._save(estimator, self.model_prefix + "-best")
            if self.verbose > 0:
                estimator.logger.info(
                    "[Epoch %d] CheckpointHandler: %s improved from %0.5f to %0.5f",
                    self.current_epoch,
                    name,
                    self.best,
                    value,
                )
            self.best = value
        elif self.verbose > 0:
            estimator.logger.info(
                "[Epoch %d] CheckpointHandler: %s did not improve from %0.5f", self.current_epoch, name, self.best
            )

    # -- going on ---------------------------------------------------------------------------------------------------

    def _resume(self, estimator: Any) -> None:
        pattern = re.compile(re.escape(self.model_prefix) + r"-epoch(\d+)batch(\d+)\.params\Z")
        found = sorted((int(m[1]), int(m[2]), m[0]) for m in map(pattern.match, os.listdir(self.model_dir)) if m)
        if not found:
            estimator.logger.info("CheckpointHandler: No checkpoint found, training from scratch")
            return
        self.saved_checkpoints = [name[: -len(".params")] for _, _, name in found]
        self.trained_epoch, self.trained_batch, name = found[-1]
        for what, done in (("max_epoch", self.trained_epoch), ("max_batch", self.trained_batch)):
            limit = getattr(estimator, what)
            if not limit:
                continue
            if done >= limit - 1:
                raise ParamError(
                    f"Found checkpoint with maximum number of {what[4:]} {limit} reached, please specify "
                    "resume_from_checkpoint=False (default value) if you want to train from scratch."
                )
            setattr(estimator, what, limit - done - 1)
        path = os.path.join(self.model_dir, name[: -len(".params")])
        estimator.net.load_parameters(path + ".params", ctx=estimator.context)
        estimator.trainer.load_states(path + ".states")
        if os.path.exists(path + ".random"):
            random.set_state(_state_in(path + ".random"))
        estimator.logger.warning(
            "CheckpointHandler: Checkpoint resumed from epoch %d batch %d", self.trained_epoch, self.trained_batch
        )
