"""Selection and checks of the metrics of an Estimator and its handlers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ....errors import ParamError
from ....metric import Accuracy, CompositeEvalMetric, EvalMetric
from ...loss import SoftmaxCrossEntropyLoss

__all__ = ["check_known", "metric_list", "suggested_metric"]


def metric_list(metrics: Any) -> list[EvalMetric]:
    """Converts one metric, a list, a composite or None to a list. Raises ParamError for anything else."""
    if isinstance(metrics, CompositeEvalMetric):
        return [metric for part in metrics.metrics for metric in metric_list(part)]
    if isinstance(metrics, EvalMetric):
        return [metrics]
    listed = list(metrics or ())
    for metric in listed:
        if not isinstance(metric, EvalMetric):
            raise ParamError(
                "metrics must be a Metric or a list of Metric, refer to mx.metric.EvalMetric", given=repr(metric)
            )
    return listed


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
