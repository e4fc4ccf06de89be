"""NumPy references of the operators of src/ops/optimizer: updated weights first, then updated states."""

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


def _sign_sgd(w, g, states, lr, wd, attrs):
    return (1 - lr * wd) * w - lr * np.sign(g), []


def _signum(w, g, states, lr, wd, attrs):
    momentum = value(attrs, "momentum", 0.0)
    mom = momentum * states[0] - (1 - momentum) * (wd * w + _gradient(g, attrs))
    return (1 - lr * value(attrs, "wd_lh", 0.0)) * w + lr * np.sign(mom), [mom]


def _decayed_gradient(w, g, wd, attrs, clip="clip_gradient"):
    return _clip(g * value(attrs, "rescale_grad", 1.0) + wd * w, value(attrs, clip, -1.0))


def _rmsprop(w, g, states, lr, wd, attrs):
    grad, gamma = _decayed_gradient(w, g, wd, attrs), value(attrs, "gamma1", 0.95)
    n = gamma * states[0] + (1 - gamma) * grad**2
    new = w - lr * grad / np.sqrt(n + value(attrs, "epsilon", 1e-8))
    return _clip(new, value(attrs, "clip_weights", -1.0)), [n]


def _rmsprop_centered(w, g, states, lr, wd, attrs):
    grad, gamma = _decayed_gradient(w, g, wd, attrs), value(attrs, "gamma1", 0.95)
    n = gamma * states[0] + (1 - gamma) * grad**2
    mean = gamma * states[1] + (1 - gamma) * grad
    root = np.sqrt(n - mean**2 + value(attrs, "epsilon", 1e-8))
    delta = value(attrs, "gamma2", 0.9) * states[2] - lr * grad / root
    return _clip(w + delta, value(attrs, "clip_weights", -1.0)), [n, mean, delta]


def _ftrl(w, g, states, lr, wd, attrs):
    grad, penalty = _gradient(g, attrs), value(attrs, "lamda1", 0.01)
    n = states[1] + grad**2
    z = states[0] + grad - (np.sqrt(n) - np.sqrt(states[1])) * w / lr
    new = (np.sign(z) * penalty - z) / ((value(attrs, "beta", 1.0) + np.sqrt(n)) / lr + wd)
    return np.where(np.abs(z) > penalty, new, 0), [z, n]


def _ftml(w, g, states, lr, wd, attrs):
    beta1, beta2, t = value(attrs, "beta1", 0.6), value(attrs, "beta2", 0.999), value(attrs, "t")
    grad = _decayed_gradient(w, g, wd, attrs, "clip_grad")
    v = beta2 * states[1] + (1 - beta2) * grad**2
    d = (1 - beta1**t) / lr * (np.sqrt(v / (1 - beta2**t)) + value(attrs, "epsilon", 1e-8))
    z = beta1 * states[2] + (1 - beta1) * grad - (d - beta1 * states[0]) * w
    return -z / d, [d, v, z]


def _adagrad(w, g, states, lr, wd, attrs):
    grad = _gradient(g, attrs)
    history = states[0] + grad**2
    return w - lr * (grad / np.sqrt(history + value(attrs, "epsilon", 1e-7)) + wd * w), [history]


def _group_adagrad(w, g, states, lr, wd, attrs):
    grad = _gradient(g, attrs)
    history = states[0] + (grad**2).reshape(len(w), -1).mean(1, keepdims=True)
    rate = lr / np.sqrt(history + value(attrs, "epsilon", 1e-5))
    return w - rate.reshape(-1, *(1,) * (w.ndim - 1)) * grad, [history]


def _adamw(w, g, states, lr, wd, attrs):
    beta1, beta2, eta = value(attrs, "beta1", 0.9), value(attrs, "beta2", 0.999), value(attrs, "eta")
    grad = _clip(g * value(attrs, "rescale_grad"), value(attrs, "clip_gradient", -1.0))
    mean = beta1 * states[0] + (1 - beta1) * grad
    var = beta2 * states[1] + (1 - beta2) * grad**2
    return w - eta * (lr * mean / (np.sqrt(var) + value(attrs, "epsilon", 1e-8)) + wd * w), [mean, var]


def _rescaled_by_tensor(reference):
    """A reference whose last input is the factor of the gradient."""

    def with_factor(inputs, attrs):
        factor = repr(float(np.asarray(inputs[-1], "float64").ravel()[0]))
        return reference(inputs[:-1], {**attrs, "rescale_grad": factor})

    return with_factor


def _multi_adamw(master):
    stride = 4 + master

    def reference(inputs, attrs):
        columns = []
        for i in range(value(attrs, "num_weights", 1)):
            own = {name: repr(float(tuple_value(attrs, name + "s")[i])) for name in ("lr", "wd", "eta")}
            mine = {**attrs, **own}
            columns.append(_single(_adamw, master)(inputs[i * stride : (i + 1) * stride], mine))
        return [column[k] for k in range(3 + master) for column in columns]

    return _rescaled_by_tensor(reference)


