"""TrainingCheckpointHandler: one file from which an interrupted training continues to the bit."""

from __future__ import annotations

import os
from typing import Any

from ....errors import ParamError
from ..._training_file import load_training, save_training
from ._events import BatchEnd, EpochEnd
from ._saved_state import handler_states, metric_states, restore_handlers, restore_metrics

__all__ = ["TrainingCheckpointHandler"]


def _check_period(name: str, period: int | None) -> None:
    if period is not None and (not isinstance(period, int) or period < 1):
        raise ParamError(
            f"TrainingCheckpointHandler: {name}", expected="an integer >= 1, or None for never", given=repr(period)
        )


class TrainingCheckpointHandler(BatchEnd, EpochEnd):
    """Keeps a training in one file, and continues from it when the program is started again.

    The file holds parameters, states of the trainer, random numbers, the position in the training data, metrics, the
    history and the counts of all handlers (``state_names``). A training that was killed and started again by the same
    program ends with the same parameters, to the bit, as one that was not; ``epochs`` and ``batches`` of fit() count
    from the first start. A training that is complete in the file is not repeated. The file is that of
    gluon.save_training, replaced atomically.

    Parameters
    ----------
    path : str
        Its folder is created if it does not exist.
    epoch_period, batch_period : int, optional
        Number of epochs (default 1) or batches between two writes.
    resume : bool, default True
        Whether fit() continues from an existing file; False: from the beginning.

    Raises ParamError for periods that are not positive; in fit(), the errors of gluon.load_training.
    """

    # After all other handlers, so that their states are those of a finished batch or epoch.
    runs_last = True
    state_names = ("current_epoch", "current_batch")

    def __init__(
        self,
        path: str | os.PathLike[str],
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        resume: bool = True,
    ) -> None:
        _check_period("epoch_period", epoch_period)
        _check_period("batch_period", batch_period)
        self.path = os.fspath(path)
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.resume = resume
        self.current_epoch = 0
        self.current_batch = 0

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch += 1
        if self.batch_period and self.current_batch % self.batch_period == 0:
            self._save(estimator, within_epoch=True)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_epoch += 1
        if self.epoch_period and self.current_epoch % self.epoch_period == 0:
            self._save(estimator, within_epoch=False)

    def _save(self, estimator: Any, within_epoch: bool) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        extra = {
            "within_epoch": within_epoch,
            "handlers": handler_states(estimator._handlers),
            "metrics": metric_states([*estimator.train_metrics, *estimator.val_metrics]),
        }
        save_training(self.path, estimator.net, estimator.trainer, estimator._train_data, extra)

    def restore(self, estimator: Any) -> bool:
        """Continues from the file, if there is one; returns whether its training was within an epoch."""
        if not self.resume or not os.path.exists(self.path):
            self.current_epoch = 0
            self.current_batch = 0
            return False
        extra = load_training(self.path, estimator.net, estimator.trainer, estimator._train_data)
        if not isinstance(extra, dict) or not {"within_epoch", "handlers", "metrics"} <= extra.keys():
            raise ParamError(
                f"TrainingCheckpointHandler: '{self.path}' was not written by this handler",
                fix="choose another path, or pass resume=False",
            )
        restore_handlers(estimator._handlers, extra["handlers"])
        restore_metrics([*estimator.train_metrics, *estimator.val_metrics], extra["metrics"])
        return bool(extra["within_epoch"])
