"""The library's table of optimizers: the Python classes have its settings and defaults."""

from __future__ import annotations

import inspect

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, optimizer

NAMES = _core.optimizer_names()


def klass_of(name: str) -> type:
    return optimizer.Optimizer.opt_registry[name.lower()]


def test_every_optimizer_of_the_library_is_in_the_table() -> None:
    classes = (k for k in optimizer.Optimizer.opt_registry.values() if k.__module__.startswith("hybridnet."))
    registered = {k.__name__ for k in classes if not k.__name__.startswith("_")}  # the others delegate to these
    assert registered == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_classes_have_the_settings_and_defaults_of_the_table(name: str) -> None:
    klass = klass_of(name)
    rule = _core.UpdateRule(name.upper())
    made, own = klass(), inspect.signature(klass.__init__).parameters
    general = inspect.signature(optimizer.Optimizer.__init__).parameters
    for setting, (attribute, default) in rule.defaults.items():
        assert setting in own or setting in general or klass.__mro__[1].__name__ == "SGD", setting
        given = getattr(made, attribute)
        assert given == default and isinstance(given, bool) == isinstance(default, bool), setting
    settings = {key for key in own if key not in ("self", "kwargs")}
    assert settings <= set(rule.defaults), "a setting of the class is not in the table"
    assert rule.doc and rule.columns


@pytest.mark.parametrize("name", NAMES)
def test_settings_may_change_between_steps(name: str) -> None:
    """Setting an attribute later equals passing the setting to the constructor, if no state depends on it."""
    rule = _core.UpdateRule(name)
    (changed, value) = ("clip_gradient", 0.125)
    results = []
    for late in (False, True):
        mx.random.seed(4)
        opt = klass_of(name)(learning_rate=0.25, **({} if late else {changed: value}))
        if late:
            setattr(opt, rule.defaults[changed][0], value)
        weight = mx.nd.array([[1.0, -2.0], [0.5, 3.0]])
        optimizer.get_updater(opt)(0, mx.nd.array([[0.5, -0.1], [0.0, 2.0]]), weight)
        results.append(weight.asnumpy())
    np.testing.assert_array_equal(*results)


def test_a_subclass_may_override_methods() -> None:
    class Double(optimizer.Adam):
        def update(self, index, weight, grad, state):
            for i, w, g, s in zip(index, weight, grad, state, strict=True):
                super().update(i, w, g * 2, s)

    class Slower(optimizer.RMSProp):
        def _get_lr(self, index):
            return super()._get_lr(index) / 2

    weights = {}
    for opt, scale in ((Double(learning_rate=0.5), 1), (optimizer.Adam(learning_rate=0.5), 2)):
        weights[scale] = mx.nd.ones((3,))
        optimizer.get_updater(opt)([0], [mx.nd.array([1.0, 2.0, 3.0]) * scale], [weights[scale]])
    np.testing.assert_array_equal(weights[1].asnumpy(), weights[2].asnumpy())
    a, b = mx.nd.ones((3,)), mx.nd.ones((3,))
    optimizer.get_updater(Slower(learning_rate=0.5))(0, mx.nd.ones((3,)), a)
    optimizer.get_updater(optimizer.RMSProp(learning_rate=0.25))(0, mx.nd.ones((3,)), b)
    np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_lbsgd_keeps_the_sum_of_gradients_in_its_state() -> None:
    """A file written in the middle of a large batch must contain the sum."""

    def made():
        return optimizer.get_updater(optimizer.LBSGD(learning_rate=0.1, momentum=0.9, batch_scale=3, warmup_epochs=0))

    rng = np.random.default_rng(7)
    grads = [mx.nd.array(rng.normal(size=(4,))) for _ in range(7)]
    whole, first, second = made(), made(), made()
    a, b = mx.nd.ones((4,)), mx.nd.ones((4,))
    for grad in grads:
        whole(0, grad, a)
    for grad in grads[:4]:
        first(0, grad, b)
    second.set_states(first.get_states(dump_optimizer=True))
    for grad in grads[4:]:
        second(0, grad, b)
    np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_wrong_states_and_settings_are_named() -> None:
    opt = optimizer.Adam()
    weight = mx.nd.ones((2,))
    with pytest.raises(TypeError, match=r"(?s)Adam.*state.*tuple of 2.*create_state"):
        opt.update(0, weight, weight, weight)
    opt.beta1 = "much"
    with pytest.raises(ValueError, match=r"(?s)Adam.*beta1.*much"):
        opt.update(0, weight, weight, opt.create_state_multi_precision(0, weight))
    late = optimizer.SGD()
    state = late.create_state(0, weight)
    late.momentum = 0.9
    with pytest.raises(ValueError, match=r"(?s)momentum was 0 when the state was made"):
        late.update(0, weight, weight, state)
