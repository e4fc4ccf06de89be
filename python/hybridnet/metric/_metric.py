"""Base classes of metrics: two running averages, and creation by name."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from .. import registry
from .._described import count_text, described
from .._habits import add_habits
from .._keywords import ChecksKeywords
from ..errors import UnsupportedError, not_overridden
from ..errors import ValueError as HybridNetValueError

__all__ = ["CompositeEvalMetric", "EvalMetric", "PairMetric", "check_label_shapes", "create", "register"]

Array = Any  # NDArray, numpy array or nested list


def to_numpy(array: Array) -> numpy.ndarray:
    return array.asnumpy() if hasattr(array, "asnumpy") else numpy.asarray(array)


def is_array(value: Any) -> bool:
    return hasattr(value, "asnumpy") or isinstance(value, numpy.ndarray)


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Checks that labels and predictions match in length, or in shape with shape=True.

    With wrap=True, single arrays are returned as lists of one. Raises ValueError on a mismatch.
    """
    if shape:
        label_size, pred_size = labels.shape, preds.shape
    else:
        label_size, pred_size = len(labels), len(preds)
    if label_size != pred_size:
        raise HybridNetValueError(
            f"Shape of labels {label_size} does not match shape of predictions {pred_size}",
            fix="call update(labels, preds) with one label for each prediction, or lists of equal length",
        )
    if wrap:
        labels = [labels] if is_array(labels) else labels
        preds = [preds] if is_array(preds) else preds
    return labels, preds


class EvalMetric(ChecksKeywords):
    """Base of metrics: a name, a sum and a count.

    Parameters
    ----------
    name : str
        Name that is printed with the value.
    output_names, label_names : list of str, optional
        Predictions and labels that update_dict uses; default: all.
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

    def __repr__(self) -> str:
        text = described(self, **self._described_arguments())
        if self.num_inst == 0:
            return f"{text}: no samples yet"
        values = ", ".join(f"{name}={value:.6g}" for name, value in self.get_name_value())
        return f"{text}: {values} of {count_text(self.num_inst, 'sample')}"

    def _described_arguments(self) -> dict[str, Any]:
        """The arguments that are not the constructor's defaults."""
        defaults = inspect.signature(type(self).__init__).parameters
        given = {**self._kwargs, "name": self.name}
        return {key: value for key, value in given.items() if key not in defaults or value != defaults[key].default}

    def get_config(self) -> dict[str, Any]:
        """Returns arguments from which ``metric.create(**config)`` makes the same metric."""
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
        raise not_overridden(self, "update(labels, preds)")

    def reset(self) -> None:
        """Resets both tallies."""
        self.num_inst = 0
        self.sum_metric = 0.0
        self.global_num_inst = 0
        self.global_sum_metric = 0.0

    def reset_local(self) -> None:
        """Resets the local tally."""
        self.num_inst = 0
        self.sum_metric = 0.0

    def _add(self, total: float, count: int) -> None:
        self.sum_metric += total
        self.global_sum_metric += total
        self.num_inst += count
        self.global_num_inst += count

    def _counts(self) -> list[float]:
        """The numbers that mx.group.reduce adds over processes.

        Raises UnsupportedError if they do not determine get(): the class resets more than them.
        """
        if type(self).reset is not EvalMetric.reset or type(self).reset_local is not EvalMetric.reset_local:
            raise UnsupportedError(
                f"group.reduce: {type(self).__name__}",
                because="its value does not follow from sums over the processes",
                fix="gather labels and predictions with mx.group.gather, and update one metric with them",
            )
        return [self.sum_metric, self.num_inst, self.global_sum_metric, self.global_num_inst]

    def _take_counts(self, counts: Sequence[float]) -> None:
        """Takes the sums of _counts() over processes."""
        self.sum_metric, self.global_sum_metric = float(counts[0]), float(counts[2])
        self.num_inst, self.global_num_inst = int(counts[1]), int(counts[3])

    def get(self) -> tuple[Any, Any]:
        """Returns (name, local value); nan before the first batch."""
        if self.num_inst == 0:
            return self.name, float("nan")
        return self.name, self.sum_metric / self.num_inst

    def get_global(self) -> tuple[Any, Any]:
        """Returns (name, value since reset)."""
        if not self._has_global_stats:
            return self.get()
        if self.global_num_inst == 0:
            return self.name, float("nan")
        return self.name, self.global_sum_metric / self.global_num_inst

    def get_name_value(self) -> list[tuple[str, float]]:
        """Returns a list of (name, local value)."""
        return pairs_of(self.get())

    def get_global_name_value(self) -> list[tuple[str, float]]:
        """Returns a list of (name, value since reset)."""
        return pairs_of(self.get_global()) if self._has_global_stats else self.get_name_value()


def pairs_of(result: tuple[Any, Any]) -> list[tuple[str, float]]:
    names, values = result
    return list(
        zip(
            names if isinstance(names, list) else [names],
            values if isinstance(values, list) else [values],
            strict=False,
        )
    )


add_habits(EvalMetric, "metric")


class PairMetric(EvalMetric):
    """A metric of pairs of outputs and labels, as NumPy arrays: subclasses define ``_measure``."""

    def update(self, labels: Any, preds: Any) -> None:
        """Adds a batch: a list of labels and one of predictions of equal length, or one array of each.

        Raises ValueError if lengths or shapes do not match.
        """
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=True):
            self._add(*self._measure(to_numpy(label), to_numpy(pred)))

    def _measure(self, label: numpy.ndarray, pred: numpy.ndarray) -> tuple[float, int]:
        """Returns the addends of an output for the sum and for the count."""
        raise not_overridden(self, "_measure(label, pred)")


register = registry.get_register_func(EvalMetric, "metric")
alias = registry.get_alias_func(EvalMetric, "metric")
_create = registry.get_create_func(EvalMetric, "metric")


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Creates a metric from a name, an instance, a function (label, pred) -> value, or a list of these.

    Raises ValueError for an unknown name.
    """
    if callable(metric):
        from ._custom import CustomMetric

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
    """Several metrics updated together; values are returned as lists."""

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

    def __repr__(self) -> str:
        return described(self, *[repr(metric) for metric in self.metrics])

    def add(self, metric: Any) -> None:
        """Adds a child: an instance, a name or a function."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """Returns child number index. Raises ValueError if there is none."""
        try:
            return self.metrics[index]
        except IndexError:
            raise HybridNetValueError(
                f"Metric index {index} is out of range 0 and {len(self.metrics)}: the children are "
                f"{', '.join(metric.name for metric in self.metrics) or 'none'}"
            ) from None

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
        pairs = [pair for result in results for pair in pairs_of(result)]
        return [name for name, _ in pairs], [value for _, value in pairs]

    def get(self) -> tuple[list[str], list[float]]:
        return self._gather([metric.get() for metric in self.metrics])

    def get_global(self) -> tuple[list[str], list[float]]:
        return self._gather([metric.get_global() for metric in self.metrics])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}