def _lamb_step(master):
    def reference(inputs, attrs):
        weight, grad, mean, var, *copy = [np.asarray(x, "float64") for x in inputs]
        beta1, beta2, t = value(attrs, "beta1", 0.9), value(attrs, "beta2", 0.999), value(attrs, "t")
        grad = _gradient(grad, attrs)
        mean = beta1 * mean + (1 - beta1) * grad
        var = beta2 * var + (1 - beta2) * grad**2
        corrected = value(attrs, "bias_correction", True)
        m, v = (mean / (1 - beta1**t), var / (1 - beta2**t)) if corrected else (mean, var)
        weight = copy[0] if master else weight
        step = m / (np.sqrt(v) + value(attrs, "epsilon", 1e-6)) + value(attrs, "wd") * weight
        return [out.astype(inputs[2].dtype) for out in (step, mean, var)]

    return reference


def _lamb_apply(master):
    def reference(inputs, attrs):
        weight, step, norm, step_norm, *copy = [np.asarray(x, "float64") for x in inputs]
        norm, step_norm = float(norm.ravel()[0]), float(step_norm.ravel()[0])
        low, high = value(attrs, "lower_bound", -1.0), value(attrs, "upper_bound", -1.0)
        norm = max(norm, low) if low >= 0 else norm
        norm = min(norm, high) if high >= 0 else norm
        ratio = norm / step_norm if norm and step_norm else 1.0
        new = (copy[0] if master else weight) - value(attrs, "lr") * ratio * step
        return [new.astype(inputs[0].dtype)] + ([new.astype("float32")] if master else [])

    return reference


def _sum_of_squares(inputs, attrs):
    return [np.array([(np.asarray(x, "float64") ** 2).sum() for x in inputs], "float32")]


def _lars(inputs, attrs):
    lrs, weights, grads, wds = [np.asarray(x, "float64") for x in inputs]
    norm = np.sqrt(weights)
    below = np.sqrt(grads) * value(attrs, "rescale_grad", 1.0) + wds * norm + value(attrs, "eps")
    return [np.where((weights > 0) & (grads > 0), lrs * value(attrs, "eta") * norm / below, lrs).astype("float32")]


def _layer_rates(inputs, attrs):
    weight, grad, rates = [np.asarray(x, "float64") for x in inputs]
    norm, of_grad, (wd, rescale) = np.linalg.norm(weight), np.linalg.norm(grad), rates[0, 1:3]
    if value(attrs, "method", "lars") == "lars":
        below = of_grad * rescale + wd * norm + value(attrs, "eps", 0.0)
        factor = value(attrs, "eta", 0.001) * norm / below if norm > 0 and of_grad > 0 else 1.0
    else:
        factor = np.clip(np.sqrt(norm**2 / (of_grad**2 + wd * norm**2 + 1e-18)), 0.01, 100)
    return [np.concatenate([rates[:, :1] * factor, rates[:, 1:]], axis=1)]


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


def _multi_lamb(master):
    """Adam's step plus decay, scaled by the norm of the weight over the norm of the step."""

    def reference(inputs, attrs):
        stride, columns = 4 + master, []
        beta1, beta2 = value(attrs, "beta1", 0.9), value(attrs, "beta2", 0.999)
        for i in range(value(attrs, "num_tensors", 1)):
            tensors = inputs[i * stride : (i + 1) * stride]
            weight, grad, mean, var = (np.asarray(x, "float64") for x in tensors[:4])
            weight = np.asarray(tensors[-1], "float64") if master else weight
            grad = _gradient(grad, attrs)
            t = tuple_value(attrs, "step_count")[i]
            mean, var = beta1 * mean + (1 - beta1) * grad, beta2 * var + (1 - beta2) * grad**2
            step = mean / (1 - beta1**t) / (np.sqrt(var / (1 - beta2**t)) + value(attrs, "epsilon", 1e-6))
            step = step + tuple_value(attrs, "wds")[i] * weight
            ratio = np.linalg.norm(weight) / np.linalg.norm(step) if weight.any() and step.any() else 1.0
            new = weight - tuple_value(attrs, "learning_rates")[i] * ratio * step
            kinds = [tensors[0].dtype] + [x.dtype for x in tensors[2:]]
            columns.append([x.astype(k) for x, k in zip([new, mean, var] + [new] * master, kinds, strict=True)])
        return [column[k] for k in range(3 + master) for column in columns]

    return reference


REFERENCES = {
    "_multi_lamb_update": _multi_lamb(False),
    "_multi_mp_lamb_update": _multi_lamb(True),
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
    "signsgd_update": _single(_sign_sgd),
    "signum_update": _single(_signum),
    "rmsprop_update": _single(_rmsprop),
    "rmspropalex_update": _single(_rmsprop_centered),
    "ftrl_update": _single(_ftrl),
    "ftml_update": _single(_ftml),
    "_sparse_adagrad_update": _single(_adagrad),
    "_contrib_group_adagrad_update": _single(_group_adagrad),
    "_adamw_update": _rescaled_by_tensor(_single(_adamw)),
    "_mp_adamw_update": _rescaled_by_tensor(_single(_adamw, True)),
    "_multi_adamw_update": _multi_adamw(False),
    "_multi_mp_adamw_update": _multi_adamw(True),
    "lamb_update_phase1": _lamb_step(False),
    "mp_lamb_update_phase1": _lamb_step(True),
    "lamb_update_phase2": _lamb_apply(False),
    "mp_lamb_update_phase2": _lamb_apply(True),
    "multi_sum_sq": _sum_of_squares,
    "multi_lars": _lars,
    "_layer_rates": _layer_rates,
}
