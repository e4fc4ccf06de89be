"""BatchProcessor: the processing of one batch by an Estimator."""

from __future__ import annotations

from typing import Any

from .... import autograd
from ...utils import split_and_load

__all__ = ["BatchProcessor"]


class BatchProcessor:
    """Forward and backward of one batch. Subclass it for batches that are not (data, label)."""

    def _get_data_and_label(self, batch: Any, ctx: Any, batch_axis: int = 0) -> tuple[list[Any], list[Any]]:
        data, label = batch[0], batch[1]
        return (
            split_and_load(data, ctx_list=ctx, batch_axis=batch_axis),
            split_and_load(label, ctx_list=ctx, batch_axis=batch_axis),
        )

    def evaluate_batch(
        self, estimator: Any, val_batch: Any, batch_axis: int = 0
    ) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Returns (data, labels, predictions, losses), lists with one entry per context."""
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(x) for x in data]
        loss = [estimator.val_loss(out, y) for out, y in zip(pred, label, strict=True)]
        return data, label, pred, loss

    def fit_batch(
        self, estimator: Any, train_batch: Any, batch_axis: int = 0
    ) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Same as evaluate_batch, and computes gradients."""
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = [estimator.loss(out, y) for out, y in zip(pred, label, strict=True)]
        autograd.backward(loss)
        return data, label, pred, loss
