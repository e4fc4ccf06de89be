"""ConfusionMatrix: how often each class is taken for each other class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..errors import ParamError
from ..errors import ValueError as HybridNetValueError
from ._metric import EvalMetric, check_label_shapes, register, to_numpy

__all__ = ["ConfusionMatrix"]


@register
class ConfusionMatrix(EvalMetric):
    """Counts pairs of true and predicted classes; its value is the accuracy. table() returns the counts as text.

    Labels are class numbers (N, ...); predictions are class numbers of the same shape, or scores with the classes on
    axis 1.

    Parameters
    ----------
    num_classes : int, optional
        Default: the number of labels, else the matrix grows with the classes that occur.
    labels : list of str, optional
        Names of the classes, for table() and mx.viz.plot_confusion_matrix.

    Attributes: ``matrix``, an integer array (classes, classes): row true class, column predicted class.
    Raises ParamError if num_classes and labels disagree; update() raises ValueError for classes out of range.
    """

    def __init__(
        self,
        num_classes: int | None = None,
        labels: Sequence[str] | None = None,
        name: str = "confusion-matrix-accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if labels is not None and num_classes not in (None, len(labels)):
            raise ParamError("ConfusionMatrix: labels", expected=f"{num_classes} names", given=str(len(labels)))
        self.labels = None if labels is None else [str(label) for label in labels]
        self.num_classes = len(labels) if labels is not None else num_classes
        size = self.num_classes or 0
        self._local = numpy.zeros((size, size), numpy.int64)
        self._global = numpy.zeros((size, size), numpy.int64)
        super().__init__(
            name, output_names, label_names, num_classes=num_classes, labels=self.labels, has_global_stats=True
        )

    @property
    def matrix(self) -> numpy.ndarray:
        """A copy of the counts since reset(): row true class, column predicted class."""
        return self._global.copy()

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: lists of labels and predictions of equal length, or one array of each."""
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=True):
            true, predicted = self._classes(to_numpy(label), to_numpy(pred))
            self._grow(int(max(true.max(initial=-1), predicted.max(initial=-1))) + 1)
            numpy.add.at(self._local, (true, predicted), 1)
            numpy.add.at(self._global, (true, predicted), 1)
            right = int((true == predicted).sum())
            self._add(right, true.size)

    def _classes(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
        if pred.shape != label.shape and pred.ndim > 1:
            pred = pred.argmax(axis=1)
        true, predicted = label.astype(numpy.int64).ravel(), pred.astype(numpy.int64).ravel()
        check_label_shapes(true, predicted)
        for classes, what in ((true, "labels"), (predicted, "predictions")):
            limit = self.num_classes
            if classes.size and (classes.min() < 0 or (limit is not None and classes.max() >= limit)):
                expected = "class numbers >= 0" if limit is None else f"class numbers from 0 to {limit - 1}"
                wrong = classes.min() if classes.min() < 0 else classes.max()
                raise HybridNetValueError(f"ConfusionMatrix: {what}", expected=expected, given=str(wrong))
        return true, predicted

    def _grow(self, size: int) -> None:
        more = size - len(self._global)
        if more > 0:
            self._local = numpy.pad(self._local, (0, more))
            self._global = numpy.pad(self._global, (0, more))

    def _counts(self) -> list[float]:
        if self.num_classes is None:
            raise HybridNetValueError(
                "group.reduce: ConfusionMatrix needs num_classes",
                because="the processes may have seen different classes",
                fix="make it with num_classes=",
            )
        means = [self.sum_metric, self.num_inst, self.global_sum_metric, self.global_num_inst]
        self._grow(self.num_classes)
        return [*means, *self._local.ravel(), *self._global.ravel()]

    def _take_counts(self, counts: Sequence[float]) -> None:
        super()._take_counts(counts)
        self._local, self._global = numpy.asarray(counts[4:], dtype=numpy.int64).reshape(2, *self._local.shape)

    def reset(self) -> None:
        super().reset()
        self._local = numpy.zeros_like(self._local)
        self._global = numpy.zeros_like(self._global)

    def reset_local(self) -> None:
        super().reset_local()
        self._local = numpy.zeros_like(self._local)

    def _names(self) -> list[str]:
        return self.labels or [str(number) for number in range(len(self._global))]

    def per_class(self) -> dict[str, dict[str, float]]:
        """Returns precision, recall, f1 and the number of samples (count) for each class by name; 0 without samples."""
        right = self._global.diagonal()
        counts, predicted = self._global.sum(axis=1), self._global.sum(axis=0)
        precision = right / numpy.maximum(predicted, 1)
        recall = right / numpy.maximum(counts, 1)
        f1 = 2 * right / numpy.maximum(counts + predicted, 1)
        return {
            name: {
                "precision": float(precision[i]),
                "recall": float(recall[i]),
                "f1": float(f1[i]),
                "count": int(counts[i]),
            }
            for i, name in enumerate(self._names())
        }

    def table(self) -> str:
        """Returns the counts as text: rows are true classes, columns predicted classes."""
        names = self._names()
        rows = [["true \\ predicted", *names]]
        rows += [[name, *map(str, counts)] for name, counts in zip(names, self._global.tolist(), strict=True)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows)
