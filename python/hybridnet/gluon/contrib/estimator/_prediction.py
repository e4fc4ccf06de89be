"""Predictions of an Estimator: the outputs of its net for all samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....errors import ParamError
from ....ndarray import NDArray, array, concat
from ...data import DataLoader

__all__ = ["predict"]


def _slices(data: Any, size: int, axis: int) -> Iterator[NDArray]:
    """Yields slices of an array along axis, with at most size samples each."""
    if not isinstance(data, NDArray):
        values = np.asarray(data)
        data = array(values, dtype="float32" if values.dtype == np.float64 else values.dtype)
    for begin in range(0, data.shape[axis], size):
        yield data[(slice(None),) * axis + (slice(begin, begin + size),)]


def _joined(parts: Sequence[NDArray], axis: int) -> NDArray:
    if len(parts) == 1:
        return parts[0]
    joined = concat(*(part.as_nd_ndarray() for part in parts), dim=axis)
    return joined.as_np_ndarray() if parts[0]._has_numpy_interface else joined


def predict(estimator: Any, data: Any, batch_size: int, batch_axis: int) -> Any:
    """See Estimator.predict."""
    if batch_size < 1:
        raise ParamError("Estimator.predict: batch_size", expected="an integer >= 1", given=repr(batch_size))
    batches = data if isinstance(data, DataLoader) else _slices(data, batch_size, batch_axis)
    outputs = [
        part if isinstance(part, (list, tuple)) else (part,)
        for batch in batches
        for part in estimator.batch_processor.predict_batch(estimator, batch, batch_axis)
    ]
    if not outputs:
        raise ParamError("Estimator.predict: data", expected="at least one sample", given="none")
    device = estimator.context[0]
    joined = [
        _joined([part.as_in_context(device) for part in parts], batch_axis) for parts in zip(*outputs, strict=True)
    ]
    return joined[0] if len(joined) == 1 else joined
