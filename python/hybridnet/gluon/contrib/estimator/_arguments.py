"""Checks of the arguments of an Estimator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...._keywords import no_keyword
from ....errors import HybridNetError, ParamError
from ...data import DataLoader
from ...loss import Loss
from ...nn._arguments import positive

__all__ = ["check_iterations", "check_loader", "check_loss", "number_of_batches", "unknown_keyword_of_fit"]

_LOADER = "gluon.data.DataLoader(gluon.data.ArrayDataset(X, y), batch_size=32)"
# Keywords of fit() in other libraries that have no keyword with a similar name here.
_KEYWORDS_OF_FIT = {
    "batch_size": f"give it to the loader: {_LOADER}",
    "shuffle": f"give it to the loader: {_LOADER.removesuffix(')')}, shuffle=True)",
    "y": f"pass a loader of both arrays: {_LOADER}",
    "callbacks": "write event_handlers=[...]",
    "validation_data": f"write val_data={_LOADER}",
    "validation_split": "split the arrays first, and pass a loader of the second part as val_data",
    "verbose": "pass event_handlers=[gluon.contrib.estimator.LoggingHandler()]",
    **dict.fromkeys(("num_epochs", "num_epoch", "max_epochs", "nb_epoch"), "write epochs=..."),
    **dict.fromkeys(("steps", "max_steps", "steps_per_epoch"), "write batches=..., without epochs"),
}


def check_loss(loss: Any) -> Loss:
    """Returns the loss. Raises ParamError unless it is a Loss."""
    if not isinstance(loss, Loss):
        raise ParamError("loss must be a Loss, refer to gluon.loss.Loss", given=repr(loss))
    return loss


def check_loader(data: Any, argument: str = "data") -> None:
    """Raises ParamError unless data is a DataLoader."""
    if isinstance(data, DataLoader):
        return
    shape = getattr(data, "shape", None)
    kind = type(data).__name__ if shape is None else f"{type(data).__name__} of shape {tuple(shape)}"
    raise ParamError(f"Estimator: {argument}", expected="a gluon.data.DataLoader", given=kind, fix=f"pass {_LOADER}")


def check_iterations(epochs: Any, batches: Any) -> tuple[int | None, int | None]:
    """Returns (epochs, batches), one of them None. Raises ParamError unless one is given, an integer >= 1."""
    if epochs is not None and batches is not None:  # 0 beside the other one means that it is not given
        epochs = None if epochs == 0 else epochs
        batches = None if batches == 0 else batches
    if epochs is not None and batches is None:
        return positive("Estimator.fit.epochs", epochs), None
    if batches is not None and epochs is None:
        return None, positive("Estimator.fit.batches", batches)
    raise ParamError(
        "Estimator.fit trains for exactly one type of iteration",
        expected="either epochs or batches",
        given="none" if epochs is None else "both",
        fix="pass epochs=10, for example, and leave batches out",
    )


def unknown_keyword_of_fit(fit: Any, unknown: Iterable[str]) -> HybridNetError:
    """Returns the error for keywords that Estimator.fit does not have."""
    word = next(iter(unknown))
    if word in _KEYWORDS_OF_FIT:
        return ParamError(f"Estimator.fit: unknown keyword {word!r}", fix=_KEYWORDS_OF_FIT[word])
    return no_keyword(fit, unknown)


def number_of_batches(data: DataLoader) -> int | None:
    """Returns the number of batches; None if the batch sampler does not know it."""
    try:
        return len(data)
    except TypeError:
        return None
