"""Optimizers against their formulas in NumPy, several weights and steps; multipliers, precision, states, registry."""

from __future__ import annotations

import json
import math

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import lr_scheduler, optimizer

SHAPES = [(3, 4), (5,), (2, 1, 3)]
STEPS = 4


class _Rule:
    """An optimizer in NumPy: step(weight, grad, state, t, lr, wd) returns the weight; state is a dict per weight."""

    def __init__(self, clip=None, **settings):
        self.clip = clip
        self.__dict__.update(settings)

    def cut(self, grad):
        return grad if self.clip is None else np.clip(grad, -self.clip, self.clip)


class Sgd(_Rule):
    momentum = 0.0

    def step(self, w, g, s, t, lr, wd):
        s["mom"] = self.momentum * s.get("mom", 0) - lr * (self.cut(g) + wd * w)
        return w + s["mom"]


class Nag(_Rule):
    momentum = 0.0

    def step(self, w, g, s, t, lr, wd):
        before = s.get("mom", 0) * self.momentum
        s["mom"] = before - lr * (self.cut(g) + wd * w)
        return w - before + (1 + self.momentum) * s["mom"]


class Signum(_Rule):
    momentum, wd_lh = 0.9, 0.0

    def step(self, w, g, s, t, lr, wd):
        if self.momentum == 0:
            return (1 - lr * wd) * w - lr * np.sign(g)
        s["mom"] = self.momentum * s.get("mom", 0) - (1 - self.momentum) * (self.cut(g) + wd * w)
        return (1 - lr * self.wd_lh) * w + lr * np.sign(s["mom"])


class _Moments(_Rule):
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def moments(self, g, s):
        s["m"] = self.beta1 * s.get("m", 0) + (1 - self.beta1) * g
        s["v"] = self.beta2 * s.get("v", 0) + (1 - self.beta2) * g * g
        return s["m"], s["v"]


class Adam(_Moments):
    def step(self, w, g, s, t, lr, wd):
        m, v = self.moments(self.cut(g + wd * w), s)
        lr *= math.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)
        return w - lr * m / (np.sqrt(v) + self.epsilon)


class AdamW(_Moments):
    epsilon, correct_bias = 1e-6, True

    def step(self, w, g, s, t, lr, wd):
        m, v = self.moments(self.cut(g), s)
        rate = lr * math.sqrt(1 - self.beta2**t) / (1 - self.beta1**t) if self.correct_bias else lr
        return w - rate * m / (np.sqrt(v) + self.epsilon) - lr * wd * w


class Adamax(_Moments):
    def step(self, w, g, s, t, lr, wd):
        g = self.cut(g + wd * w)
        s["m"] = self.beta1 * s.get("m", 0) + (1 - self.beta1) * g
        s["u"] = np.maximum(self.beta2 * s.get("u", 0), np.abs(g))
        return w - lr / (1 - self.beta1**t) * s["m"] / s["u"]


class Lamb(_Moments):
    epsilon, bias_correction, upper_bound = 1e-6, True, None

    def step(self, w, g, s, t, lr, wd):
        m, v = self.moments(self.cut(g), s)
        if self.bias_correction:
            m, v = m / (1 - self.beta1**t), v / (1 - self.beta2**t)
        step = m / (np.sqrt(v) + self.epsilon) + wd * w
        norm, other = np.linalg.norm(w), np.linalg.norm(step)
        if self.upper_bound is not None:
            norm = min(norm, self.upper_bound)
        return w - lr * (norm / other if norm and other else 1) * step


class RmsProp(_Rule):
    gamma1, gamma2, epsilon, centered, clip_weights = 0.9, 0.9, 1e-8, False, None

    def step(self, w, g, s, t, lr, wd):
        g = self.cut(g + wd * w)
        s["n"] = self.gamma1 * s.get("n", 0) + (1 - self.gamma1) * g * g
        if self.centered:
            s["g"] = self.gamma1 * s.get("g", 0) + (1 - self.gamma1) * g
            root = np.sqrt(s["n"] - s["g"] ** 2 + self.epsilon)
            s["d"] = self.gamma2 * s.get("d", 0) - lr * g / root
            w = w + s["d"]
        else:
            w = w - lr * g / np.sqrt(s["n"] + self.epsilon)
        return w if self.clip_weights is None else np.clip(w, -self.clip_weights, self.clip_weights)


