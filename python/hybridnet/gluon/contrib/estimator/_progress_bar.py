"""ProgressBarHandler: a bar per epoch, drawn by tqdm, or a line per epoch without it."""

from __future__ import annotations

import math
import sys
from typing import IO, Any

from ....errors import ImportError as HybridNetImportError
from ._events import BatchEnd, EpochBegin, EpochEnd, TrainBegin, TrainEnd
from ._metrics import metric_list

__all__ = ["ProgressBarHandler"]


def _bar_class(wanted: bool | None) -> Any:
    """Returns tqdm's class; None if a line per epoch is printed instead."""
    if wanted is False:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        if wanted:
            raise HybridNetImportError(
                "ProgressBarHandler: bars need tqdm",
                because=str(error),
                fix="pip install tqdm, or leave use_tqdm out: then a line per epoch is printed",
            ) from error
        return None
    return tqdm


class ProgressBarHandler(TrainBegin, EpochBegin, BatchEnd, EpochEnd, TrainEnd):
    """Shows the progress of each epoch with the metrics; fit() then logs no lines of its own.

    Parameters
    ----------
    metrics : list of EvalMetric, optional
        Metrics to show; default: the estimator's training metrics, and after validation its validation metrics.
    file : optional
        Text file that is written to; default: standard error for bars, standard output for lines.
    use_tqdm : bool, optional
        True: bars. False: a line at the end of each epoch. Default: bars if tqdm is installed, else lines.
    priority : float, default inf

    Raises ImportError for use_tqdm=True without tqdm.
    """

    state_names = ("current_epoch", "current_batch")

    def __init__(
        self,
        metrics: Any = None,
        file: IO[str] | None = None,
        use_tqdm: bool | None = None,
        priority: float = math.inf,
    ) -> None:
        self.metrics = metric_list(metrics)
        self.priority = priority
        self.current_epoch = 0
        self.current_batch = 0
        self._file = file
        self._bar_class = _bar_class(use_tqdm)
        self._bar: Any = None

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_epoch = 0
        self.current_batch = 0

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self._bar_class is not None:
            self._bar = self._bar_class(
                total=None if estimator._is_evaluating else estimator._num_batches,
                initial=self.current_batch,
                desc=self._title(estimator),
                file=self._file,
                unit="batch",
            )

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch += 1
        if self._bar is not None:
            self._bar.update(1)
            self._bar.set_postfix_str(self._values(self._shown_within_epoch(estimator)), refresh=False)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        values = self._values(self.metrics or estimator._epoch_metrics())
        if self._bar is not None:
            self._bar.set_postfix_str(values)
            self._close()
        else:
            plural = "" if self.current_batch == 1 else "es"
            print(
                f"{self._title(estimator)}: {self.current_batch} batch{plural}, {values}",
                file=self._file or sys.stdout,
                flush=True,
            )
        self.current_epoch += 1
        self.current_batch = 0

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self._close()

    def training_failed(self, estimator: Any) -> None:
        """Closes the bar, so that the error's text begins on a line of its own."""
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _shown_within_epoch(self, estimator: Any) -> Any:
        return self.metrics or (estimator.val_metrics if estimator._is_evaluating else estimator.train_metrics)

    def _title(self, estimator: Any) -> str:
        if estimator._is_evaluating:
            return "Validation"
        total = f"/{estimator.max_epoch}" if estimator.max_epoch else ""
        return f"Epoch {self.current_epoch + 1}{total}"

    @staticmethod
    def _values(metrics: Any) -> str:
        pairs = [pair for metric in metrics for pair in metric.get_name_value()]
        return ", ".join(f"{name} {value:.4f}" for name, value in pairs if not math.isnan(value))
