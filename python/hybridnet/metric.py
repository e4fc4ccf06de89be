"""Evaluation metrics: running averages over batches, computed on the host.

Every metric keeps two tallies: a local one that ``reset_local`` clears (a log interval) and a global one that only
``reset`` clears (an epoch).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from . import registry

__all__ = [
    "F1",
    "MAE",
    "MCC",
    "MSE",
    "PCC",
    "RMSE",
    "Accuracy",
    "BinaryAccuracy",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Fbeta",
    "Loss",
    "NegativeLogLikelihood",
    "PearsonCorrelation",
    "Perplexity",
    "TopKAccuracy",
    "check_label_shapes",
    "create",
    "np",
]

Array = Any  # NDArray, numpy array or nested list


def _numpy(array: Array) -> numpy.ndarray:
    return array.asnumpy() if hasattr(array, "asnumpy") else numpy.asarray(array)


def _is_array(value: Any) -> bool:
    return hasattr(value, "asnumpy") or isinstance(value, numpy.ndarray)


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Checks that labels and predictions match in length, or in shape with shape=True.

    With wrap=True, single arrays come back as lists of one. Raises ValueError on a mismatch.
    """
    if shape:
        label_size, pred_size = labels.shape, preds.shape
    else:
        label_size, pred_size = len(labels), len(preds)
    if label_size != pred_size:
        raise ValueError(f"Shape of labels {label_size} does not match shape of predictions {pred_size}")
    if wrap:
        labels = [labels] if _is_array(labels) else labels
        preds = [preds] if _is_array(preds) else preds
    return labels, preds


