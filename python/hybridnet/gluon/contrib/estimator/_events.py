"""Events of a training loop: the base classes of handlers."""

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
    """Base class of handlers. ``priority``: handlers with smaller values run earlier.

    state_names: names of attributes (numbers, texts, lists, dicts) that a TrainingCheckpointHandler keeps. A method
    ``training_failed(estimator)`` is called if training ends by an exception.
    """

    state_names: tuple[str, ...] = ()


def handler_list(handlers: Any) -> list[EventHandler]:
    """Converts one handler, a list or None to a list. Raises ParamError for anything else."""
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
        """Called before training; override it."""


class TrainEnd(EventHandler):
    """Called after training."""

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called after training; override it."""


class EpochBegin(EventHandler):
    """Called before each epoch, and before validation."""

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called before each epoch; override it."""


class EpochEnd(EventHandler):
    """Called after each epoch, and after validation."""

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Called after each epoch; override it. A true result stops training."""
        return False


class BatchBegin(EventHandler):
    """Called before each batch with batch=."""

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Called before each batch; override it."""


class BatchEnd(EventHandler):
    """Called after each batch with batch=, pred=, label= and loss=."""

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """Called after each batch; override it. A true result stops training."""
        return False
