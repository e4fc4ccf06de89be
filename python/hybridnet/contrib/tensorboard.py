"""LogMetricsCallback: writes training metrics of each batch for TensorBoard."""

from __future__ import annotations

from typing import Any

from .._public_names import dir_of
from ._event_files import event_writer

__all__ = ["LogMetricsCallback"]


class LogMetricsCallback:
    """Writes the values of a metric after each batch or epoch; pass it to fit as batch_end_callback.

    Parameters
    ----------
    logging_dir : str
        Folder of the files; ``tensorboard --logdir`` reads them.
    prefix : str, optional
        Prefix of the names of values, such as 'train'.

    Raises ImportError unless mxboard, tensorboardX, tensorboard or torch with tensorboard is installed.
    """

    def __init__(self, logging_dir: str, prefix: str | None = None) -> None:
        self.prefix = prefix
        self.step = 0
        self.summary_writer = event_writer(logging_dir, "LogMetricsCallback")

    def __call__(self, param: Any) -> None:
        """Writes the metric of a BatchEndParam, if it has one."""
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            shown = name if self.prefix is None else f"{self.prefix}-{name}"
            self.summary_writer.add_scalar(shown, value, self.step)
        self.step += 1


__dir__ = dir_of(__name__)
