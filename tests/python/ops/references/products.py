"""NumPy references of matrix products."""

from __future__ import annotations

import numpy as np

from .attributes import value


def _transposed(inputs, attrs):
    """Returns both inputs, with the last two axes swapped for transpose_a and transpose_b."""
    return [
        np.swapaxes(x, -1, -2) if value(attrs, name, False) else x
        for x, name in zip(inputs, ("transpose_a", "transpose_b"))
    ]


def _dot(inputs, attrs):
    lhs, rhs = inputs
    if value(attrs, "transpose_a", False):
        lhs = np.moveaxis(lhs, 0, -1)
    if value(attrs, "transpose_b", False):
        rhs = np.moveaxis(rhs, -1, 0)
    return [np.tensordot(lhs, rhs, 1)]


def _gemm(inputs, attrs):
    axis = value(attrs, "axis", -2)
    moved = [np.moveaxis(x, axis, -2) for x in inputs]
    a, b = _transposed(moved[:2], attrs)
    out = value(attrs, "alpha", 1.0) * (a @ b)
    if len(moved) == 3:
        out = out + value(attrs, "beta", 1.0) * moved[2]
    return [np.moveaxis(out, -2, axis)]


def _fully_connected(inputs, attrs):
    data, weight = inputs[:2]
    if value(attrs, "flatten", True):
        data = data.reshape(data.shape[0], -1)
    out = data @ weight.T
    return [out + inputs[2].ravel() if len(inputs) > 2 else out]


def _scaled_product(inputs, attrs):
    out = value(attrs, "alpha", 1.0) * np.matmul(*_transposed(inputs[:2], attrs))
    return [out + inputs[2] if len(inputs) > 2 else out]


REFERENCES = {
    "_scaled_product": _scaled_product,
    "dot": _dot,
    "batch_dot": lambda inputs, attrs: [np.matmul(*_transposed(inputs, attrs))],
    "_linalg_gemm": _gemm,
    "_linalg_gemm2": _gemm,
    "FullyConnected": _fully_connected,
}
