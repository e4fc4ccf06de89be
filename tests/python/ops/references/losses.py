"""NumPy references of output operators: forward values only, because their gradients are those of losses."""

from __future__ import annotations

import itertools

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


def _collapse(path, blank):
    return tuple(a for i, a in enumerate(path) if a != blank and (i == 0 or a != path[i - 1]))


def _ctc_loss(inputs, attrs):
    """CTC loss by summing the probabilities of all paths that collapse to the label."""
    data, label = inputs[:2]
    first = attrs.get("blank_label", "first") == "first"
    steps, batch, symbols = data.shape
    blank = 0 if first else symbols - 1
    lengths = list(inputs[2:])
    data_lengths = (
        np.clip(lengths.pop(0), 0, steps) if value(attrs, "use_data_lengths", False) else np.full(batch, steps)
    )
    out = np.zeros(batch)
    for n in range(batch):
        symbols_of = [int(v) for v in label[n]]
        if value(attrs, "use_label_lengths", False):
            symbols_of = symbols_of[: int(np.clip(lengths[0][n], 0, label.shape[1]))]
        elif (padding := 0 if first else -1) in symbols_of:
            symbols_of = symbols_of[: symbols_of.index(padding)]
        count = int(data_lengths[n])
        p = _softmax(data[:count, n], 1)
        total = sum(
            np.prod([p[t, a] for t, a in enumerate(path)])
            for path in itertools.product(range(symbols), repeat=count)
            if _collapse(path, blank) == tuple(symbols_of)
        )
        out[n] = -np.log(total) if total > 0 else 0
    return [out]


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
    "CTCLoss": _ctc_loss,
}