class AdaGrad(_Rule):
    eps = 1e-7

    def step(self, w, g, s, t, lr, wd):
        g = self.cut(g)
        s["h"] = s.get("h", 0) + g * g
        return w - lr * (g / np.sqrt(s["h"] + self.eps) + wd * w)


class AdaDelta(_Rule):
    rho, epsilon = 0.9, 1e-5

    def step(self, w, g, s, t, lr, wd):
        g = self.cut(g)
        s["g"] = self.rho * s.get("g", 0) + (1 - self.rho) * g * g
        step = np.sqrt(s.get("d", 0) + self.epsilon) / np.sqrt(s["g"] + self.epsilon) * g
        s["d"] = self.rho * s.get("d", 0) + (1 - self.rho) * step * step
        return w - step - wd * w


class Ftrl(_Rule):
    lamda1, beta = 0.01, 1.0

    def step(self, w, g, s, t, lr, wd):
        g = self.cut(g)
        n = s.get("n", 0)
        s["z"] = s.get("z", 0) + g - (np.sqrt(n + g * g) - np.sqrt(n)) * w / lr
        s["n"] = n + g * g
        new = (np.sign(s["z"]) * self.lamda1 - s["z"]) / ((self.beta + np.sqrt(s["n"])) / lr + wd)
        return new * (np.abs(s["z"]) > self.lamda1)


class Ftml(_Rule):
    beta1, beta2, epsilon = 0.6, 0.999, 1e-8

    def step(self, w, g, s, t, lr, wd):
        g = self.cut(g + wd * w)
        s["v"] = self.beta2 * s.get("v", 0) + (1 - self.beta2) * g * g
        d = (1 - self.beta1**t) / lr * (np.sqrt(s["v"] / (1 - self.beta2**t)) + self.epsilon)
        s["z"] = self.beta1 * s.get("z", 0) + (1 - self.beta1) * g - (d - self.beta1 * s.get("d", 0)) * w
        s["d"] = d
        return -s["z"] / d


class Nadam(_Moments):
    schedule_decay, schedule = 0.004, 1.0

    def step(self, w, g, s, t, lr, wd):
        g = self.cut(g + wd * w)
        m, v = self.moments(g, s)
        now, after = (self.beta1 * (1 - 0.5 * 0.96 ** (k * self.schedule_decay)) for k in (t, t + 1))
        self.schedule *= now
        ahead = (1 - now) * g / (1 - self.schedule) + after * m / (1 - self.schedule * after)
        return w - lr * ahead / (np.sqrt(v / (1 - self.beta2**t)) + self.epsilon)


class Dcasgd(_Rule):
    momentum, lamda = 0.0, 0.04

    def step(self, w, g, s, t, lr, wd):
        g = self.cut(g)
        step = -lr * (g + wd * w + self.lamda * g * g * (w - s.get("before", w)))
        s["mom"] = step = self.momentum * s.get("mom", 0) + step
        s["before"] = w
        return w + step


class Lars(_Rule):
    momentum, eta, eps = 0.0, 0.001, 0.0

    def step(self, w, g, s, t, lr, wd):
        # The trust ratio uses the gradient before it is clipped.
        norm, grad = np.linalg.norm(w), np.linalg.norm(g)
        rate = lr * self.eta * norm / (grad + wd * norm + self.eps)
        s["mom"] = self.momentum * s.get("mom", 0) - rate * (self.cut(g) + wd * w)
        return w + s["mom"]


