"""History: the values of every epoch of a training, and the handler that records them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ....errors import KeyError as HybridNetKeyError
from ....errors import ParamError, unknown_name
from ._events import EpochEnd, TrainBegin
from ._watching import comparison_for_name, worst

__all__ = ["History", "HistoryHandler"]


class History(Mapping[str, list[float]]):
    """Values per epoch: ``history["training accuracy"]`` is a list with one number per epoch.

    The names are those of the estimator's metrics, and 'learning rate'. An epoch without validation has nan for the
    validation metrics. ``print(history)`` shows a table. Raises KeyError for an unknown name.
    """

    def __init__(self, values: Mapping[str, list[float]] | None = None) -> None:
        self._values: dict[str, list[float]] = {name: list(column) for name, column in (values or {}).items()}

    @property
    def num_epochs(self) -> int:
        """The number of recorded epochs."""
        return max(map(len, self._values.values()), default=0)

    def append(self, epoch: Mapping[str, float]) -> None:
        """Adds the values of an epoch. Names that are new or that it lacks are nan in the other epochs."""
        before = self.num_epochs
        for name in [*self._values, *epoch]:
            column = self._values.setdefault(name, [math.nan] * before)
            if len(column) == before:
                column.append(float(epoch.get(name, math.nan)))

    def best(self, name: str, mode: str = "auto") -> tuple[int, float]:
        """Returns (number of the epoch, value) of the best epoch; epochs count from 0.

        mode: 'max' or 'min'; 'auto': the largest value for accuracy and F1, else the smallest. Raises KeyError for an
        unknown name, ParamError if there is no value.
        """
        better = comparison_for_name(mode, name, "History.best")
        found = (-1, worst(better))
        for epoch, value in enumerate(self[name]):
            if better(value, found[1]):
                found = (epoch, value)
        if found[0] < 0:
            raise ParamError(f"History.best: there is no value of {name!r} yet")
        return found

    def to_dict(self) -> dict[str, list[float]]:
        """Returns a dict of lists, for json.dump or pandas.DataFrame."""
        return {name: list(column) for name, column in self._values.items()}

    def __getitem__(self, name: str) -> list[float]:
        try:
            return self._values[name]
        except KeyError:
            raise unknown_name("History", "name", name, self._values, HybridNetKeyError) from None

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<History of {self.num_epochs} epochs: {', '.join(self._values)}>"

    def __str__(self) -> str:
        titles = ["epoch", *self._values]
        rows = [
            [str(epoch), *("-" if math.isnan(value) else f"{value:.4g}" for value in values)]
            for epoch, values in enumerate(zip(*self._values.values(), strict=True))
        ]
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        return "\n".join(
            "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in [titles, *rows]
        )


class HistoryHandler(TrainBegin, EpochEnd):
    """Records the metrics and the learning rate after each epoch in ``estimator.history``.

    Each fit() has one. It runs after validation and before handlers of the default priority, which may read it.
    """

    state_names = ("values",)

    def __init__(self, priority: float = -500) -> None:
        self.priority = priority
        self.history = History()

    @property
    def values(self) -> dict[str, list[float]]:
        """The recorded values, in the form that a training file keeps."""
        return self.history.to_dict()

    @values.setter
    def values(self, values: dict[str, list[float]]) -> None:
        self.history._values = {name: list(column) for name, column in values.items()}

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.history = estimator.history = History()

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        values = estimator._epoch_values()
        self.history.append({**values, "learning rate": estimator.trainer.learning_rate})
