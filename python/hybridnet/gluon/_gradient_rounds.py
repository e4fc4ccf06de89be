"""Steps of a Trainer with kvstore='dist_async': an update for the gradients of each process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import ndarray
from ..errors import UnsupportedError
from ..kvstore._process_store import gradients_text, text_of
from ..kvstore.kvstore import _total

if TYPE_CHECKING:
    from ..kvstore._async_store import AsyncKVStore
    from ..ndarray import NDArray
    from .trainer import Trainer

__all__ = ["exchange_gradients"]


def exchange_gradients(trainer: Trainer, store: AsyncKVStore, batch_size: float, ignore_stale_grad: bool) -> None:
    """Sends the gradients of this step, and updates by those of all processes of an earlier one."""
    if getattr(trainer, "_amp_loss_scaler", None) is not None:
        raise UnsupportedError(
            "Trainer.step with kvstore='dist_async' and a loss scale",
            because="the gradients of a step are known after later losses were scaled",
            fix="use kvstore='dist_sync', or bfloat16, which needs no loss scale",
        )
    trained = [i for i, param in enumerate(trainer._params) if param.grad_req != "null"]
    reached = [_is_reached(trainer, i, ignore_stale_grad) for i in trained]
    gradients = [_total(trainer._params[i].list_grad()) for i in trained]
    sent = [ndarray.array(reached, dtype="int32"), *gradients] if ignore_stale_grad else gradients
    scale = trainer._optimizer.rescale_grad

    set_before = [trainer._values_set[i] for i in trained]

    def apply(arrays: Sequence[NDArray]) -> None:
        """Updates by the gradients of one process, but for parameters whose values were set since they were sent."""
        mask = arrays[0].asnumpy() if ignore_stale_grad else [1] * len(trained)
        grads = arrays[1:] if ignore_stale_grad else arrays
        updated = [
            (i, grad)
            for i, grad, wanted, count in zip(trained, grads, mask, set_before, strict=True)
            if wanted and trainer._values_set[i] == count
        ]
        trainer._optimizer.rescale_grad = scale
        for place, updater in enumerate(trainer._updaters):
            weights = [trainer._params[i]._data[place] for i, _ in updated]  # type: ignore[index]
            placed = [grad.as_in_context(weight.context) for (_, grad), weight in zip(updated, weights, strict=True)]
            updater([i for i, _ in updated], placed, weights)

    names = [trainer._params[i].name for i in trained]
    store.exchange("gradients", text_of(gradients_text(batch_size), names), sent, apply)
    for i in trained:
        for weight in trainer._params[i]._data or ():
            weight._fresh_grad = False


def _is_reached(trainer: Trainer, index: int, ignore_stale_grad: bool) -> bool:
    """Whether the last backward has reached a parameter. Raises UserWarning if it has not, unless that is ignored."""
    param = trainer._params[index]
    if param._data is None:
        raise param._uninitialized()
    for weight in param._data:
        if not weight._fresh_grad and not ignore_stale_grad:
            trainer._raise_stale(param, weight)
    return any(weight._fresh_grad for weight in param._data)