class EvalMetric:
    """Base of metrics: a name, a sum and a count.

    Parameters
    ----------
    name : str
        Shown beside the value.
    output_names, label_names : list of str, optional
        Which predictions and labels update_dict uses; default: all.
    """

    def __init__(
        self,
        name: str,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """Arguments from which ``metric.create(**config)`` makes the same metric."""
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }

    def update_dict(self, label: Mapping[str, Array], pred: Mapping[str, Array]) -> None:
        """Updates with named labels and predictions."""
        preds = list(pred.values()) if self.output_names is None else [pred[name] for name in self.output_names]
        labels = list(label.values()) if self.label_names is None else [label[name] for name in self.label_names]
        self.update(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: lists of labels and predictions of equal length."""
        raise NotImplementedError(f"{type(self).__name__} must override update")

    def reset(self) -> None:
        """Forgets everything."""
        self.num_inst = 0
        self.sum_metric = 0.0
        self.global_num_inst = 0
        self.global_sum_metric = 0.0

    def reset_local(self) -> None:
        """Forgets the local tally."""
        self.num_inst = 0
        self.sum_metric = 0.0

    def _add(self, total: float, count: int) -> None:
        self.sum_metric += total
        self.global_sum_metric += total
        self.num_inst += count
        self.global_num_inst += count

    def get(self) -> tuple[Any, Any]:
        """(name, local value); nan before the first batch."""
        if self.num_inst == 0:
            return self.name, float("nan")
        return self.name, self.sum_metric / self.num_inst

    def get_global(self) -> tuple[Any, Any]:
        """(name, value since reset)."""
        if not self._has_global_stats:
            return self.get()
        if self.global_num_inst == 0:
            return self.name, float("nan")
        return self.name, self.global_sum_metric / self.global_num_inst

    def get_name_value(self) -> list[tuple[str, float]]:
        """List of (name, local value)."""
        return _pairs(self.get())

    def get_global_name_value(self) -> list[tuple[str, float]]:
        """List of (name, value since reset)."""
        return _pairs(self.get_global()) if self._has_global_stats else self.get_name_value()


def _pairs(result: tuple[Any, Any]) -> list[tuple[str, float]]:
    names, values = result
    return list(
        zip(
            names if isinstance(names, list) else [names],
            values if isinstance(values, list) else [values],
            strict=False,
        )
    )


register = registry.get_register_func(EvalMetric, "metric")
alias = registry.get_alias_func(EvalMetric, "metric")
_create = registry.get_create_func(EvalMetric, "metric")


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Makes a metric from a name, an instance, a function (label, pred) -> value, or a list of these.

    Raises ValueError for an unknown name.
    """
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    if isinstance(metric, (list, tuple)):
        composite = CompositeEvalMetric()
        for child in metric:
            composite.add(create(child, *args, **kwargs))
        return composite
    return _create(metric, *args, **kwargs)


@register
@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics updated together; values come back as lists."""

    def __init__(
        self,
        metrics: Sequence[Any] | None = None,
        name: str = "composite",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        self.metrics: list[EvalMetric] = []
        super().__init__(name, output_names, label_names, has_global_stats=True)
        self.metrics = [create(metric) for metric in metrics or []]

    def add(self, metric: Any) -> None:
        """Adds a child: an instance, a name or a function."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """Child number index. Raises ValueError if there is none."""
        try:
            return self.metrics[index]
        except IndexError:
            raise ValueError(f"Metric index {index} is out of range 0 and {len(self.metrics)}") from None

    def update_dict(self, label: Mapping[str, Array], pred: Mapping[str, Array]) -> None:
        if self.label_names is not None:
            label = OrderedDict((k, v) for k, v in label.items() if k in self.label_names)
        if self.output_names is not None:
            pred = OrderedDict((k, v) for k, v in pred.items() if k in self.output_names)
        for metric in self.metrics:
            metric.update_dict(label, pred)

    def update(self, labels: Any, preds: Any) -> None:
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        for metric in self.metrics:
            metric.reset_local()

    def _gather(self, results: list[tuple[Any, Any]]) -> tuple[list[str], list[float]]:
        pairs = [pair for result in results for pair in _pairs(result)]
        return [name for name, _ in pairs], [value for _, value in pairs]

    def get(self) -> tuple[list[str], list[float]]:
        return self._gather([metric.get() for metric in self.metrics])

    def get_global(self) -> tuple[list[str], list[float]]:
        return self._gather([metric.get_global() for metric in self.metrics])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


@register
@alias("acc")
class Accuracy(EvalMetric):
    """Share of samples whose predicted class is the label.

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

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            label, pred = _numpy(label), _numpy(pred)
            if pred.shape != label.shape:
                if pred.ndim <= self.axis:
                    raise ValueError(f"Shape of labels {label.shape} does not match shape of predictions {pred.shape}")
                pred = pred.argmax(axis=self.axis)
            label = label.astype(numpy.int64).ravel()
            pred = pred.astype(numpy.int64).ravel()
            check_label_shapes(label, pred)
            self._add(int((pred == label).sum()), len(pred))


@register
@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """Share of samples whose label is among the top_k classes with the highest scores.

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
            raise ValueError(f"Please use Accuracy if top_k is no more than 1, got {top_k}")
        self.name += f"_{top_k}"

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["name"] = self.name[: -len(f"_{self.top_k}")]
        return config

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            label, pred = _numpy(label).astype(numpy.int64).ravel(), _numpy(pred)
            if pred.ndim > 2:
                raise ValueError(f"Predictions should be no more than 2 dims, got shape {pred.shape}")
            check_label_shapes(label, pred)
            if pred.ndim == 1:
                correct = (pred.astype(numpy.int64) == label).sum()
            else:
                top_k = min(self.top_k, pred.shape[1])
                best = numpy.argpartition(pred.astype(numpy.float32), -top_k)[:, -top_k:]
                correct = (best == label[:, None]).sum()
            self._add(int(correct), len(label))


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
            raise ValueError(f"{type(self).__name__}: average must be 'macro' or 'micro', got {average!r}")
        self.average = average
        self._local = _Tally()
        self._global = _Tally()
        super().__init__(name, output_names, label_names, average=average, has_global_stats=True, **kwargs)

    def _score(self, tally: _Tally) -> float:
        raise NotImplementedError

    def _decide(self, pred: numpy.ndarray) -> numpy.ndarray:
        if pred.ndim < 2:
            raise ValueError(f"{type(self).__name__} needs scores of shape (N, 2), got {pred.shape}")
        return pred.argmax(axis=1).ravel() == 1

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            label, pred = _numpy(label).astype(numpy.int32), _numpy(pred)
            check_label_shapes(label, pred)
            if len(numpy.unique(label)) > 2:
                raise ValueError(f"{type(self).__name__} currently only supports binary classification.")
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
    """F-score of a binary classifier in which recall weighs beta times as much as precision.

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
    """Matthews correlation coefficient of a binary classifier: 1 perfect, 0 uninformed, -1 always wrong."""

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
class BinaryAccuracy(EvalMetric):
    """Share of scores on the right side of threshold; labels are 0 or 1, any shape."""

    def __init__(
        self,
        name: str = "binary_accuracy",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        threshold: float = 0.5,
    ) -> None:
        self.threshold = threshold
        super().__init__(name, output_names, label_names, threshold=threshold, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            label, pred = _numpy(label).astype(numpy.int32).ravel(), _numpy(pred).ravel() > self.threshold
            check_label_shapes(label, pred)
            self._add(int((label == pred).sum()), len(label))


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
            label, pred = _numpy(label).astype(numpy.int32), _numpy(pred)
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
    def sum_metric(self) -> float:  # type: ignore[override]  # computed, and nothing here sets it
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


@register
class Perplexity(EvalMetric):
    """exp of the mean negative log probability of the labels.

    Parameters
    ----------
    ignore_label : int or None
        Label whose samples do not count.
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
            label, pred = _numpy(label), _numpy(pred)
            classes = pred.shape[self.axis]
            if label.size * classes != pred.size:
                raise ValueError(f"shape mismatch: labels {label.shape} vs. predictions {pred.shape}")
            rows = numpy.moveaxis(pred, self.axis, -1).reshape(-1, classes)
            index = label.ravel().astype(numpy.int64)
            # As the pick operator does: indices beyond the ends mean the ends.
            probability = rows[numpy.arange(len(index)), index.clip(0, classes - 1)].astype(numpy.float64)
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


def _columns(array: Array) -> numpy.ndarray:
    array = _numpy(array)
    return array.reshape(array.shape[0], 1) if array.ndim == 1 else array


@register
class MAE(EvalMetric):
    """Mean absolute error, averaged over batches."""

    def __init__(
        self,
        name: str = "mae",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            self._add(float(numpy.abs(_columns(label) - _columns(pred)).mean()), 1)


@register
class MSE(EvalMetric):
    """Mean squared error, averaged over batches."""

    def __init__(
        self,
        name: str = "mse",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            self._add(float(((_columns(label) - _columns(pred)) ** 2.0).mean()), 1)


@register
class RMSE(EvalMetric):
    """Root of the mean squared error of a batch, averaged over batches."""

    def __init__(
        self,
        name: str = "rmse",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            self._add(float(numpy.sqrt(((_columns(label) - _columns(pred)) ** 2.0).mean())), 1)


class _LogProbability(EvalMetric):
    """Mean of -log(probability of the label + eps)."""

    def __init__(self, eps: float, name: str, output_names: Any, label_names: Any) -> None:
        super().__init__(name, output_names, label_names, eps=eps, has_global_stats=True)
        self.eps = eps

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            label, pred = _numpy(label).ravel(), _numpy(pred)
            if label.shape[0] != pred.shape[0]:
                raise ValueError(f"{label.shape[0]} labels but {pred.shape[0]} predictions")
            probability = pred[numpy.arange(label.shape[0]), label.astype(numpy.int64)]
            self._add(float(-numpy.log(probability + self.eps).sum()), label.shape[0])


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
            raise ValueError(f"PearsonCorrelation: average must be 'macro' or 'micro', got {average!r}")
        self.average = average
        super().__init__(name, output_names, label_names, average=average, has_global_stats=True)

    def reset(self) -> None:
        super().reset()
        self.reset_micro()

    def reset_micro(self) -> None:
        """Forgets the running moments."""
        self._count = 0
        self._mean = numpy.zeros(2)
        self._moments = numpy.zeros((2, 2))

    def _add_moments(self, pairs: numpy.ndarray) -> None:
        count = pairs.shape[1]
        mean = pairs.mean(axis=1)
        centred = pairs - mean[:, None]
        shift = mean - self._mean
        total = self._count + count
        self._moments += centred @ centred.T + numpy.outer(shift, shift) * (self._count * count / total)
        self._mean += shift * (count / total)
        self._count = total

    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            check_label_shapes(label, pred, False, True)
            label = _numpy(label).ravel().astype(numpy.float64)
            pred = _numpy(pred).ravel().astype(numpy.float64)
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


@register
class Loss(EvalMetric):
    """Mean of a loss that the network computed itself; labels are ignored."""

    def __init__(
        self,
        name: str = "loss",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, _: Any, preds: Any) -> None:
        for pred in [preds] if _is_array(preds) else preds:
            values = _numpy(pred)
            self._add(float(values.sum(dtype=numpy.float64)), values.size)


@register
class Torch(Loss):
    """Loss under the name 'torch'."""

    def __init__(self, name: str = "torch", output_names: Any = None, label_names: Any = None) -> None:
        super().__init__(name, output_names, label_names)


@register
class Caffe(Loss):
    """Loss under the name 'caffe'."""

    def __init__(self, name: str = "caffe", output_names: Any = None, label_names: Any = None) -> None:
        super().__init__(name, output_names, label_names)


@register
class CustomMetric(EvalMetric):
    """Metric from a function of NumPy arrays.

    Parameters
    ----------
    feval : callable (label, pred) -> value or (sum, count)
    name : str, optional
        Default: the function's name.
    allow_extra_outputs : bool, default False
        Whether there may be more predictions than labels (states of a recurrent net).
    """

    def __init__(
        self,
        feval: Callable[[numpy.ndarray, numpy.ndarray], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if name is None:
            name = feval.__name__
            if "<" in name:
                name = f"custom({name})"
        super().__init__(
            name,
            output_names,
            label_names,
            feval=feval,
            allow_extra_outputs=allow_extra_outputs,
            has_global_stats=True,
        )
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for pred, label in zip(preds, labels, strict=False):
            result = self._feval(_numpy(label), _numpy(pred))
            self._add(*(result if isinstance(result, tuple) else (result, 1)))

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError("CustomMetric cannot be serialized")


def np(
    numpy_feval: Callable[[numpy.ndarray, numpy.ndarray], Any],
    name: str | None = None,
    allow_extra_outputs: bool = False,
) -> CustomMetric:
    """CustomMetric from a function (label, pred) -> float of NumPy arrays."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
