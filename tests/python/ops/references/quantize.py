"""Bytes for floats, and questions to sparse matrices, in NumPy."""

from __future__ import annotations

import numpy as np

from .attributes import value


def _to_bytes(x, low, high, kind):
    x = np.asarray(x, "float64")
    low, high, reach = float(low), float(high), max(abs(float(low)), abs(float(high)))
    scale, zero = (255 / (high - low), low) if kind == "uint8" else (127 / reach, 0.0)
    with np.errstate(all="ignore"):
        steps = (x - zero) * scale
    rounded = np.trunc(np.nan_to_num(steps, nan=0.0) + np.copysign(0.5, steps) * np.isfinite(steps))
    out = rounded.clip(*((0, 255) if kind == "uint8" else (-127, 127)))
    ends = (low, high) if kind == "uint8" else (-reach, reach)
    return [out.astype(kind), *(np.array([e], "float32") for e in ends)]


def _quantize(inputs, attrs):
    return _to_bytes(inputs[0], inputs[1][0], inputs[2][0], attrs.get("out_type", "uint8"))


def _calibrated(x, attrs):
    low, high = value(attrs, "min_calib_range"), value(attrs, "max_calib_range")
    kind = attrs.get("out_type", "int8")
    if kind == "auto":
        kind = "uint8" if low is not None and high is not None and low >= 0 else "int8"
    if low is None or high is None:
        low, high = (x.min(), x.max()) if x.size else (0.0, 0.0)
    return _to_bytes(x, low, high, kind)


def _quantize_v2(inputs, attrs):
    if inputs[0].dtype.kind != "f":  # bytes stay as they are
        ends = (0, 255) if inputs[0].dtype == np.uint8 else (-127, 127)
        low, high = value(attrs, "min_calib_range", ends[0]), value(attrs, "max_calib_range", ends[1])
        return [inputs[0], *(np.array([end], "float32") for end in (low, high))]
    return _calibrated(inputs[0], attrs)


def _requantize(inputs, attrs):
    reach = max(abs(float(inputs[1][0])), abs(float(inputs[2][0])))
    return _calibrated(np.asarray(inputs[0], "float64") * reach / (2**31 - 1), attrs)


def _dequantize(inputs, attrs):
    data, low, high = inputs[0], float(inputs[1][0]), float(inputs[2][0])
    wide = np.asarray(data, "float64")
    if data.dtype == np.uint8:
        return [(wide * (high - low) / 255 + low).astype("float32")]
    return [(wide * max(abs(low), abs(high)) / 127).astype("float32")]


def _getnnz(inputs, attrs):
    return [np.atleast_1d(np.count_nonzero(inputs[0], axis=value(attrs, "axis"))).astype("int64")]


def _edge_id(inputs, attrs):
    data, u, v = inputs
    found = data[u.astype(int), v.astype(int)]
    return [np.where(found == 0, np.array(-1).astype(data.dtype), found)]


def _fill_element(inputs, attrs):
    out = inputs[0].copy()
    out[np.arange(len(out)), inputs[2].astype(int)] = inputs[1]
    return [out]


def _retain(inputs, attrs):
    out, rows = np.zeros_like(inputs[0]), inputs[1].astype(int)
    out[rows] = inputs[0][rows]
    return [out]


REFERENCES = {
    "_sparse_retain": _retain,
    "_contrib_quantize": _quantize,
    "_contrib_quantize_v2": _quantize_v2,
    "_contrib_requantize": _requantize,
    "_contrib_dequantize": _dequantize,
    "_contrib_getnnz": _getnnz,
    "_contrib_edge_id": _edge_id,
    "fill_element_0index": _fill_element,
}
