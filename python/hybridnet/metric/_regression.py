"""Metrics of regression: errors and correlation of predicted numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ..errors import ValueError as HybridNetValueError
from ..errors import not_overridden
from ._metric import EvalMetric, PairMetric, alias, check_label_shapes, register, to_numpy

__all__ = ["MAE", "MSE", "RMSE", "PearsonCorrelation"]


def _columns(array: numpy.ndarray) -> numpy.ndarray:
    return array.reshape(array.shape[0], 1) if array.ndim == 1 else array


class _BatchError(PairMetric):
    """An error of each batch, averaged over batches; a batch without elements does not count.

    Labels and predictions: broadcastable shapes; a vector counts as a column.
    """

    def _measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, int]:
        difference = _columns(label) - _columns(pred)
        return (float(self._error(difference)), 1) if difference.size else (0.0, 0)

    def _error(self, difference: numpy.ndarray) -> float:
        """Returns the error of a batch from labels minus predictions."""
        raise not_overridden(self, "_error(difference)")


@register
class MAE(_BatchError):
    """Mean absolute error, averaged over batches."""

    def __init__(
        self,
        name: str = "mae",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _error(self, difference: numpy.ndarray) -> float:
        return numpy.abs(difference).mean()


@register
class MSE(_BatchError):
    """Mean squared error, averaged over batches."""

    def __init__(
        self,
        name: str = "mse",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _error(self, difference: numpy.ndarray) -> float:
        return (difference**2.0).mean()


@register
class RMSE(_BatchError):
    """Root of the mean squared error of a batch, averaged over batches."""

    def __init__(
        self,
        name: str = "rmse",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _error(self, difference: numpy.ndarray) -> float:
        return numpy.sqrt((difference**2.0).mean())


@register
@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson correlation of labels and predictions.

    average 'macro': mean of the correlations of the batches; 'micro': one correlation over all samples, from running
    moments (Chan's pairwise update of Welford's algorithm).
    """

    def __init__(
        self,
        name: str = "pearsonr",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        average: str = "macro",
    ) -> None:
        if average not in ("macro", "micro"):
            raise HybridNetValueError("PearsonCorrelation: average must be 'macro' or 'micro'", given=repr(average))
        self.average = average
        super().__init__(name, output_names, label_names, average=average, has_global_stats=True)

    def reset(self) -> None:
        super().reset()
        self.reset_micro()

    def reset_micro(self) -> None:
        """Resets the running moments."""
        self._count = 0
        self._mean = numpy.zeros(2)
        self._moments = numpy.zeros((2, 2))

    def _add_moments(self, pairs: numpy.ndarray) -> None:
        count = pairs.shape[1]
        mean = pairs.mean(axis=1)
        centered = pairs - mean[:, None]
        shift = mean - self._mean
        total = self._count + count
        self._moments += centered @ centered.T + numpy.outer(shift, shift) * (self._count * count / total)
        self._mean += shift * (count / total)
        self._count = total

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            check_label_shapes(label, pred, False, True)
            label = to_numpy(label).ravel().astype(numpy.float64)
            pred = to_numpy(pred).ravel().astype(numpy.float64)
            if self.average == "macro":
                self._add(float(numpy.corrcoef(pred, label)[0, 1]), 1)
            elif label.size:
                self._add_moments(numpy.stack([label, pred]))
                self.num_inst += 1
                self.global_num_inst += 1

    def _micro(self) -> float:
        scale = math.sqrt(self._moments[0, 0] * self._moments[1, 1])
        return float(self._moments[0, 1] / scale) if scale > 0 else float("nan")

    def get(self) -> tuple[str, float]:
        if self.average == "macro" or self.num_inst == 0:
            return super().get()
        return self.name, self._micro()

    def get_global(self) -> tuple[str, float]:
        if self.average == "macro" or self.global_num_inst == 0:
            return super().get_global()
        return self.name, self._micro()
