"""NumPy references of linear algebra and sums of products of NumPy's interface."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value
from .numpy_interface import _axis, _keepdims, _real


def _wide_dtype(function, whole="float"):
    """Computes in float64; whole="keep" computes integers in their dtype, and bools as numbers."""

    def reference(inputs, attrs):
        if whole == "keep" and inputs[0].dtype.kind in "iu":
            return [function(*inputs, attrs)]
        if whole == "keep" and inputs[0].dtype.kind == "b":
            return [function(*(x.astype("int64") for x in inputs), attrs) != 0]
        out = function(*_real(inputs), attrs)
        return list(out) if isinstance(out, tuple) else [out]

    return reference


def _norm(x, attrs):
    order = {"1": "fro", "2": "nuc"}.get(attrs.get("flag", "-2"), float(attrs.get("ord", 2)))
    axis = _axis(attrs)
    if attrs.get("flag", "-2") == "-2":
        return np.sqrt(np.sum(x * x))
    return np.linalg.norm(x, order, axis[0] if axis and len(axis) == 1 else axis, _keepdims(attrs))


def _solve(a, b, attrs):
    """Solves a x = b; b holds a vector for each matrix if its shape is a's without the last axis."""
    return np.linalg.solve(a, b[..., None])[..., 0] if b.shape == a.shape[:-1] else np.linalg.solve(a, b)


def _cross(a, b, attrs):
    if a.dtype == bool:
        return _cross(a.astype("int8"), b.astype("int8"), attrs) != 0
    if a.shape[-1] == b.shape[-1] == 2:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    at_end = np.moveaxis(a, value(attrs, "axisa", -1), -1)
    thirds = [np.concatenate([v, np.zeros((*v.shape[:-1], 3 - v.shape[-1]), v.dtype)], -1) for v in (at_end, b)]
    return np.moveaxis(np.cross(*thirds), -1, value(attrs, "axisc", -1))


def _counted(dtype):
    return "int64" if dtype.kind == "b" else dtype


def _trace(x, attrs):
    return np.trace(x, *(value(attrs, name, default) for name, default in (("offset", 0), ("axis1", 0), ("axis2", 1))))


def _einsum(*operands):
    *arrays, attrs = operands
    return np.einsum(attrs["subscripts"], *arrays)


REFERENCES = {
    "_npi_norm": _wide_dtype(_norm),
    "_npi_solve": _wide_dtype(_solve),
    "_npi_inv": _wide_dtype(lambda x, attrs: np.linalg.inv(x)),
    "_npi_det": _wide_dtype(lambda x, attrs: np.linalg.det(x)),
    "_npi_slogdet": _wide_dtype(lambda x, attrs: tuple(np.linalg.slogdet(x))),
    "_npi_pinv": _wide_dtype(lambda x, rcond, attrs: np.linalg.pinv(x, rcond)),
    "_npi_pinv_scalar_rcond": _wide_dtype(lambda x, attrs: np.linalg.pinv(x)),
    "_npi_tensorinv": _wide_dtype(lambda x, attrs: np.linalg.tensorinv(x, value(attrs, "ind", 2))),
    "_npi_tensorsolve": _wide_dtype(lambda a, b, attrs: np.linalg.tensorsolve(a, b, value(attrs, "a_axes"))),
    "_npi_eigvalsh": _wide_dtype(lambda x, attrs: np.linalg.eigvalsh(x, attrs.get("UPLO", "L"))),
    "_npi_eigvals": _wide_dtype(lambda x, attrs: np.linalg.eigvals(x)),
    "_npi_eig": _wide_dtype(lambda x, attrs: tuple(np.linalg.eig(x))),
    "_npi_cholesky": _wide_dtype(lambda x, attrs: np.linalg.cholesky(x)),
    "_npi_tensordot": _wide_dtype(
        lambda a, b, attrs: np.tensordot(a, b, [tuple_value(attrs, n) for n in ("a_axes_summed", "b_axes_summed")]),
        "keep",
    ),
    "_npi_tensordot_int_axes": _wide_dtype(lambda a, b, attrs: np.tensordot(a, b, value(attrs, "axes")), "keep"),
    "_np_trace": lambda inputs, attrs: [_trace(inputs[0], attrs).astype(_counted(inputs[0].dtype))],
    "_npi_kron": _wide_dtype(lambda a, b, attrs: np.kron(a, b), "keep"),
    "_npi_cross": lambda inputs, attrs: [_cross(*inputs, attrs)],
    "_npi_einsum": _wide_dtype(_einsum, "keep"),
}
