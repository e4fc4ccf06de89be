"""Metrics of probabilities, and of losses that the network computes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ..errors import ValueError as HybridNetValueError
from ._metric import EvalMetric, PairMetric, alias, check_label_shapes, is_array, register, to_numpy

__all__ = ["Caffe", "CrossEntropy", "Loss", "NegativeLogLikelihood", "Perplexity", "Torch"]


@register
class Perplexity(EvalMetric):
    """Exponential of the mean negative log probability of the labels.

    Parameters
    ----------
    ignore_label : int or None
        Label whose samples are ignored.
    axis : int, default -1
        Axis of the predictions that holds the classes.
    """

    def __init__(
        self,
        ignore_label: int | None,
        axis: int = -1,
        name: str = "perplexity",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, ignore_label=ignore_label, axis=axis, has_global_stats=True)
        self.ignore_label = ignore_label
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        loss, count = 0.0, 0
        for label, pred in zip(labels, preds, strict=False):
            label, pred = to_numpy(label), to_numpy(pred)
            classes = pred.shape[self.axis]
            if label.size * classes != pred.size:
                raise HybridNetValueError(f"shape mismatch: labels {label.shape} vs. predictions {pred.shape}")
            rows = numpy.moveaxis(pred, self.axis, -1).reshape(-1, classes)
            index = label.ravel().astype(numpy.int64)
            # Like the pick operator: indices out of range are clipped.
            probability = rows[numpy.arange(len(index)), index.clip(0, classes - 1)]
            probability = probability.astype(numpy.result_type(probability, numpy.float32))  # float32 as in MXNet
            if self.ignore_label is not None:
                probability = probability[index != self.ignore_label]
            loss -= float(numpy.log(numpy.maximum(1e-10, probability)).sum())
            count += probability.size
        self._add(loss, count)

    def get(self) -> tuple[str, float]:
        name, mean = super().get()
        return name, math.exp(mean)

    def get_global(self) -> tuple[str, float]:
        name, mean = super().get_global()
        return name, math.exp(mean)


class _LogProbability(PairMetric):
    """Mean of -log(probability of the label + eps)."""

    def __init__(self, eps: float, name: str, output_names: Any, label_names: Any) -> None:
        super().__init__(name, output_names, label_names, eps=eps, has_global_stats=True)
        self.eps = eps

    def _measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, int]:
        label = label.ravel()
        if pred.ndim < 2 or label.shape[0] != pred.shape[0]:
            raise HybridNetValueError(
                type(self).__name__,
                expected=f"probabilities of shape ({label.shape[0]}, classes) for {label.shape[0]} labels",
                given=str(pred.shape),
            )
        probability = pred[numpy.arange(label.shape[0]), label.astype(numpy.int64)]
        return float(-numpy.log(probability + self.eps).sum()), label.shape[0]


@register
@alias("ce")
class CrossEntropy(_LogProbability):
    """Cross entropy of probabilities (N, classes) and labels (N,): mean of -log(p[label] + eps)."""

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "cross-entropy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(eps, name, output_names, label_names)


@register
@alias("nll_loss")
class NegativeLogLikelihood(_LogProbability):
    """Negative log likelihood of probabilities (N, classes) and labels (N,): mean of -log(p[label] + eps)."""

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "nll-loss",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(eps, name, output_names, label_names)


@register
class Loss(EvalMetric):
    """Mean of a loss that the network computes; labels are ignored."""

    def __init__(
        self,
        name: str = "loss",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, _: Any, preds: Any) -> None:
        for pred in [preds] if is_array(preds) else preds:
            values = to_numpy(pred)
            self._add(float(values.sum(dtype=numpy.float64)), values.size)


@register
class Torch(Loss):
    """The metric Loss under the name 'torch'."""

    def __init__(self, name: str = "torch", output_names: Any = None, label_names: Any = None) -> None:
        super().__init__(name, output_names, label_names)


@register
class Caffe(Loss):
    """The metric Loss under the name 'caffe'."""

    def __init__(self, name: str = "caffe", output_names: Any = None, label_names: Any = None) -> None:
        super().__init__(name, output_names, label_names)
