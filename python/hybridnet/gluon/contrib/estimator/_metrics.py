"""Selection and checks of the metrics of an Estimator and its handlers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ....errors import ParamError
from ....metric import Accuracy, CompositeEvalMetric, EvalMetric
from ...loss import SoftmaxCrossEntropyLoss

__all__ = ["check_known", "make_names_distinct", "metric_list", "suggested_metric"]


def metric_list(metrics: Any, argument: str = "metrics") -> list[EvalMetric]:
    """Converts one metric, a list, a composite or None to a list. Raises ParamError for anything else."""
    if isinstance(metrics, CompositeEvalMetric):
        return [metric for part in metrics.metrics for metric in metric_list(part)]
    if not metrics:
        return []
    is_list = isinstance(metrics, Iterable) and not isinstance(metrics, str)
    listed = list(metrics) if is_list else [metrics]
    for metric in listed:
        if not isinstance(metric, EvalMetric):
            name = metric if isinstance(metric, str) else "acc"
            raise ParamError(
                f"{argument} must be a Metric or a list of Metric, refer to mx.metric.EvalMetric",
                given=repr(metric),
                fix=f"pass {argument}=mx.metric.create({name!r})",
            )
    return listed


def make_names_distinct(metrics: Sequence[EvalMetric], argument: str) -> None:
    """Renames metrics whose name an earlier one has: "accuracy_2". Raises ParamError for a metric that is listed twice.

    The history and the results of evaluate() have one value per name.
    """
    names = {str(metric.name) for metric in metrics}
    seen: set[str] = set()
    for number, metric in enumerate(metrics):
        if any(metric is other for other in metrics[:number]):
            raise ParamError(
                f"Estimator: {argument} contains the same object {metric.name!r} twice",
                because="its counts would be updated twice for each batch",
                fix=f"leave it out, or create another one: mx.metric.{type(metric).__name__}()",
            )
        if str(metric.name) in seen:
            count = 2
            while f"{metric.name}_{count}" in names:
                count += 1
            metric.name = f"{metric.name}_{count}"
            names.add(metric.name)
        seen.add(str(metric.name))


def check_known(handler: Any, known: Collection[EvalMetric]) -> None:
    """Raises ParamError if a handler watches a metric that the estimator does not update."""
    watched = [*metric_list(getattr(handler, "metrics", None)), *metric_list(getattr(handler, "monitor", None))]
    for metric in watched:
        if not any(metric is other for other in known):
            raise ParamError(
                f"Event handler {type(handler).__name__} refers to a metric instance {metric} outside of the known "
                "training and validation metrics. Please use the metrics from estimator.train_metrics and "
                "estimator.val_metrics instead."
            )


def suggested_metric(loss: Any) -> EvalMetric | None:
    """Returns Accuracy for softmax cross entropy, else None."""
    return Accuracy() if isinstance(loss, SoftmaxCrossEntropyLoss) else None
