"""Scores from counts of correct and wrong decisions: F1, F-beta, Matthews and Pearson of a confusion matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ..errors import ValueError as HybridNetValueError
from ..errors import not_overridden
from ._metric import EvalMetric, check_label_shapes, register, to_numpy

__all__ = ["F1", "MCC", "PCC", "Fbeta"]


class _Tally:
    """Counts of true and false positives and negatives."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.true_positives = self.false_positives = self.false_negatives = self.true_negatives = 0

    def add(self, predicted: numpy.ndarray, label: numpy.ndarray) -> None:
        self.true_positives += int((predicted & label).sum())
        self.false_positives += int((predicted & ~label).sum())
        self.false_negatives += int((~predicted & label).sum())
        self.true_negatives += int((~predicted & ~label).sum())

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.true_positives, self.false_positives, self.false_negatives, self.true_negatives

    @counts.setter
    def counts(self, counts: tuple[int, int, int, int]) -> None:
        self.true_positives, self.false_positives, self.false_negatives, self.true_negatives = counts

    @property
    def total(self) -> int:
        return self.true_positives + self.false_positives + self.false_negatives + self.true_negatives

    def fscore(self, beta: float) -> float:
        true = (1 + beta**2) * self.true_positives
        denominator = true + beta**2 * self.false_negatives + self.false_positives
        return true / denominator if denominator > 0 else 0.0

    def matthews(self) -> float:
        if not self.total:
            return 0.0
        tp, fp = float(self.true_positives), float(self.false_positives)
        fn, tn = float(self.false_negatives), float(self.true_negatives)
        # A margin of zero counts as one, so that a constant prediction scores 0.
        margins = [margin or 1.0 for margin in (tp + fp, tp + fn, tn + fp, tn + fn)]
        return (tp * tn - fp * fn) / math.sqrt(math.prod(margins))


class _BinaryScore(EvalMetric):
    """A score computed from a tally of binary decisions.

    average 'macro': mean of the scores of the batches; 'micro': one score over all samples.
    """

    def __init__(self, name: str, output_names: Any, label_names: Any, average: str, **kwargs: Any) -> None:
        if average not in ("macro", "micro"):
            raise HybridNetValueError(f"{type(self).__name__}: average must be 'macro' or 'micro'", given=repr(average))
        self.average = average
        self._local = _Tally()
        self._global = _Tally()
        super().__init__(name, output_names, label_names, average=average, has_global_stats=True, **kwargs)

    def _score(self, tally: _Tally) -> float:
        raise not_overridden(self, "_score(tally)")

    def _decide(self, pred: numpy.ndarray) -> numpy.ndarray:
        if pred.ndim < 2:
            raise HybridNetValueError(f"{type(self).__name__} needs scores of shape (N, 2)", given=str(pred.shape))
        return pred.argmax(axis=1).ravel() == 1

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            label, pred = to_numpy(label).astype(numpy.int32), to_numpy(pred)
            check_label_shapes(label, pred)
            if len(numpy.unique(label)) > 2:
                raise HybridNetValueError(f"{type(self).__name__} currently only supports binary classification.")
            decided, truth = self._decide(pred), label.ravel() == 1
            check_label_shapes(truth, decided)
            self._local.add(decided, truth)
            self._global.add(decided, truth)
        if self.average == "macro":
            self._add(self._score(self._local), 1)
            self._local.reset()
            self._global.reset()
        else:
            self.sum_metric = self._score(self._local) * self._local.total
            self.num_inst = self._local.total
            self.global_sum_metric = self._score(self._global) * self._global.total
            self.global_num_inst = self._global.total

    def _counts(self) -> list[float]:
        means = [self.sum_metric, self.num_inst, self.global_sum_metric, self.global_num_inst]
        return [*means, *self._local.counts, *self._global.counts]

    def _take_counts(self, counts: Sequence[float]) -> None:
        super()._take_counts(counts)
        self._local.counts = tuple(map(int, counts[4:8]))  # type: ignore[assignment]
        self._global.counts = tuple(map(int, counts[8:12]))  # type: ignore[assignment]
        if self.average == "micro":
            self.sum_metric = self._score(self._local) * self._local.total
            self.global_sum_metric = self._score(self._global) * self._global.total

    def reset(self) -> None:
        super().reset()
        self._local.reset()
        self._global.reset()

    def reset_local(self) -> None:
        super().reset_local()
        self._local.reset()


