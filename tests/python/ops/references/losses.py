"""What the operators at the end of networks compute, in NumPy: forward values only, their gradients are losses'."""

from __future__ import annotations

import numpy as np

from .attributes import value


def _softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True)) if x.size else x
    return e / e.sum(axis, keepdims=True)


def _softmin(inputs, attrs):
    return [_softmax(-inputs[0] / (value(attrs, "temperature") or 1.0), value(attrs, "axis", -1))]


def _softmax_activation(inputs, attrs):
    return [_softmax(inputs[0], 1 if attrs.get("mode") == "channel" else -1)]


def _softmax_output(inputs, attrs):
    data = inputs[0]
    if value(attrs, "multi_output", False):
        return [_softmax(data, 1)]
    if value(attrs, "preserve_shape", False):
        return [_softmax(data, -1)]
    return [_softmax(data.reshape(data.shape[0], int(np.prod(data.shape[1:]))), 1).reshape(data.shape)]


def _softmax_output_gradient(inputs, attrs):
    p, label = inputs[:2]
    scale = value(attrs, "grad_scale", 1.0)
    alpha = value(attrs, "smooth_alpha", 0.0)
    rows = p.shape[0]
    target = np.full(p.shape, alpha / (p.shape[1] - 1))
    target[np.arange(rows), label.astype(int)] = 1 - alpha
    return [scale * (p - target)]


def _softmax_cross_entropy(inputs, attrs):
    data, label = inputs
    p = _softmax(data, 1)[np.arange(data.shape[0]), label.astype(int)]
    return [np.array([-np.log(np.maximum(p, 1e-8)).sum()])]


def _same(inputs, attrs):
    return [inputs[0]]


def _logistic(inputs, attrs):
    return [1 / (1 + np.exp(-inputs[0]))]


REFERENCES = {
    "softmin": _softmin,
    "SoftmaxActivation": _softmax_activation,
    "SoftmaxOutput": _softmax_output,
    "_backward_SoftmaxOutput": _softmax_output_gradient,
    "softmax_cross_entropy": _softmax_cross_entropy,
    "LinearRegressionOutput": _same,
    "MAERegressionOutput": _same,
    "LogisticRegressionOutput": _logistic,
    "SVMOutput": _same,
}
