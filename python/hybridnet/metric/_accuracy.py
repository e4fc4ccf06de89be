"""Accuracy metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..errors import ValueError as HybridNetValueError
from ._metric import PairMetric, alias, check_label_shapes, register

__all__ = ["Accuracy", "BinaryAccuracy", "TopKAccuracy"]


@register
@alias("acc")
class Accuracy(PairMetric):
    """Fraction of samples whose predicted class is the label.

    Predictions are class indices (shape of the labels) or scores with the classes on `axis`.
    """

    def __init__(
        self,
        axis: int = 1,
        name: str = "accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, axis=axis, has_global_stats=True)
        self.axis = axis

    def _measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, int]:
        if pred.shape != label.shape:
            if not -pred.ndim <= self.axis < pred.ndim:
                swapped = label.ndim > pred.ndim
                raise HybridNetValueError(
                    f"Shape of labels {label.shape} does not match shape of predictions {pred.shape}, which have no "
                    f"axis {self.axis} of classes",
                    fix="call update(labels, preds), the labels first"
                    if swapped
                    else "pass one class for each label, or scores (N, classes)",
                )
            pred = pred.argmax(axis=self.axis)
        label = label.astype(numpy.int64).ravel()
        pred = pred.astype(numpy.int64).ravel()
        check_label_shapes(label, pred)
        return int((pred == label).sum()), len(pred)


@register
@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(PairMetric):
    """Fraction of samples whose label is among the top_k classes with the highest scores.

    Predictions: scores (N, classes), or class indices (N,). Raises ValueError unless top_k > 1.
    """

    def __init__(
        self,
        top_k: int = 1,
        name: str = "top_k_accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, top_k=top_k, has_global_stats=True)
        self.top_k = top_k
        if top_k <= 1:
            raise HybridNetValueError("Please use Accuracy if top_k is no more than 1", given=str(top_k))
        self.name += f"_{top_k}"

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["name"] = self.name[: -len(f"_{self.top_k}")]
        return config

    def _measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, int]:
        label = label.astype(numpy.int64).ravel()
        if pred.ndim not in (1, 2):
            raise HybridNetValueError(
                "Predictions should be no more than 2 dims, and at least 1", given=f"shape {pred.shape}"
            )
        check_label_shapes(label, pred)
        if pred.ndim == 1:
            correct = (pred.astype(numpy.int64) == label).sum()
        else:
            top_k = min(self.top_k, pred.shape[1])
            best = numpy.argpartition(pred.astype(numpy.float32), -top_k)[:, -top_k:]
            correct = (best == label[:, None]).sum()
        return int(correct), len(label)


@register
class BinaryAccuracy(PairMetric):
    """Fraction of scores on the right side of threshold; labels are 0 or 1, any shape."""

    def __init__(
        self,
        name: str = "binary_accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        threshold: float = 0.5,
    ) -> None:
        self.threshold = threshold
        super().__init__(name, output_names, label_names, threshold=threshold, has_global_stats=True)

    def _measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, int]:
        label, above = label.astype(numpy.int32).ravel(), pred.ravel() > self.threshold
        check_label_shapes(label, above)
        return int((label == above).sum()), len(label)