CASES = [
    ("sgd", Sgd, {}),
    ("ccsgd", Sgd, {}),
    ("sgd", Sgd, {"momentum": 0.9}),
    ("nag", Nag, {}),
    ("nag", Nag, {"momentum": 0.9}),
    ("signum", Signum, {"wd_lh": 0.1}),
    ("signum", Signum, {"momentum": 0.0}),
    ("adam", Adam, {}),
    ("adam", Adam, {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3}),
    ("adamw", AdamW, {}),
    ("adamw", AdamW, {"correct_bias": False}),
    ("adamax", Adamax, {}),
    ("nadam", Nadam, {}),
    ("lamb", Lamb, {}),
    ("lamb", Lamb, {"bias_correction": False, "upper_bound": 0.5}),
    ("lars", Lars, {"momentum": 0.9, "eta": 0.1, "eps": 1e-3}),
    ("rmsprop", RmsProp, {}),
    ("rmsprop", RmsProp, {"centered": True, "epsilon": 1e-4}),
    ("rmsprop", RmsProp, {"clip_weights": 0.5}),
    ("adagrad", AdaGrad, {}),
    ("adadelta", AdaDelta, {}),
    ("ftrl", Ftrl, {"lamda1": 0.1}),
    ("ftml", Ftml, {}),
    ("dcasgd", Dcasgd, {"momentum": 0.9}),
]
GENERAL = [{}, {"wd": 0.03}, {"clip_gradient": 0.4, "rescale_grad": 0.7, "wd": 0.03}]


def _run(name, settings, general, dtype, rng, precise=False):
    opt = optimizer.create(name, learning_rate=0.1, multi_precision=precise, **settings, **general)
    updater = optimizer.get_updater(opt)
    weights = [rng.uniform(-1, 1, shape).astype(dtype) for shape in SHAPES]
    arrays = [mx.nd.array(w, dtype=dtype) for w in weights]
    grads = [[rng.uniform(-1, 1, shape).astype(dtype) for shape in SHAPES] for _ in range(STEPS)]
    for step in grads:
        updater(list(range(len(SHAPES))), [mx.nd.array(g, dtype=dtype) for g in step], arrays)
    return weights, grads, [array.asnumpy() for array in arrays]


def _expected(rule, settings, general, weights, grads):
    numpy_rule = rule(clip=general.get("clip_gradient"), **settings)
    states = [{} for _ in weights]
    weights = [w.astype("float64") for w in weights]
    for t, step in enumerate(grads, 1):
        for i, grad in enumerate(step):
            scaled = grad.astype("float64") * general.get("rescale_grad", 1.0)
            weights[i] = numpy_rule.step(weights[i], scaled, states[i], t, 0.1, general.get("wd", 0.0))
    return weights


