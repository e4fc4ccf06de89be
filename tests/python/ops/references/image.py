"""NumPy references of the operators of src/ops/image."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _to_tensor(inputs, attrs):
    return [(np.moveaxis(np.asarray(inputs[0], "float64"), -1, -3) / 255).astype("float32")]


def _normalize(inputs, attrs):
    channels = inputs[0].shape[-3]
    mean = np.resize(tuple_value(attrs, "mean", (0.0,)), channels)[:, None, None]
    std = np.resize(tuple_value(attrs, "std", (1.0,)), channels)[:, None, None]
    return [((np.asarray(inputs[0], "float64") - mean) / std).astype(inputs[0].dtype)]


def _crop(inputs, attrs):
    x, y = value(attrs, "x"), value(attrs, "y")
    return [inputs[0][..., y : y + value(attrs, "height"), x : x + value(attrs, "width"), :]]


def _uncrop(inputs, attrs):
    out = np.zeros(tuple_value(attrs, "shape"), inputs[0].dtype)
    height, width = inputs[0].shape[-3:-1]
    x, y = value(attrs, "x"), value(attrs, "y")
    out[..., y : y + height, x : x + width, :] = inputs[0]
    return [out]


def _kernel(method, distance):
    d = np.abs(distance)
    if method == 2:
        near, far = 1.25 * d**3 - 2.25 * d**2 + 1, -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
        return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
    if method == 4:
        return np.where(d < 4, np.sinc(d) * np.sinc(d / 4), 0.0)
    return np.maximum(1 - d, 0.0)


def _axis_matrix(old, new, method):
    """The resampling matrix of one axis: row i holds the weights of the old pixels in new pixel i."""
    scale, matrix = old / new, np.zeros((new, old))
    for i in range(new):
        if method == 0:
            matrix[i, min(int(i * scale), old - 1)] = 1.0
        elif method == 3 and new < old:
            for j in range(old):
                matrix[i, j] = max(min(j + 1, (i + 1) * scale) - max(j, i * scale), 0.0)
        else:
            center = (i + 0.5) * scale - 0.5
            for j in range(int(np.floor(center)) - 4, int(np.floor(center)) + 6):
                matrix[i, min(max(j, 0), old - 1)] += _kernel(method, center - j)
        matrix[i] /= matrix[i].sum()
    return matrix


def _resized(image, height, width, method):
    rows, columns = _axis_matrix(image.shape[-3], height, method), _axis_matrix(image.shape[-2], width, method)
    return np.einsum("ij,...jkc,lk->...ilc", rows, np.asarray(image, "float64"), columns)


def _resize(inputs, attrs):
    image, size = inputs[0], tuple_value(attrs, "size")
    height, width = image.shape[-3:-1]
    if len(size) == 2:
        new = size[1], size[0]
    elif value(attrs, "keep_ratio", False):
        short = size[0]
        new = (height * short // width, short) if height > width else (short, width * short // height)
    else:
        new = size[0], size[0]
    out = _resized(image, *new, value(attrs, "interp", 1))
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        out = np.rint(np.asarray(out, "float32")).clip(limits.min, limits.max)
    return [out.astype(image.dtype)]


def _unresize(inputs, attrs):
    grad, shape = np.asarray(inputs[0], "float64"), tuple_value(attrs, "shape")
    method = value(attrs, "interp", 1)
    rows, columns = _axis_matrix(shape[-3], grad.shape[-3], method), _axis_matrix(shape[-2], grad.shape[-2], method)
    return [np.einsum("ij,...ilc,lk->...jkc", rows, grad, columns).astype(inputs[0].dtype)]


def _adjust_lighting(inputs, attrs):
    image = inputs[0]
    vectors = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
    shift = vectors @ (np.array([55.46, 4.794, 1.148]) * tuple_value(attrs, "alpha"))
    if image.shape[-1] == 1:
        return [image]
    out = np.asarray(image, "float64") + shift
    if image.dtype == np.uint8:
        out = out.clip(0, 255)
    return [out.astype(image.dtype)]


REFERENCES = {
    "_image_to_tensor": _to_tensor,
    "_image_normalize": _normalize,
    "_image_crop": _crop,
    "_backward_image_crop": _uncrop,
    "_image_flip_left_right": lambda inputs, attrs: [np.flip(inputs[0], -2)],
    "_image_flip_top_bottom": lambda inputs, attrs: [np.flip(inputs[0], -3)],
    "_image_reverse_if": lambda inputs, attrs: [
        np.flip(inputs[0], value(attrs, "axis")) if inputs[1][0] else inputs[0]
    ],
    "_image_resize": _resize,
    "_backward_image_resize": _unresize,
    "_image_adjust_lighting": _adjust_lighting,
}
