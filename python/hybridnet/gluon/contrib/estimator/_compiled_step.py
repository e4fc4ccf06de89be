"""Decision whether an Estimator trains by a compiled step (mx.jit.train_step), and the processing of its batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._watch import _operators as _op_watch
from ....errors import HybridNetError, ParamError
from ..._hybrid_block import HybridBlock
from ._events import BatchEnd
from ._training_handlers import GradientUpdateHandler
from .batch_processor import BatchProcessor

__all__ = ["compiled_step"]


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("hybridnet.")


def _obstacle(estimator: Any, handlers: Sequence[Any]) -> str | None:
    """Returns the reason for which a compiled step could differ from the operators one by one; None if none."""
    net, loss = estimator.net, estimator.loss
    if not isinstance(net, HybridBlock) or not net._active:
        return "the net is not hybridized"
    if type(net).__call__ is not HybridBlock.__call__ or net._forward_hooks or net._forward_pre_hooks:
        return "the net has hooks or a __call__ of its own"
    if _op_watch.is_watching():
        return "autograd.detect_anomaly observes the operators one by one"
    flags = {"passes": "", "precision": "float32", **net._flags}
    if flags["passes"] or flags["precision"] != "float32":
        return "the net is hybridized with passes or a precision of its own"
    if len(estimator.context) > 1:
        return "there are several contexts"
    if not _is_ours(type(loss)) or getattr(loss, "_batch_axis", None) != estimator.batch_axis:
        return "the loss is not one of gluon.loss with the batch axis of fit()"
    if type(estimator.batch_processor).fit_batch is not BatchProcessor.fit_batch:
        return "the batch processor has a fit_batch of its own"
    if getattr(estimator.trainer, "_amp_loss_scaler", None) is not None:
        return "the loss is scaled (amp)"
    for handler in handlers:
        updates = isinstance(handler, GradientUpdateHandler) and type(handler) is not GradientUpdateHandler
        if updates or (isinstance(handler, BatchEnd) and not _is_ours(type(handler))):
            return f"{type(handler).__name__} may read gradients, which a compiled step does not keep"
    return None


def compiled_step(estimator: Any, handlers: Sequence[Any]) -> Any:
    """Returns the step that fit() runs for each batch; None to run forward, backward and update one by one.

    Raises ParamError if the estimator has compiled=True and the step cannot be compiled.
    """
    if estimator.compiled is False:
        return None
    obstacle = _obstacle(estimator, handlers)
    reason = None
    if obstacle is None:
        from ....jit import train_step

        bounds = [handler.clip_global_norm for handler in handlers if isinstance(handler, GradientUpdateHandler)]
        try:
            return train_step(
                estimator.net,
                estimator.loss,
                estimator.trainer,
                outputs=True,
                clip_global_norm=bounds[0] if bounds else None,
                remat=estimator.net._flags.get("remat", "auto"),
            )
        except HybridNetError as error:  # an optimizer in Python, a key-value store, sparse gradients
            obstacle, reason = str(error), error
    if estimator.compiled:
        raise ParamError(
            "Estimator: compiled=True", because=obstacle, fix="pass compiled=None to compile steps only if possible"
        ) from reason
    return None
