"""NumPy references of the operators of src/ops/reduce."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _axes(attrs, ndim, name="axis"):
    given = value(attrs, name)
    if given is None or given == ():
        return tuple(range(ndim))
    axes = {a % ndim for a in (given if isinstance(given, tuple) else (given,))}
    return tuple(sorted(set(range(ndim)) - axes if value(attrs, "exclude", False) else axes))


def _is_on(attrs, name):
    return value(attrs, name, False) in (True, 1, "True", "true")


def _reduction(function, *, widens=True):
    """Reduces integers as int64 with wrap-around, and bools as 0 and 1."""

    def reference(inputs, attrs):
        x = inputs[0]
        axes, keepdims = _axes(attrs, x.ndim), _is_on(attrs, "keepdims")
        data = x.astype("int64") if x.dtype.kind in "iub" and widens else x
        out = np.asarray(function(data, axis=axes, keepdims=keepdims))
        return [out.astype(x.dtype) if x.dtype != bool else out != 0]

    return reference


def _mean(x, axis, keepdims):
    if x.dtype.kind == "f":
        return x.mean(axis=axis, keepdims=keepdims)
    total = x.sum(axis=axis, keepdims=keepdims)
    count = int(np.prod([x.shape[a] for a in axis]))
    return np.trunc(total / count).astype("int64") if count else np.zeros_like(total)


def _norm(inputs, attrs):
    x = inputs[0]
    axes, keepdims = _axes(attrs, x.ndim), _is_on(attrs, "keepdims")
    data = x.astype("float64") if x.dtype.kind == "f" else x.astype("int64")
    if value(attrs, "ord", 2) == 1:
        out = np.abs(data).sum(axis=axes, keepdims=keepdims)
    else:
        out = np.sqrt(np.square(data).sum(axis=axes, keepdims=keepdims))
    return [np.asarray(out).astype(x.dtype)]


def _allclose(inputs, attrs):
    close = np.allclose(*inputs, rtol=value(attrs, "rtol", 1e-5), atol=value(attrs, "atol", 1e-8), equal_nan=True)
    return [np.array(close, "uint8")]


def _moments(inputs, attrs):
    x = inputs[0]
    axes, keepdims = _axes(attrs, x.ndim, "axes"), _is_on(attrs, "keepdims")
    return [np.asarray(f(x, axis=axes, keepdims=keepdims)) for f in (np.mean, np.var)]


def _position(function):
    def reference(inputs, attrs):
        x, axis = inputs[0], value(attrs, "axis")
        out = np.asarray(function(x, axis=axis))
        if _is_on(attrs, "keepdims"):
            out = out.reshape([1] * x.ndim) if axis is None else np.expand_dims(out, axis)
        return [out.astype(_type_of_positions(x))]

    return reference


def _type_of_positions(x):
    return x.dtype if x.dtype.itemsize >= 4 else np.dtype("float32")


def _cumsum(inputs, attrs, from_end=False):
    x, axis = inputs[0], value(attrs, "axis")
    data = x if x.dtype.kind == "f" else x.astype("int64")
    if axis is None:
        data, axis = data.reshape(-1), 0
    out = np.flip(np.cumsum(np.flip(data, axis), axis), axis) if from_end else np.cumsum(data, axis)
    return [out.astype(x.dtype if x.dtype != bool else "int64")]


def _spread(inputs, attrs):
    shape, axes = tuple_value(attrs, "shape"), tuple_value(attrs, "axis")
    kept = [1 if i in {a % len(shape) for a in axes} else size for i, size in enumerate(shape)]
    return [np.broadcast_to(inputs[0].reshape(kept), shape)]


REFERENCES = {
    "sum": _reduction(np.sum),
    "nansum": _reduction(np.nansum),
    "mean": _reduction(_mean),
    "prod": _reduction(np.prod),
    "nanprod": _reduction(np.nanprod),
    "max": _reduction(np.max),
    "min": _reduction(np.min),
    "_square_sum": _reduction(lambda x, **axes: np.square(x).sum(**axes)),
    "_contrib_allclose": _allclose,
    "norm": _norm,
    "moments": _moments,
    "argmax": _position(np.argmax),
    "argmin": _position(np.argmin),
    "argmax_channel": lambda inputs, attrs: [np.argmax(inputs[0], axis=1).astype(_type_of_positions(inputs[0]))],
    "_np_cumsum": _cumsum,
    "_backward_np_cumsum": lambda inputs, attrs: _cumsum(inputs, attrs, from_end=True),
    "_spread": _spread,
}
