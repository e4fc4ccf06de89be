"""Plots of a training: learning curves and confusion matrices, drawn by matplotlib."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ImportError as HybridNetImportError
from ..errors import ParamError, ShapeError

__all__ = ["matplotlib_figure", "plot_confusion_matrix", "plot_history"]

_KINDS = ("training", "validation")


def matplotlib_figure(owner: str) -> Any:
    """Returns matplotlib's class Figure. Raises ImportError, which names owner, if it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise HybridNetImportError(
            f"{owner} needs matplotlib", because=str(error), fix="pip install matplotlib"
        ) from error
    return Figure


def _new_figure(owner: str, path: Any, columns: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    """Returns a figure and its axes: pyplot's, so that notebooks and plt.show() display it, unless it is for a file."""
    figure_class = matplotlib_figure(owner)
    if path is not None:
        figure = figure_class(figsize=size, layout="constrained")
        axes = figure.subplots(1, columns, squeeze=False)
    else:
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(1, columns, squeeze=False, figsize=size, layout="constrained")
    return figure, list(axes[0])


def _groups(history: Mapping[str, Sequence[float]], names: Sequence[str] | None) -> dict[str, list[tuple[str, str]]]:
    """Returns the curves of each panel: (label, name); training and validation values share a panel."""
    chosen = [name for name in history if name != "learning rate"] if names is None else list(names)
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in chosen:
        history[name]  # raises KeyError with the known names
        kind, _, metric = name.partition(" ")
        title, label = (metric, kind) if kind in _KINDS and metric else (name, name)
        groups.setdefault(title, []).append((label, name))
    return groups


def plot_history(
    history: Mapping[str, Sequence[float]],
    path: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Draws learning curves: a panel per metric, with its training and its validation values over the epochs.

    Parameters
    ----------
    history : gluon.contrib.estimator.History, or a dict of lists
        The result of Estimator.fit().
    path : str, optional
        File to write; default: none, the figure is shown by a notebook or by ``matplotlib.pyplot.show()``.
    names : list of str, optional
        Names of the history to draw; default: all but the learning rate.

    Returns matplotlib's figure. Raises ImportError without matplotlib, KeyError for unknown names, ParamError if the
    history is empty.
    """
    groups = _groups(history, names)
    if not groups:
        raise ParamError("plot_history: the history is empty", fix="train first: history = estimator.fit(...)")
    figure, axes = _new_figure("plot_history", path, len(groups), (4.5 * len(groups), 3.5))
    for panel, (title, curves) in zip(axes, groups.items(), strict=True):
        for label, name in curves:
            values = [float(value) for value in history[name]]
            panel.plot(range(1, len(values) + 1), values, marker=".", label=label)
        panel.set_title(title)
        panel.set_xlabel("epoch")
        panel.xaxis.get_major_locator().set_params(integer=True)
        if len(curves) > 1:
            panel.legend()
    if path is not None:
        figure.savefig(os.fspath(path))
    return figure


def _matrix_of(matrix: Any) -> np.ndarray:
    values = np.asarray(getattr(matrix, "matrix", matrix), dtype=float)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ShapeError(
            "plot_confusion_matrix: matrix",
            expected="a mx.metric.ConfusionMatrix with data, or a square array",
            given=f"shape {values.shape}",
        )
    return values


def plot_confusion_matrix(
    matrix: Any,
    labels: Sequence[Any] | None = None,
    normalize: bool = False,
    path: str | os.PathLike[str] | None = None,
) -> Any:
    """Draws a confusion matrix: rows are true classes, columns predicted classes.

    Parameters
    ----------
    matrix : mx.metric.ConfusionMatrix, or array (classes, classes)
    labels : list, optional
        Names of the classes; default: those of the metric, else their numbers.
    normalize : bool, default False
        Whether rows are divided by their sums, so that the diagonal shows the recall of each class.
    path : str, optional
        File to write; default: none, the figure is shown by a notebook or by ``matplotlib.pyplot.show()``.

    Returns matplotlib's figure. Raises ImportError without matplotlib, ShapeError if the matrix is empty or not square,
    ParamError for a wrong number of labels.
    """
    values = _matrix_of(matrix)
    if labels is None:
        labels = getattr(matrix, "labels", None) or range(len(values))
    names = [str(label) for label in labels]
    if len(names) != len(values):
        raise ParamError("plot_confusion_matrix: labels", expected=f"{len(values)} names", given=str(len(names)))
    if normalize:
        values = values / np.maximum(values.sum(axis=1, keepdims=True), 1)
    side = max(3.5, 1.5 + 0.45 * len(values))
    figure, (axes,) = _new_figure("plot_confusion_matrix", path, 1, (side + 0.7, side))
    figure.colorbar(axes.imshow(values, cmap="Blues"), ax=axes)
    axes.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 3 else 0)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    _write_values(axes, values, normalize)
    if path is not None:
        figure.savefig(os.fspath(path))
    return figure


def _write_values(axes: Any, values: np.ndarray, normalize: bool) -> None:
    if len(values) > 25:
        return  # unreadably small
    limit = values.max() / 2
    for (row, column), value in np.ndenumerate(values):
        text = f"{value:.2f}" if normalize else f"{value:g}"
        axes.text(column, row, text, ha="center", va="center", color="white" if value > limit else "black", size=8)
