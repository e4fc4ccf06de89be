"""Checks of the arguments of an Estimator."""

from __future__ import annotations

from typing import Any

from ....errors import ParamError
from ...data import DataLoader
from ...loss import Loss

__all__ = ["check_loader", "check_loss", "number_of_batches"]


def check_loss(loss: Any) -> Loss:
    """Returns the loss. Raises ParamError unless it is a Loss."""
    if not isinstance(loss, Loss):
        raise ParamError("loss must be a Loss, refer to gluon.loss.Loss", given=repr(loss))
    return loss


def check_loader(data: Any) -> None:
    """Raises ParamError unless data is a DataLoader."""
    if not isinstance(data, DataLoader):
        raise ParamError(
            "Estimator only support input as Gluon DataLoader. Alternatively, you can transform your DataIter or any "
            f"NDArray into Gluon DataLoader. Refer to gluon.data.DataLoader; got {type(data).__name__}"
        )


def number_of_batches(data: DataLoader) -> int | None:
    """Returns the number of batches; None if the batch sampler does not know it."""
    try:
        return len(data)
    except TypeError:
        return None
