"""NumPy references of the operators of src/ops/broadcast."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value
from .elementwise import ARITHMETIC, COMPARISONS, binary


def _broadcast_to(inputs, attrs):
    x = inputs[0]
    shape = tuple_value(attrs, "shape")
    sizes = (1,) * (len(shape) - x.ndim) + x.shape
    return [np.broadcast_to(x, tuple(own if asked == 0 else asked for asked, own in zip(shape, sizes, strict=True)))]


def _broadcast_axis(inputs, attrs):
    x = inputs[0]
    shape = list(x.shape)
    for axis, size in zip(tuple_value(attrs, "axis"), tuple_value(attrs, "size"), strict=True):
        shape[axis] = size
    return [np.broadcast_to(x, shape)]


def _broadcast_like(inputs, attrs):
    x, like = inputs
    if value(attrs, "lhs_axes") is None:
        return [np.broadcast_to(x, like.shape)]
    shape = list(x.shape)
    for left, right in zip(tuple_value(attrs, "lhs_axes"), tuple_value(attrs, "rhs_axes"), strict=True):
        shape[left] = like.shape[right]
    return [np.broadcast_to(x, shape)]


REFERENCES = {
    **{f"broadcast_{name}": binary(f) for name, f in {**ARITHMETIC, **COMPARISONS}.items()},
    "_prelu_slope": lambda inputs, attrs: [np.where(inputs[0] > 0, 1, inputs[1])],
    "broadcast_to": _broadcast_to,
    "broadcast_axis": _broadcast_axis,
    "broadcast_like": _broadcast_like,
}
