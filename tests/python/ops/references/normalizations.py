"""NumPy references of softmaxes and normalizations. None stands for an output that is not compared."""

from __future__ import annotations

import numpy as np

from .attributes import value


def _softmax(inputs, attrs):
    data, axis = inputs[0], value(attrs, "axis", -1)
    scaled = data / (value(attrs, "temperature", None) or 1.0)
    if len(inputs) > 1:
        place = np.arange(data.shape[axis]).reshape([-1 if i == axis % data.ndim else 1 for i in range(data.ndim)])
        scaled = np.where(place < np.expand_dims(inputs[1], axis), scaled, -np.inf)
    if not scaled.size:
        return [scaled]
    largest = scaled.max(axis, keepdims=True)
    shifted = np.exp(scaled - np.where(np.isfinite(largest), largest, 0))
    total = shifted.sum(axis, keepdims=True)
    return [shifted / np.where(total == 0, 1, total)]


def _moved_channel(x, ndim, axis):
    return x.reshape([-1 if i == axis % ndim else 1 for i in range(ndim)])


def _batch_norm(relu=False):
    def reference(inputs, attrs, train=False):
        data, gamma, beta, moving_mean, moving_var = inputs
        axis, eps, momentum = value(attrs, "axis", 1), value(attrs, "eps", 1e-3), value(attrs, "momentum", 0.9)
        spread = lambda x: _moved_channel(x, data.ndim, axis)  # noqa: E731
        if value(attrs, "fix_gamma", True):
            gamma = np.ones_like(gamma)
        mean, var = moving_mean, moving_var
        others = tuple(i for i in range(data.ndim) if i != axis % data.ndim)
        learning = train and not value(attrs, "use_global_stats", False)
        if learning:
            mean, var = data.mean(others), data.var(others)
        out = (data - spread(mean)) / np.sqrt(spread(var) + eps) * spread(gamma) + spread(beta)
        updated = [momentum * old + (1 - momentum) * new for old, new in ((moving_mean, mean), (moving_var, var))]
        return [np.maximum(out, 0) if relu else out, None, None, *(updated if learning else (moving_mean, moving_var))]

    return reference


def _batch_norm_apply(inputs, attrs):
    data, gamma, beta, mean, inverse = inputs
    gamma, beta, mean, inverse = (
        _moved_channel(x, data.ndim, value(attrs, "axis", 1)) for x in (gamma, beta, mean, inverse)
    )
    out = (data - mean) * inverse * (1 if value(attrs, "fix_gamma", False) else gamma) + beta
    return [np.maximum(out, 0) if value(attrs, "relu", False) else out]


def _layer_norm(inputs, attrs):
    data, gamma, beta = inputs
    axis, eps = value(attrs, "axis", -1), value(attrs, "eps", 1e-5)
    mean, std = data.mean(axis, keepdims=True), np.sqrt(data.var(axis, keepdims=True) + eps)
    spread = lambda x: _moved_channel(x, data.ndim, axis)  # noqa: E731
    return [(data - mean) / std * spread(gamma) + spread(beta), mean, std]


def _add_layer_norm(inputs, attrs):
    data, addend, gamma, beta = inputs
    total = data + addend
    out, mean, std = _layer_norm([total, gamma, beta], {"eps": attrs.get("eps", "1e-5")})
    return [out, total, mean, std]


def _rms_norm(inputs, attrs):
    data, gamma = inputs
    axis = value(attrs, "axis", -1)
    rms = np.sqrt(np.square(data).mean(axis, keepdims=True) + value(attrs, "eps", 1e-5))
    return [data / rms * _moved_channel(gamma, data.ndim, axis), rms]


def _group_norm(inputs, attrs):
    data, gamma, beta = inputs
    groups, eps = value(attrs, "num_groups", 1), value(attrs, "eps", 1e-5)
    rows = data.reshape(data.shape[0], groups, int(np.prod(data.shape[1:])) // groups)
    mean, std = rows.mean(-1), np.sqrt(rows.var(-1) + eps)
    normal = ((rows - mean[..., None]) / std[..., None]).reshape(data.shape)
    each = lambda x: _moved_channel(np.repeat(x, data.shape[1] // len(x)), data.ndim, 1)  # noqa: E731
    return [normal * each(gamma) + each(beta), mean, std]


def _instance_norm(inputs, attrs):
    data, gamma, beta = inputs
    axes = tuple(range(2, data.ndim))
    mean, var = data.mean(axes, keepdims=True), data.var(axes, keepdims=True)
    spread = lambda x: _moved_channel(x, data.ndim, 1)  # noqa: E731
    return [(data - mean) / np.sqrt(var + value(attrs, "eps", 1e-3)) * spread(gamma) + spread(beta), None, None]


def _l2_normalization(inputs, attrs):
    (data,) = inputs
    mode = attrs.get("mode", "instance")
    axes = {"instance": tuple(range(1, data.ndim)), "channel": (1,), "spatial": tuple(range(2, data.ndim))}[mode]
    return [data / np.sqrt((data * data).sum(axes, keepdims=True) + value(attrs, "eps", 1e-10)), None]


def _lrn(inputs, attrs):
    (data,) = inputs
    size, alpha, beta, knorm = (
        value(attrs, k, d) for k, d in (("nsize", 5), ("alpha", 1e-4), ("beta", 0.75), ("knorm", 2.0))
    )
    half = size // 2
    padded = np.pad(np.square(data), [(0, 0), (half, half)] + [(0, 0)] * (data.ndim - 2))
    around = sum(padded[:, i : i + data.shape[1]] for i in range(size))
    return [data * (knorm + alpha / size * around) ** -beta, None]


REFERENCES = {
    "softmax": _softmax,
    "log_softmax": lambda inputs, attrs: [np.log(out) for out in _softmax(inputs, attrs)],
    "BatchNorm": _batch_norm(),
    "_batch_norm_apply": _batch_norm_apply,
    "_contrib_SyncBatchNorm": _batch_norm(),
    "_contrib_BatchNormWithReLU": _batch_norm(relu=True),
    "LayerNorm": _layer_norm,
    "_add_layer_norm": _add_layer_norm,
    "_contrib_rms_norm": _rms_norm,
    "GroupNorm": _group_norm,
    "InstanceNorm": _instance_norm,
    "L2Normalization": _l2_normalization,
    "LRN": _lrn,
    "Dropout": lambda inputs, attrs, train=False: [
        inputs[0] if not train and attrs.get("mode") != "always" else None,
        None,
    ],
}
