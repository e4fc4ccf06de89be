"""Events of a training loop: what handlers derive from."""

from __future__ import annotations

from typing import Any

from ....errors import ParamError

__all__ = [
    "BatchBegin",
    "BatchEnd",
    "EpochBegin",
    "EpochEnd",
    "EventHandler",
    "TrainBegin",
    "TrainEnd",
    "handler_list",
]


class EventHandler:
    """Base of handlers. ``priority``: smaller ones run earlier."""


def handler_list(handlers: Any) -> list[EventHandler]:
    """One handler, a list or None as a list. Raises ParamError for anything else."""
    if isinstance(handlers, EventHandler):
        return [handlers]
    listed = list(handlers or ())
    for handler in listed:
        if not isinstance(handler, EventHandler):
            raise ParamError(f"handlers must be an EventHandler or a list of EventHandler, got: {handler!r}")
    return listed


class TrainBegin(EventHandler):
    """Called before training."""

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Override it."""


class TrainEnd(EventHandler):
    """Called after training."""

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Override it."""


class EpochBegin(EventHandler):
    """Called before each epoch, and before validation."""

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Override it."""


class EpochEnd(EventHandler):
    """Called after each epoch, and after validation."""

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Override it; true stops training."""
        return False


class BatchBegin(EventHandler):
    """Called before each batch with batch=."""

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Override it."""


class BatchEnd(EventHandler):
    """Called after each batch with batch=, pred=, label= and loss=."""

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Override it; true stops training."""
        return False
