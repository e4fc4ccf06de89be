"""What reductions compute, in NumPy."""

from __future__ import annotations

import numpy as np

from .attributes import value


def _axes(attrs, ndim, name="axis"):
    given = value(attrs, name)
    if given is None or given == ():
        axes = tuple(range(ndim))
        return () if value(attrs, "exclude", False) and given is None else axes
    axes = tuple(axis % ndim for axis in (given if isinstance(given, tuple) else (given,)))
    if value(attrs, "exclude", False):
        axes = tuple(axis for axis in range(ndim) if axis not in axes)
    return axes


def _reduction(function):
    def reference(inputs, attrs):
        (data,) = inputs
        data = data.astype("int64") if data.dtype == bool else data
        return [function(data, axis=_axes(attrs, data.ndim), keepdims=bool(value(attrs, "keepdims", False)))]

    return reference


def _mean(data, axis, keepdims):
    mean = np.mean(data, axis=axis, keepdims=keepdims)
    return mean if data.dtype.kind == "f" else np.trunc(mean)


def _norm(inputs, attrs):
    (data,) = inputs
    axes, keep = _axes(attrs, data.ndim), bool(value(attrs, "keepdims", False))
    if value(attrs, "ord", 2) == 1:
        return [np.sum(np.abs(data), axis=axes, keepdims=keep)]
    return [np.sqrt(np.sum(np.square(data), axis=axes, keepdims=keep))]


def _place(function):
    def reference(inputs, attrs):
        axis = value(attrs, "axis")
        return [np.asarray(function(inputs[0], axis=axis, keepdims=bool(value(attrs, "keepdims", False))))]

    return reference


def _moments(inputs, attrs):
    (data,) = inputs
    axes, keep = _axes(attrs, data.ndim, "axes"), bool(value(attrs, "keepdims", False))
    return [np.mean(data, axis=axes, keepdims=keep), np.var(data, axis=axes, keepdims=keep)]


def _cumsum(inputs, attrs):
    data = inputs[0].astype(attrs["dtype"]) if attrs.get("dtype", "None") != "None" else inputs[0]
    return [np.cumsum(data, axis=value(attrs, "axis"))]


REFERENCES = {
    "sum": _reduction(np.sum),
    "mean": _reduction(_mean),
    "prod": _reduction(np.prod),
    "nansum": _reduction(np.nansum),
    "nanprod": _reduction(np.nanprod),
    "max": _reduction(np.max),
    "min": _reduction(np.min),
    "norm": _norm,
    "argmax": _place(np.argmax),
    "argmin": _place(np.argmin),
    "argmax_channel": lambda inputs, attrs: [np.argmax(inputs[0], axis=1)],
    "moments": _moments,
    "_np_cumsum": _cumsum,
}
