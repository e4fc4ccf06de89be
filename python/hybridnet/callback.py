"""Callbacks for training loops: saving checkpoints, logging speed, progress and metrics."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

from ._public_names import dir_of

__all__ = [
    "LogValidationMetricsCallback",
    "ProgressBar",
    "Speedometer",
    "do_checkpoint",
    "log_train_metric",
    "module_checkpoint",
]


def module_checkpoint(
    mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False
) -> Callable[..., None]:
    """Returns an epoch-end callback that saves a module every period epochs: prefix-symbol.json, prefix-0001.params."""
    period = max(1, int(period))

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            mod.save_checkpoint(prefix, iter_no + 1, save_optimizer_states)

    return save


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """Returns an epoch-end callback that saves symbol and parameters every period epochs."""
    period = max(1, int(period))

    def save(iter_no: int, sym: Any, arg: Any, aux: Any) -> None:
        from .model import save_checkpoint

        if (iter_no + 1) % period == 0:
            save_checkpoint(prefix, iter_no + 1, sym, arg, aux)

    return save


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[Any], None]:
    """Returns a batch-end callback that logs the training metric every period batches; auto_reset then resets it."""

    def log(param: Any) -> None:
        if param.nbatch % period or param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
        if auto_reset:
            param.eval_metric.reset_local()

    return log


class Speedometer:
    """Batch-end callback that logs samples per second, and the metric, every `frequent` batches.

    Parameters
    ----------
    batch_size : int
    frequent : int, default 50
    auto_reset : bool, default True
        Whether the metric is reset after each line.
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        self.batch_size = batch_size
        self.frequent = frequent
        self.init = False
        self.tic = 0.0
        self.last_count = 0
        self.auto_reset = auto_reset

    def __call__(self, param: Any) -> None:
        count = param.nbatch
        if self.last_count > count:  # a new epoch
            self.init = False
        self.last_count = count
        if not self.init:
            self.init = True
            self.tic = time.time()
            return
        if count % self.frequent:
            return
        elapsed = time.time() - self.tic
        speed = self.frequent * self.batch_size / elapsed if elapsed > 0 else math.inf
        self._log(param, count, speed)
        self.tic = time.time()

    def _log(self, param: Any, count: int, speed: float) -> None:
        if param.eval_metric is None:
            logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
            return
        pairs = param.eval_metric.get_name_value()
        first = 0
        if self.auto_reset:
            param.eval_metric.reset_local()
            first = count - self.frequent
        text = "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(pairs)
        logging.info(text, param.epoch, first, count, speed, *(item for pair in pairs for item in pair))


class ProgressBar:
    """Batch-end callback that logs a progress bar. total: batches per epoch; length: characters of the bar."""

    def __init__(self, total: int, length: int = 80) -> None:
        self.bar_len = length
        self.total = total

    def __call__(self, param: Any) -> None:
        filled = round(self.bar_len * param.nbatch / float(self.total))
        percents = math.ceil(100.0 * param.nbatch / float(self.total))
        logging.info("[%s] %s%s\r", "=" * filled + "-" * (self.bar_len - filled), percents, "%")


class LogValidationMetricsCallback:
    """Evaluation-end callback that logs the metric."""

    def __call__(self, param: Any) -> None:
        if not param.eval_metric:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)


__dir__ = dir_of(__name__)
