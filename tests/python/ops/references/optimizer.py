"""What the operators of src/ops/optimizer compute, in NumPy: updated weights first, then updated states."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _clip(grad, bound):
    return grad if bound < 0 else np.clip(grad, -bound, bound)


def _gradient(grad, attrs):
    return _clip(value(attrs, "rescale_grad", 1.0) * grad, value(attrs, "clip_gradient", -1.0))


def _sgd(w, g, states, lr, wd, attrs):
    return (1 - lr * wd) * w - lr * _gradient(g, attrs), []


def _sgd_momentum(w, g, states, lr, wd, attrs):
    mom = value(attrs, "momentum", 0.0) * states[0] - lr * wd * w - lr * _gradient(g, attrs)
    return w + mom, [mom]


def _nag(w, g, states, lr, wd, attrs):
    momentum = value(attrs, "momentum", 0.0)
    before = momentum * states[0]
    mom = before - lr * (_gradient(g, attrs) + wd * w)
    return w - before + (momentum + 1) * mom, [mom]


def _adam(w, g, states, lr, wd, attrs):
    beta1, beta2 = value(attrs, "beta1", 0.9), value(attrs, "beta2", 0.999)
    grad = _clip(g * value(attrs, "rescale_grad", 1.0) + wd * w, value(attrs, "clip_gradient", -1.0))
    mean = beta1 * states[0] + (1 - beta1) * grad
    var = beta2 * states[1] + (1 - beta2) * grad**2
    return w - lr * mean / (np.sqrt(var) + value(attrs, "epsilon", 1e-8)), [mean, var]


def _single(rule, master=False):
    def reference(inputs, attrs):
        weight, grad, *states = [np.asarray(x, "float64") for x in inputs]
        if master:
            weight = states.pop()
        new, states = rule(weight, grad, states, value(attrs, "lr"), value(attrs, "wd", 0.0), attrs)
        outputs = [new, *states] + ([new] if master else [])
        kinds = [inputs[0].dtype] + [x.dtype for x in inputs[2:]]
        return [o.astype(k) for o, k in zip(outputs, kinds)]

    return reference


def _multi(rule, states, master=False, preloaded=False):
    stride = 2 + states + master

    def reference(inputs, attrs):
        count = value(attrs, "num_weights", 1)
        lrs, wds = inputs[-2:] if preloaded else (tuple_value(attrs, "lrs"), tuple_value(attrs, "wds"))
        columns: list[list[np.ndarray]] = []
        for i in range(count):
            mine = {**attrs, "lr": repr(float(lrs[i])), "wd": repr(float(wds[i]))}
            columns.append(_single(rule, master)(inputs[i * stride : (i + 1) * stride], mine))
        return [column[k] for k in range(1 + states + master) for column in columns]

    return reference


REFERENCES = {
    "sgd_update": _single(_sgd),
    "mp_sgd_update": _single(_sgd, True),
    "multi_sgd_update": _multi(_sgd, 0),
    "multi_mp_sgd_update": _multi(_sgd, 0, True),
    "preloaded_multi_sgd_update": _multi(_sgd, 0, False, True),
    "preloaded_multi_mp_sgd_update": _multi(_sgd, 0, True, True),
    "sgd_mom_update": _single(_sgd_momentum),
    "mp_sgd_mom_update": _single(_sgd_momentum, True),
    "multi_sgd_mom_update": _multi(_sgd_momentum, 1),
    "multi_mp_sgd_mom_update": _multi(_sgd_momentum, 1, True),
    "preloaded_multi_sgd_mom_update": _multi(_sgd_momentum, 1, False, True),
    "preloaded_multi_mp_sgd_mom_update": _multi(_sgd_momentum, 1, True, True),
    "nag_mom_update": _single(_nag),
    "mp_nag_mom_update": _single(_nag, True),
    "_multi_nag_mom_update": _multi(_nag, 1),
    "_multi_mp_nag_mom_update": _multi(_nag, 1, True),
    "adam_update": _single(_adam),
    "_mp_adam_update": _single(_adam, True),
    "_multi_adam_update": _multi(_adam, 2),
    "_multi_mp_adam_update": _multi(_adam, 2, True),
}
