"""CurvesHandler: a picture of the learning curves, renewed after each epoch."""

from __future__ import annotations

import os
from typing import Any

from ...._drawing._plots import matplotlib_figure, plot_history
from ._events import EpochEnd, TrainBegin

__all__ = ["CurvesHandler", "plot_history"]


class CurvesHandler(TrainBegin, EpochEnd):
    """Writes the learning curves of the history into a picture after each epoch: ``CurvesHandler("curves.png")``.

    Parameters
    ----------
    path : str
        The ending selects the format: .png, .svg, .pdf. Its folder is created if it does not exist.
    names : list of str, optional
        Names of the history to draw; default: all metrics.
    priority : float, default -300

    Raises ImportError without matplotlib.
    """

    def __init__(self, path: str | os.PathLike[str], names: Any = None, priority: float = -300) -> None:
        matplotlib_figure("CurvesHandler")
        self.path = os.fspath(path)
        self.names = names
        self.priority = priority

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        plot_history(estimator.history, path=self.path, names=self.names)
