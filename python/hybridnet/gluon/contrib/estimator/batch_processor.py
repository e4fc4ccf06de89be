"""BatchProcessor: the processing of one batch by an Estimator."""

from __future__ import annotations

from typing import Any

from .... import autograd
from ...._public_names import dir_of
from ....errors import ParamError, TraceError, UnsupportedError
from ...utils import split_and_load

__all__ = ["BatchProcessor"]


class BatchProcessor:
    """Forward and backward of one batch. Subclass it for batches that are not (data, label)."""

    def _get_data_and_label(self, batch: Any, ctx: Any, batch_axis: int = 0) -> tuple[list[Any], list[Any]]:
        if not isinstance(batch, (list, tuple)) or len(batch) < 2:
            kind = f"a dict with the keys {list(batch)}" if isinstance(batch, dict) else type(batch).__name__
            raise ParamError(
                "Estimator: batches",
                expected="(data, label)",
                given=kind,
                fix="pass batch_processor=, an object of a subclass of BatchProcessor with its own _get_data_and_label",
            )
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

    def predict_batch(self, estimator: Any, batch: Any, batch_axis: int = 0) -> list[Any]:
        """Returns the outputs of the net, one per context. The data are the first part of the batch, or the batch."""
        data = batch[0] if isinstance(batch, (list, tuple)) else batch
        if isinstance(data, dict):
            raise ParamError(
                "Estimator.predict: batches",
                expected="data or (data, label)",
                given=f"a dict with the keys {list(data)}",
                fix="pass batch_processor=, an object of a subclass of BatchProcessor with its own predict_batch",
            )
        contexts = estimator.context[: max(data.shape[batch_axis], 1)]
        parts = split_and_load(data, ctx_list=contexts, batch_axis=batch_axis, even_split=False)
        return [estimator.val_net(x) for x in parts]

    def fit_batch(
        self, estimator: Any, train_batch: Any, batch_axis: int = 0
    ) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Same as evaluate_batch, and computes gradients; or updates the parameters, if fit() compiled its steps."""
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        if getattr(estimator, "_train_step", None) is not None:
            compiled = self._run_compiled(estimator, data[0], label[0], batch_axis)
            if compiled is not None:
                return data, label, *compiled
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = [estimator.loss(out, y) for out, y in zip(pred, label, strict=True)]
        autograd.backward(loss)
        return data, label, pred, loss

    @staticmethod
    def _run_compiled(estimator: Any, data: Any, label: Any, batch_axis: int) -> tuple[list[Any], list[Any]] | None:
        """Returns (predictions, losses) of the compiled step; None if the first batch shows that there can be none."""
        try:
            loss, pred = estimator._train_step(data, label, data.shape[batch_axis])
        except (TraceError, UnsupportedError):
            if estimator.compiled:
                raise
            estimator._train_step = None
            return None
        return [pred], [loss]


__dir__ = dir_of(__name__)
