"""Metrics defined by functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..errors import UnsupportedError
from ._metric import EvalMetric, check_label_shapes, register, to_numpy

__all__ = ["CustomMetric", "np"]


@register
class CustomMetric(EvalMetric):
    """A metric computed by a function of NumPy arrays.

    Parameters
    ----------
    feval : callable (label, pred) -> value or (sum, count)
    name : str, optional
        Default: the function's name.
    allow_extra_outputs : bool, default False
        Whether there may be more predictions than labels (states of a recurrent net).
    """

    def __init__(
        self,
        feval: Callable[[numpy.ndarray, numpy.ndarray], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if name is None:
            name = feval.__name__
            if "<" in name:
                name = f"custom({name})"
        super().__init__(
            name,
            output_names,
            label_names,
            feval=feval,
            allow_extra_outputs=allow_extra_outputs,
            has_global_stats=True,
        )
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for pred, label in zip(preds, labels, strict=False):
            result = self._feval(to_numpy(label), to_numpy(pred))
            self._add(*(result if isinstance(result, tuple) else (result, 1)))

    def get_config(self) -> dict[str, Any]:
        """Always raises UnsupportedError: create() cannot read a function."""
        raise UnsupportedError(
            f"CustomMetric '{self.name}': a function cannot be written as a configuration",
            fix="derive a class from EvalMetric and register it",
        )


def np(
    numpy_feval: Callable[[numpy.ndarray, numpy.ndarray], Any],
    name: str | None = None,
    allow_extra_outputs: bool = False,
) -> CustomMetric:
    """Creates a CustomMetric from a function (label, pred) -> float of NumPy arrays."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
