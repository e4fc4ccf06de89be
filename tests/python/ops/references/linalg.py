"""NumPy references of the factorizations and matrix operators of src/ops/linalg."""

from __future__ import annotations

import numpy as np

from .attributes import value


def _each(function):
    """Applies a function of matrices to every matrix of a stack, in float64; outputs get the dtype of the input."""

    def reference(inputs, attrs):
        wide = [np.asarray(x, "float64") for x in inputs]
        outputs = function(wide, attrs)
        return [np.asarray(o).astype(inputs[0].dtype) for o in (outputs if isinstance(outputs, list) else [outputs])]

    return reference


def _transpose(a):
    return np.swapaxes(a, -1, -2)


def _triangle(a, attrs):
    kept = np.tril(a) if value(attrs, "lower", True) else np.triu(a)
    return _transpose(kept) if value(attrs, "transpose", False) else kept


def _trsm(inputs, attrs):
    a, b = _triangle(inputs[0], attrs), value(attrs, "alpha", 1.0) * inputs[1]
    return (
        _transpose(np.linalg.solve(_transpose(a), _transpose(b)))
        if value(attrs, "rightside", False)
        else np.linalg.solve(a, b)
    )


def _trmm(inputs, attrs):
    a, b = _triangle(inputs[0], attrs), value(attrs, "alpha", 1.0) * inputs[1]
    return b @ a if value(attrs, "rightside", False) else a @ b


def _keep(inputs, attrs):
    a = inputs[0]
    kept = np.tril(a, -1) if value(attrs, "lower", True) else np.triu(a, 1)
    return value(attrs, "factor", 1.0) * kept + value(attrs, "diagonal", 1.0) * a * np.eye(*a.shape[-2:])


def _syrk(inputs, attrs):
    a = _transpose(inputs[0]) if value(attrs, "transpose", False) else inputs[0]
    return value(attrs, "alpha", 1.0) * a @ _transpose(a)


def _potrf(inputs, attrs):
    if value(attrs, "lower", True):
        return np.linalg.cholesky(inputs[0])
    return _transpose(np.linalg.cholesky(_transpose(inputs[0])))


def _potri(inputs, attrs):
    lower = np.tril(inputs[0]) if value(attrs, "lower", True) else _transpose(np.triu(inputs[0]))
    return np.linalg.inv(lower @ _transpose(lower))


def _gelqf(inputs, attrs):
    q, r = np.linalg.qr(_transpose(inputs[0]))  # A^T = Q R, so A = R^T Q^T; Householder's signs are LAPACK's
    return [_transpose(q), _transpose(r)]


def _per_matrix(values):
    return np.atleast_1d(values)


def _slogdet(inputs, attrs):
    return [_per_matrix(x) for x in np.linalg.slogdet(inputs[0])]


def _places(n, attrs, band):
    offset = value(attrs, "offset", 0)
    rows, columns = np.indices((n, n))
    if band:
        return np.nonzero(columns - rows == offset)
    lower = offset < 0 or (offset == 0 and value(attrs, "lower", True))
    return np.nonzero(columns - rows <= offset if lower else columns - rows >= offset)


def _extract(band):
    def reference(inputs, attrs):
        rows, columns = _places(inputs[0].shape[-1], attrs, band)
        return inputs[0][..., rows, columns]

    return _each(reference)


def _make(band):
    def reference(inputs, attrs):
        count, shift = inputs[0].shape[-1], abs(value(attrs, "offset", 0))
        side = count if band else round(((8 * count + 1) ** 0.5 - 1) / 2)
        out = np.zeros(inputs[0].shape[:-1] + (side + shift,) * 2)
        rows, columns = _places(side + shift, attrs, band)
        out[..., rows, columns] = inputs[0]
        return out

    return _each(reference)


REFERENCES = {
    "_linalg_trsm": _each(_trsm),
    "_linalg_trmm": _each(_trmm),
    "_linalg_keep_triangle": _each(_keep),
    "_linalg_syrk": _each(_syrk),
    "_linalg_potrf": _each(_potrf),
    "_linalg_potri": _each(_potri),
    "_linalg_inverse": _each(lambda inputs, attrs: np.linalg.inv(inputs[0])),
    "_linalg_inverse_or_zero": _each(lambda inputs, attrs: np.linalg.inv(inputs[0])),
    "_linalg_det": _each(lambda inputs, attrs: _per_matrix(np.linalg.det(inputs[0]))),
    "_linalg_slogdet": _each(_slogdet),
    "_linalg_gelqf": _each(_gelqf),
    "_linalg_extractdiag": _extract(True),
    "_linalg_makediag": _make(True),
    "_linalg_extracttrian": _extract(False),
    "_linalg_maketrian": _make(False),
    "_linalg_sumlogdiag": _each(
        lambda inputs, attrs: _per_matrix(np.log(np.diagonal(inputs[0], axis1=-2, axis2=-1)).sum(-1))
    ),
}