@register
class F1(_BinaryScore):
    """Harmonic mean of precision and recall of a binary classifier.

    labels (N,) of 0 and 1, preds (N, 2) scores. average: see Fbeta. Raises ValueError for more than two labels.
    """

    def __init__(
        self,
        name: str = "f1",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        average: str = "macro",
    ) -> None:
        super().__init__(name, output_names, label_names, average)

    def _score(self, tally: _Tally) -> float:
        return tally.fscore(1.0)


@register
class Fbeta(_BinaryScore):
    """F-score of a binary classifier with recall weighted beta times as much as precision.

    average 'macro' averages the scores of the batches, 'micro' scores all samples at once.
    """

    def __init__(
        self,
        name: str = "fbeta",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        beta: float = 1.0,
        average: str = "micro",
    ) -> None:
        self.beta = beta
        super().__init__(name, output_names, label_names, average, beta=beta)

    def _score(self, tally: _Tally) -> float:
        return tally.fscore(self.beta)


@register
class MCC(_BinaryScore):
    """Matthews correlation coefficient of a binary classifier: 1 perfect, 0 random, -1 always wrong."""

    def __init__(
        self,
        name: str = "mcc",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        average: str = "macro",
    ) -> None:
        super().__init__(name, output_names, label_names, average)

    def _score(self, tally: _Tally) -> float:
        return tally.matthews()


@register
class PCC(EvalMetric):
    """Pearson correlation of a confusion matrix: the Matthews coefficient for any number of classes.

    Predictions are class indices or scores with the classes on axis 1. nan while only one class was seen.
    """

    def __init__(
        self,
        name: str = "pcc",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        has_global_stats: bool = True,
    ) -> None:
        self.k = 2
        self._local: numpy.ndarray
        self._global: numpy.ndarray
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    @staticmethod
    def _correlation(confusion: numpy.ndarray) -> float:
        total = confusion.sum()
        predicted, actual = confusion.sum(axis=1), confusion.sum(axis=0)
        variance_predicted = (predicted * (total - predicted)).sum()
        variance_actual = (actual * (total - actual)).sum()
        if variance_predicted == 0 or variance_actual == 0:
            return float("nan")
        covariance = (confusion.diagonal() * total - predicted * actual).sum()
        return float(covariance / (variance_predicted * variance_actual) ** 0.5)

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            label, pred = to_numpy(label).astype(numpy.int32), to_numpy(pred)
            pred = pred.argmax(axis=1) if pred.shape != label.shape else pred.astype(numpy.int32)
            needed = int(max(pred.max(initial=0), label.max(initial=0))) + 1
            if needed > self.k:
                self._local = numpy.pad(self._local, (0, needed - self.k))
                self._global = numpy.pad(self._global, (0, needed - self.k))
                self.k = needed
            for tally in (self._local, self._global):
                numpy.add.at(tally, (pred.ravel(), label.ravel()), 1)
        self.num_inst += 1
        self.global_num_inst += 1

    @property
    def sum_metric(self) -> float:  # type: ignore[override]  # computed and never set here
        return self._correlation(self._local) * self.num_inst

    @property
    def global_sum_metric(self) -> float:  # type: ignore[override]  # as sum_metric
        return self._correlation(self._global) * self.global_num_inst

    def reset(self) -> None:
        self.global_num_inst = 0
        self._global = numpy.zeros((self.k, self.k))
        self.reset_local()

    def reset_local(self) -> None:
        self.num_inst = 0
        self._local = numpy.zeros((self.k, self.k))