@pytest.mark.parametrize("general", GENERAL, ids=["plain", "decay", "clipped"])
@pytest.mark.parametrize(
    ("name", "rule", "settings"), CASES, ids=lambda v: str(v) if isinstance(v, (str, dict)) else ""
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_optimizers_follow_their_formula(name, rule, settings, general, dtype, rng):
    weights, grads, got = _run(name, settings, general, dtype, rng)
    # LARS computes norms in float32 for all weights.
    tolerance = 1e-3 if dtype == "float32" else 1e-6 if name == "lars" else 1e-8
    for found, wanted in zip(got, _expected(rule, settings, general, weights, grads), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize(
    ("name", "rule", "settings"),
    [case for case in CASES if case[0] in ("sgd", "nag", "adam", "adamw", "rmsprop", "lamb")],
    ids=lambda v: str(v) if isinstance(v, (str, dict)) else "",
)
def test_multi_precision_keeps_a_float32_copy(name, rule, settings, rng):
    weights, grads, got = _run(name, settings, {"wd": 0.03}, "float16", rng, precise=True)
    for found, wanted in zip(got, _expected(rule, settings, {"wd": 0.03}, weights, grads), strict=True):
        assert found.dtype == np.float16
        # Values round to half precision once, at the end.
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


def test_low_precision_without_a_copy_warns():
    with pytest.warns(UserWarning, match="multi_precision=True"):
        optimizer.get_updater(optimizer.SGD(momentum=0.9))(
            0, mx.nd.ones((2,), dtype="float16"), mx.nd.ones((2,), dtype="float16")
        )


def test_sgld_adds_noise_of_the_right_size(rng):
    size = 20_000
    sgld = optimizer.SGLD(learning_rate=0.04)
    weight, grad = mx.nd.zeros((size,)), mx.nd.ones((size,))
    sgld.update(0, weight, grad, sgld.create_state(0, weight))
    values = weight.asnumpy()
    assert values.mean() == pytest.approx(-0.02, abs=0.01)
    assert values.std() == pytest.approx(0.2, rel=0.05)


def test_group_adagrad_has_one_rate_per_row(rng):
    weight, grad = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    opt = optimizer.contrib.GroupAdaGrad(learning_rate=0.1)
    array = mx.nd.array(weight, dtype="float64")
    state = opt.create_state(0, array)
    history = np.zeros((3, 1))
    for _ in range(3):
        opt.update(0, array, mx.nd.array(grad, dtype="float64"), state)
        history += (grad**2).mean(1, keepdims=True)
        weight = weight - 0.1 * grad / np.sqrt(history + 1e-5)
    np.testing.assert_allclose(array.asnumpy(), weight, rtol=1e-9)
    with pytest.raises(ValueError, match="matrix"):
        opt.create_state(0, mx.nd.ones((3,)))


def test_lbsgd_steps_once_per_large_batch():
    opt = optimizer.LBSGD(learning_rate=0.1, batch_scale=2, warmup_epochs=0)
    weight = mx.nd.zeros((2,))
    state = opt.create_state(0, weight)
    opt.update(0, weight, mx.nd.array([1.0, 2.0]), state)
    assert weight.asnumpy().tolist() == [0, 0]
    opt.update(0, weight, mx.nd.array([3.0, 4.0]), state)
    np.testing.assert_allclose(weight.asnumpy(), [-0.1 * 2 * 2, -0.1 * 2 * 3], rtol=1e-6)


def test_multipliers_by_name_and_default_decay():
    opt = optimizer.SGD(learning_rate=1.0, wd=0.5, param_idx2name={0: "fc_weight", 1: "fc_bias", 2: "fc_gamma"})
    assert opt._get_wds([0, 1, 2]) == [0.5, 0.0, 0.5]
    opt.set_lr_mult({"fc_bias": 2.0, 2: 3.0})
    opt.set_wd_mult({"fc_weight": 0.1})
    assert opt._get_lrs([0, 1, 2]) == [1.0, 2.0, 3.0]
    assert opt._get_wds([0, 1, 2]) == [0.05, 0.0, 0.5]


def test_multipliers_of_variables_are_used():
    data = mx.sym.var("data")
    out = mx.sym.FullyConnected(data, mx.sym.var("fc_weight", lr_mult=0.1, wd_mult=0.2), num_hidden=2, name="fc")
    opt = optimizer.SGD(learning_rate=1.0, wd=1.0, sym=out, param_idx2name={0: "fc_weight"})
    assert opt._get_lr(0) == pytest.approx(0.1)
    assert opt._get_wd(0) == pytest.approx(0.2)


def test_counts_drive_the_scheduler():
    opt = optimizer.SGD(learning_rate=1.0, lr_scheduler=lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0))
    updater = optimizer.get_updater(opt)
    weight = mx.nd.zeros((1,))
    for _ in range(3):
        updater(0, mx.nd.ones((1,)), weight)
    assert opt.num_update == 3
    assert weight.asscalar() == pytest.approx(-(1 + 0.5 + 0.25))


def test_states_survive_bytes(rng):
    def make():
        opt = optimizer.Adam(learning_rate=0.1, lr_scheduler=lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1))
        return optimizer.get_updater(opt)

    first, second = make(), make()
    a = [mx.nd.array(rng.normal(size=shape)) for shape in SHAPES]
    grads = [[mx.nd.array(rng.normal(size=shape)) for shape in SHAPES] for _ in range(4)]
    for step in grads[:2]:
        first([0, 1, 2], step, a)
    b = [array.copy() for array in a]
    second.set_states(first.get_states(dump_optimizer=True))
    for step in grads[2:]:
        first([0, 1, 2], step, a)
        second([0, 1, 2], step, b)
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left.asnumpy(), right.asnumpy())
    assert second.optimizer.num_update == first.optimizer.num_update


