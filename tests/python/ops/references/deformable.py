"""NumPy reference of deformable convolution: one kernel point of one output pixel at a time."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _axis_weights(position, size, zero_border, derivative):
    """The interpolation weights of `size` places at a position, or their derivatives by the position."""
    weights = np.zeros(size)
    lowest = -1 if zero_border else 0
    inside = lowest < position < size if zero_border else 0 <= position < size
    if not inside:
        return weights
    first = int(np.floor(position))
    part = position - first
    if not zero_border and first + 1 >= size:
        weights[first] = 0.0 if derivative else 1.0
        return weights
    if first >= 0:
        weights[first] = -1.0 if derivative else 1.0 - part
    if first + 1 < size:
        weights[first + 1] = 1.0 if derivative else part
    return weights


def _geometry(attrs):
    return [
        tuple_value(attrs, name, ()) or default
        for name, default in (("kernel", (1, 1)), ("stride", (1, 1)), ("dilate", (1, 1)), ("pad", (0, 0)))
    ]


def _sampling(image_shape, offset, attrs, zero_border, along=(False, False)):
    """The weight of every pixel in every point: (groups, taps, batch, points, height, width)."""
    batch, _, height, width = image_shape
    kernel, stride, dilate, pad = _geometry(attrs)
    groups, taps = value(attrs, "num_deformable_group", 1), kernel[0] * kernel[1]
    out_h, out_w = offset.shape[2:]
    moves = offset.reshape(batch, groups, taps, 2, out_h, out_w)
    out = np.zeros((groups, taps, batch, out_h * out_w, height, width))
    for n, g, t, y, x in np.ndindex(batch, groups, taps, out_h, out_w):
        row = y * stride[0] + t // kernel[1] * dilate[0] - pad[0] + moves[n, g, t, 0, y, x]
        column = x * stride[1] + t % kernel[1] * dilate[1] - pad[1] + moves[n, g, t, 1, y, x]
        rows = _axis_weights(row, height, zero_border, along[0])
        columns = _axis_weights(column, width, zero_border, along[1])
        out[g, t, n, y * out_w + x] = np.outer(rows, columns)
    return out


def _grouped(image, groups):
    batch, channels, height, width = image.shape
    return image.reshape(batch, groups, channels // groups, height, width)


def _columns_of(image, offset, attrs, zero_border, along=(False, False)):
    weights = _sampling(image.shape, offset, attrs, zero_border, along)
    columns = np.einsum("gtnphw,ngchw->gctnp", weights, _grouped(image, weights.shape[0]))
    return columns.reshape((image.shape[1], *columns.shape[2:]))


def _along(attrs):
    return value(attrs, "along_y", False), value(attrs, "along_x", False)


def _columns(inputs, attrs):
    image, offset = (np.asarray(x, "float64") for x in inputs)
    out = _columns_of(image, offset, attrs, value(attrs, "zero_border", False), _along(attrs))
    return [out.astype(inputs[0].dtype)]


def _spread(inputs, attrs):
    columns, offset = (np.asarray(x, "float64") for x in inputs)
    shape = tuple_value(attrs, "image_shape")
    weights = _sampling(shape, offset, attrs, value(attrs, "zero_border", False), _along(attrs))
    grouped = columns.reshape((weights.shape[0], -1, *columns.shape[1:]))
    return [np.einsum("gtnphw,gctnp->ngchw", weights, grouped).reshape(shape).astype(inputs[0].dtype)]


def _convolution(modulated):
    def reference(inputs, attrs):
        data, offset, *rest = (np.asarray(x, "float64") for x in inputs)
        columns = _columns_of(data, offset, attrs, modulated)
        channels, taps, batch, points = columns.shape
        if modulated:
            mask = rest.pop(0).reshape(batch, -1, taps, points).transpose(1, 2, 0, 3)
            grouped = columns.reshape((mask.shape[0], -1, taps, batch, points)) * mask[:, None]
            columns = grouped.reshape(columns.shape)
        weight, groups = rest[0], value(attrs, "num_group", 1)
        split = columns.reshape(groups, channels // groups * taps, batch * points)
        out = weight.reshape(groups, weight.shape[0] // groups, -1) @ split
        out = out.reshape(weight.shape[0], batch, *offset.shape[2:]).transpose(1, 0, 2, 3)
        if len(rest) > 1:
            out = out + rest[1][:, None, None]
        return [out.astype(inputs[0].dtype)]

    return reference


REFERENCES = {
    "_deformable_columns": _columns,
    "_deformable_spread": _spread,
    "_contrib_DeformableConvolution": _convolution(False),
    "_contrib_ModulatedDeformableConvolution": _convolution(True),
}
