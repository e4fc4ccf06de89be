"""LogMetricsCallback: writes training metrics of each batch for TensorBoard."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import ImportError as HybridNetImportError

__all__ = ["LogMetricsCallback"]

# Packages with a SummaryWriter; MXNet's choice comes first.
_WRITERS = ("mxboard", "tensorboardX", "torch.utils.tensorboard")


def _writer(folder: str) -> Any:
    for package in _WRITERS:
        try:
            return importlib.import_module(package).SummaryWriter(folder)
        except ImportError:
            continue
    raise HybridNetImportError(
        "LogMetricsCallback needs a package that writes TensorBoard's files",
        because=f"none of {', '.join(_WRITERS)} can be imported",
        fix="pip install tensorboardX",
    )


class LogMetricsCallback:
    """Writes the values of a metric after each batch or epoch; pass it to fit as batch_end_callback.

    Parameters
    ----------
    logging_dir : str
        Folder of the files; ``tensorboard --logdir`` reads them.
    prefix : str, optional
        Prefix of the names of values, such as 'train'.

    Raises ImportError unless mxboard, tensorboardX or torch with tensorboard is installed.
    """

    def __init__(self, logging_dir: str, prefix: str | None = None) -> None:
        self.prefix = prefix
        self.step = 0
        self.summary_writer = _writer(logging_dir)

    def __call__(self, param: Any) -> None:
        """Writes the metric of a BatchEndParam, if it has one."""
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            shown = name if self.prefix is None else f"{self.prefix}-{name}"
            self.summary_writer.add_scalar(shown, value, self.step)
        self.step += 1
