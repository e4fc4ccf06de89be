"""NumPy references of im2col, col2im and the correlation of patches."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _axis(attrs, k, size):
    """Returns (kernel points, steps): the place that a kernel point reads at a step, possibly outside of the image."""
    axes = len(tuple_value(attrs, "kernel"))
    stride, dilate, pad = (
        (tuple_value(attrs, name, ()) or (default,) * axes)[k]
        for name, default in (("stride", 1), ("dilate", 1), ("pad", 0))
    )
    kernel = tuple_value(attrs, "kernel")[k]
    steps = (size + 2 * pad - dilate * (kernel - 1) - 1) // stride + 1
    return np.arange(steps)[None] * stride + np.arange(kernel)[:, None] * dilate - pad


def _matrix(attrs, size):
    """Returns (kernel points, positions, pixels): 1 where the element of a column is the pixel, else 0."""
    matrix = np.ones((1, 1, 1))
    for k, s in enumerate(size):
        hit = (_axis(attrs, k, s)[..., None] == np.arange(s)).astype("float64")
        matrix = np.einsum("abc,def->adbecf", matrix, hit).reshape(np.multiply(matrix.shape, hit.shape))
    return matrix


def _im2col(inputs, attrs):
    data = np.asarray(inputs[0], "float64")
    flat = data.reshape((*data.shape[:2], -1))
    out = np.einsum("kpi,nci->nckp", _matrix(attrs, data.shape[2:]), flat)
    return [out.reshape(data.shape[0], -1, out.shape[-1]).astype(inputs[0].dtype)]


def _col2im(inputs, attrs):
    size, columns = tuple_value(attrs, "output_size"), np.asarray(inputs[0], "float64")
    matrix = _matrix(attrs, size)
    split = columns.reshape(len(columns), columns.shape[1] // matrix.shape[0], *matrix.shape[:2])
    out = np.einsum("kpi,nckp->nci", matrix, split)
    return [out.reshape(out.shape[:2] + size).astype(inputs[0].dtype)]


def _patches(inputs, attrs):
    """Returns the padded images, and for every output element the corners of the two patches that it compares."""
    pad, reach = value(attrs, "pad_size", 0), value(attrs, "max_displacement", 1)
    kernel, step, hop = (value(attrs, k, 1) for k in ("kernel_size", "stride1", "stride2"))
    padded = [np.pad(np.asarray(x, "float64"), ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in inputs]
    border = reach + (kernel - 1) // 2
    rows, columns = (-(-(s - 2 * border) // step) for s in padded[0].shape[2:])
    offsets = [
        (dy * hop, dx * hop)
        for dy in range(-(reach // hop), reach // hop + 1)
        for dx in range(-(reach // hop), reach // hop + 1)
    ]
    places = []
    for d, (dy, dx) in enumerate(offsets):
        for i in range(rows):
            for j in range(columns):
                y, x = i * step + reach, j * step + reach
                places.append(
                    (
                        (d, i, j),
                        (slice(y, y + kernel), slice(x, x + kernel)),
                        (slice(y + dy, y + dy + kernel), slice(x + dx, x + dx + kernel)),
                    )
                )
    return padded, places, (len(offsets), rows, columns), pad


def _correlation(inputs, attrs):
    (first, second), places, shape, _ = _patches(inputs, attrs)
    out = np.zeros((len(first), *shape))
    for (d, i, j), one, two in places:
        a, b = first[(slice(None), slice(None), *one)], second[(slice(None), slice(None), *two)]
        out[:, d, i, j] = (a * b if value(attrs, "is_multiply", True) else np.abs(a - b)).sum((1, 2, 3)) / max(
            a[0].size, 1
        )
    return [out.astype(inputs[0].dtype)]


def _correlation_back(inputs, attrs):
    grad = np.asarray(inputs[0], "float64")
    (first, second), places, _, pad = _patches(inputs[1:], attrs)
    grads = [np.zeros_like(first), np.zeros_like(second)]
    for (d, i, j), one, two in places:
        a, b = first[(slice(None), slice(None), *one)], second[(slice(None), slice(None), *two)]
        arriving = grad[:, d, i, j][:, None, None, None] / a[0].size
        if value(attrs, "is_multiply", True):
            changes = b, a
        else:
            changes = np.where(a >= b, 1.0, -1.0), np.where(a >= b, -1.0, 1.0)
        grads[0][(slice(None), slice(None), *one)] += arriving * changes[0]
        grads[1][(slice(None), slice(None), *two)] += arriving * changes[1]
    inner = slice(pad, None if pad == 0 else -pad)
    return [g[:, :, inner, inner].astype(inputs[0].dtype) for g in grads]


REFERENCES = {
    "im2col": _im2col,
    "col2im": _col2im,
    "Correlation": _correlation,
    "_backward_Correlation": _correlation_back,
}
