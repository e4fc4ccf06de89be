"""Functions that NumPy computes: arguments are converted to NumPy arrays, results to arrays of mx.np.

They wait for their arguments, have no gradient, and cannot be traced into a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from .. import _core
from .._lazy_names import no_attribute
from ..errors import GradientError, TraceError
from .multiarray import ndarray

__all__ = ["FALLBACKS"]

FALLBACKS = [
    "allclose",
    "apply_over_axes",
    "array_equal",
    "array_equiv",
    "choose",
    "correlate",
    "divmod",
    "float_power",
    "frexp",
    "heaviside",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "i0",
    "intersect1d",
    "isclose",
    "left_shift",
    "min_scalar_type",
    "modf",
    "nextafter",
    "packbits",
    "piecewise",
    "poly",
    "polyadd",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "positive",
    "promote_types",
    "result_type",
    "right_shift",
    "roots",
    "setdiff1d",
    "setxor1d",
    "signbit",
    "spacing",
    "trim_zeros",
    "union1d",
    "unpackbits",
    "unwrap",
]


def as_numpy(value: Any) -> Any:
    """Replaces arrays in value by NumPy arrays, also within lists, tuples and dicts."""
    if isinstance(value, _core.SymbolBase):
        raise TraceError("a function of NumPy needs values, and an abstract array has none")
    if isinstance(value, _core.NDArrayBase):
        if _core.is_recording() and _core.needs_gradient(value):
            raise GradientError(
                "a function that NumPy computes has no gradient",
                fix="call it within autograd.pause(), or on x.detach()",
            )
        return _core.asnumpy(value)
    if isinstance(value, (list, tuple)):
        return type(value)(as_numpy(item) for item in value)
    if isinstance(value, dict):
        return {key: as_numpy(item) for key, item in value.items()}
    return value


def from_numpy(result: Any) -> Any:
    """Replaces NumPy arrays in the result by arrays of mx.np; keeps those whose dtype mx.np does not have."""
    if isinstance(result, (list, tuple)):
        items = [from_numpy(item) for item in result]
        return items if isinstance(result, list) else tuple(items)
    if isinstance(result, onp.generic) and not isinstance(result, onp.ndarray):
        return _array(onp.asarray(result)) if result.dtype.kind in "biuf" else result
    return _array(result) if isinstance(result, onp.ndarray) and result.dtype.kind in "biuf" else result


def _array(values: onp.ndarray) -> Any:
    target = {"uint16": "int32", "uint32": "int64", "uint64": "int64", "int16": "int32"}.get(values.dtype.name)
    values = onp.ascontiguousarray(values, dtype=target).reshape(values.shape)
    return _core.retyped(_core.from_numpy_copy(values, values.dtype, 1, 0), ndarray)


def _made(name: str) -> Callable[..., Any]:
    computed = getattr(onp, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        result = computed(*as_numpy(args), **as_numpy(kwargs))
        return result if name in ("result_type", "promote_types", "min_scalar_type") else from_numpy(result)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "hybridnet.numpy"
    function.__doc__ = f"NumPy's ``{name}`` of the arrays' values. {(computed.__doc__ or '').strip().splitlines()[0]}"
    return function


def __getattr__(name: str) -> Any:
    if name not in FALLBACKS:
        raise no_attribute(__name__, name)
    globals()[name] = made = _made(name)
    return made
