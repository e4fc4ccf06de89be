"""NumPy references of the internal operators of src/ops/nn: layers with their activation, and gradients."""

from __future__ import annotations

import itertools
import math

import numpy as np

from .attributes import tuple_value, value
from .images import _channels_first, _convolution, _deconvolution, _geometry, _restored, _window
from .products import _fully_connected

_ERF = np.vectorize(math.erf, otypes=[np.float64])


def activated(x, attrs):
    alpha, beta = value(attrs, "act_alpha", 0.0), value(attrs, "act_beta", 0.0)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    return {
        "none": lambda: x,
        "relu": lambda: np.maximum(x, 0),
        "sigmoid": lambda: sigmoid(x),
        "tanh": lambda: np.tanh(x),
        "softrelu": lambda: np.logaddexp(x, 0),
        "gelu": lambda: x * (1 + _ERF(x / np.sqrt(2))) / 2,
        "gelu_tanh": lambda: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
        "silu": lambda: x * sigmoid(x),
        "clip": lambda: np.clip(x, alpha, beta),
        "elu": lambda: np.where(x > 0, x, alpha * np.expm1(x)),
        "leaky": lambda: np.where(x > 0, x, alpha * x),
    }[attrs.get("act_type", "none")]()


def _fused_convolution(inputs, attrs):
    addend = value(attrs, "with_addend", False)
    (product,) = _convolution(inputs[:-1] if addend else inputs, attrs)
    return [activated(product + inputs[-1] if addend else product, attrs)]


def _fused_fully_connected(inputs, attrs):
    addend = value(attrs, "with_addend", False)
    (product,) = _fully_connected(inputs[:-1] if addend else inputs, attrs)
    return [activated(product + inputs[-1] if addend else product, attrs)]


def _convolution_of_data(inputs, attrs):
    """The gradient of data: a deconvolution whose output has exactly data_size elements."""
    dy, _ = _channels_first(inputs[0], attrs)
    kernel = tuple_value(attrs, "kernel")
    stride, pad, dilate = _geometry(attrs, len(kernel))
    spans = [s * (n - 1) + d * (k - 1) + 1 for n, s, d, k in zip(dy.shape[2:], stride, dilate, kernel)]
    rest = [n - span + 2 * p for n, span, p in zip(tuple_value(attrs, "data_size"), spans, pad)]
    return _deconvolution(inputs, {**attrs, "adj": str(tuple(rest))})


def _convolution_of_weights(inputs, attrs):
    (x, last), (dy, _) = (_channels_first(array, attrs) for array in inputs)
    kernel, groups = tuple_value(attrs, "kernel"), value(attrs, "num_group", 1)
    stride, pad, dilate = _geometry(attrs, len(kernel))
    padded = np.pad(x, [(0, 0), (0, 0), *((p, p + s) for p, s in zip(pad, stride))])
    filters, width = dy.shape[1] // groups, x.shape[1] // groups
    dw = np.zeros((dy.shape[1], width, *kernel), x.dtype)
    for offset in itertools.product(*map(range, kernel)):
        seen = _window(padded, offset, stride, dilate, dy.shape[2:])
        for g in range(groups):
            part = dy[:, g * filters : (g + 1) * filters].reshape(len(dy), filters, -1)
            below = seen[:, g * width : (g + 1) * width].reshape(len(x), width, -1)
            dw[(slice(g * filters, (g + 1) * filters), slice(None), *offset)] = np.einsum("ncp,nfp->fc", below, part)
    grads = [_restored(dw, last)]
    return grads if value(attrs, "no_bias", False) else [*grads, dy.sum((0, *range(2, dy.ndim)))]


def _softmax_backward(inputs, attrs):
    dy, y = inputs
    axis, scale = value(attrs, "axis", -1), value(attrs, "scale", 1.0)
    if value(attrs, "log", False):
        return [scale * (dy - np.exp(y) * dy.sum(axis, keepdims=True))]
    return [scale * y * (dy - (dy * y).sum(axis, keepdims=True))]


def _classes(index, width, attrs):
    index = np.trunc(index).astype("int64").reshape(-1)
    return index % width if value(attrs, "mode", "clip") == "wrap" else np.clip(index, 0, width - 1)


def _log_softmax_pick(inputs, attrs):
    x, index = inputs
    rows = x.reshape(-1, x.shape[-1])
    total = np.logaddexp.reduce(rows, axis=-1) if rows.size else np.zeros(len(rows))
    picked = rows[np.arange(len(rows)), _classes(index, x.shape[-1], attrs)] - total
    kept = (*x.shape[:-1], 1)
    return [picked.reshape(kept if value(attrs, "keepdims", False) else x.shape[:-1]), total.reshape(kept)]


def _log_softmax_pick_backward(inputs, attrs):
    dy, x, index, total = inputs
    one_hot = np.eye(x.shape[-1])[_classes(index, x.shape[-1], attrs)].reshape(x.shape)
    return [dy.reshape(total.shape) * (one_hot - np.exp(x - total))]


def _layer_norm_backward(inputs, attrs):
    dy, x, gamma, mean, std = inputs
    h, w = (x - mean) / std, dy * gamma
    dx = (w - w.mean(-1, keepdims=True) - h * (w * h).mean(-1, keepdims=True)) / std
    rows = tuple(range(x.ndim - 1))
    return [dx, (dy * h).sum(rows), dy.sum(rows)]


def _add_layer_norm_backward(inputs, attrs):
    dx, dgamma, dbeta = _layer_norm_backward(inputs[:5], attrs)
    return [dx + inputs[5] if value(attrs, "with_sum", False) else dx, dgamma, dbeta]


def _rms_norm_backward(inputs, attrs):
    dy, x, gamma, rms = inputs
    h, w = x / rms, dy * gamma
    return [(w - h * (w * h).mean(-1, keepdims=True)) / rms, (dy * h).sum(tuple(range(x.ndim - 1)))]


REFERENCES = {
    "_fused_convolution": _fused_convolution,
    "_fused_fully_connected": _fused_fully_connected,
    "_conv_backward_data": _convolution_of_data,
    "_conv_backward_weights": _convolution_of_weights,
    "_softmax_backward": _softmax_backward,
    "_layer_norm_backward": _layer_norm_backward,
    "_add_layer_norm_backward": _add_layer_norm_backward,
    "_rms_norm_backward": _rms_norm_backward,
    "_log_softmax_pick": _log_softmax_pick,
    "_log_softmax_pick_backward": _log_softmax_pick_backward,
}
