"""NumPy references of the operators of src/ops/init."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _constant(fill):
    def reference(inputs, attrs):
        filled = value(attrs, "value") if fill is None else fill
        return [np.full(tuple_value(attrs, "shape"), filled).astype(attrs.get("dtype", "float32"))]

    return reference


def _arange(inputs, attrs):
    start, stop, step = value(attrs, "start"), value(attrs, "stop"), value(attrs, "step", 1)
    if stop is None:
        start, stop = 0, start
    dtype = np.dtype(attrs.get("dtype", "float32"))
    values = np.arange(start, stop, step, dtype="float64")
    if dtype.kind in "iu":
        values = int(start) + np.arange(len(values)) * int(step)
    return [np.repeat(values, value(attrs, "repeat", 1)).astype(dtype)]


def _arange_like(inputs, attrs):
    (data,) = inputs
    axis, repeat = value(attrs, "axis"), value(attrs, "repeat", 1)
    shape = data.shape if axis is None else (data.shape[axis],)
    count = np.arange(int(np.prod(shape, dtype=np.int64))) // repeat
    start, step = value(attrs, "start", 0.0), value(attrs, "step", 1.0)
    if data.dtype.kind in "iu":
        start, step = int(start), int(step)
    return [(start + count * step).reshape(shape).astype(data.dtype)]


def _linspace(inputs, attrs):
    values = np.linspace(
        value(attrs, "start"), value(attrs, "stop"), value(attrs, "num"), endpoint=value(attrs, "endpoint", True)
    )
    return [values.astype(attrs.get("dtype", "float32"))]


def _eye(inputs, attrs):
    rows = value(attrs, "N")
    return [np.eye(rows, value(attrs, "M", 0) or rows, value(attrs, "k", 0), dtype=attrs.get("dtype", "float32"))]


REFERENCES = {
    "_zeros": _constant(0),
    "_ones": _constant(1),
    "_full": _constant(None),
    "_zeros_without_dtype": lambda inputs, attrs: [np.zeros(tuple_value(attrs, "shape"))],
    "_arange": _arange,
    "_contrib_arange_like": _arange_like,
    "_linspace": _linspace,
    "_eye": _eye,
}