@pytest.mark.parametrize("cut", [0, 4, 12, 40, -1])
def test_broken_states_are_refused(cut):
    updater = optimizer.get_updater(optimizer.SGD(momentum=0.9))
    updater(0, mx.nd.ones((3,)), mx.nd.ones((3,)))
    states = updater.get_states(dump_optimizer=True)
    with pytest.raises(ValueError, match="optimizer states"):
        updater.set_states(states[:cut])
    with pytest.raises(ValueError, match="no optimizer states"):
        updater.set_states(b"\x80\x04cposix\nsystem\n")


def test_registry_finds_names_in_any_case_and_lists_them():
    assert isinstance(optimizer.create("AdaGrad"), optimizer.AdaGrad)
    assert isinstance(optimizer.Optimizer.create_optimizer("SGD"), optimizer.SGD)
    with pytest.raises(ValueError, match=r"(?s)Cannot find optimizer adams.*'adam'"):
        optimizer.create("adams")

    @optimizer.register
    class Halving(optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            weight[:] = weight / 2

    weight = mx.nd.ones((2,))
    optimizer.get_updater(optimizer.create("halving"))(0, mx.nd.ones((2,)), weight)
    assert weight.asnumpy().tolist() == [0.5, 0.5]
    with pytest.warns(UserWarning, match="overriding existing optimizer"):
        optimizer.register(type("Halving", (Halving,), {}))


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="param_idx2name"):
        optimizer.SGD(param_idx2name=["a"])
    scheduled = optimizer.SGD(lr_scheduler=lr_scheduler.FactorScheduler(1))
    with pytest.raises(UserWarning, match="LRScheduler"):
        scheduled.set_learning_rate(0.1)


def _saved_states():
    updater = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9))
    updater(0, mx.nd.ones((2,)), mx.nd.ones((2,)))
    return updater, updater.get_states(dump_optimizer=True)


def test_states_with_any_byte_changed_or_missing_are_an_error_or_a_value():
    _, whole = _saved_states()
    broken = [whole[:size] for size in range(len(whole))]
    for place in range(len(whole)):
        for flip in (0x01, 0x20, 0xFF):
            changed = bytearray(whole)
            changed[place] ^= flip
            broken.append(bytes(changed))
    refused = 0
    for states in broken:
        fresh = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.9))
        try:
            fresh.set_states(states)
        except mx.MXNetError:
            refused += 1
    assert refused > len(whole)  # at least every truncation is refused


@pytest.mark.parametrize(
    "header",
    [
        {"states": [[0, {"shape": [1], "dtype": "object"}]]},
        {"states": [[0, {"shape": [-1], "dtype": "float32"}]]},
        {"states": [[[0], {"value": 1}]]},
        {"states": [], "optimizer": {"class": "SGD", "settings": {"_all_index_update_counts": 3}, "scheduler": None}},
        {"states": [], "optimizer": {"class": "SGD", "settings": 3, "scheduler": None}},
    ],
)
def test_states_with_a_wrong_header_leave_the_updater_alone(header):
    updater, whole = _saved_states()
    text = json.dumps(header).encode()
    with pytest.raises(mx.errors.FormatError, match="optimizer states"):
        updater.set_states(whole[:8] + len(text).to_bytes(8, "little") + text + b"\0" * 64)
    assert updater.get_states(dump_optimizer=True) == whole
