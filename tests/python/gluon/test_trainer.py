"""Trainer: steps, scaling, states, schedules, stale gradients, several contexts; learning on real digits."""

from __future__ import annotations

import gc

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, autograd, gluon, lr_scheduler
from hybridnet.gluon import nn


def _net(ctx=None):
    net = nn.Dense(1, in_units=2, use_bias=False, prefix="fc_")
    net.initialize(mx.init.One(), ctx=ctx)
    return net


def _backward(net, *rows):
    with autograd.record():
        loss = net(mx.nd.array(rows)).sum()
    loss.backward()


def _weight(net):
    return net.weight.data().asnumpy().ravel().tolist()


def test_step_divides_by_the_batch_size():
    net = _net()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    _backward(net, [1, 2], [3, 4])
    trainer.step(2)
    assert _weight(net) == [1 - 0.5 * 4 / 2, 1 - 0.5 * 6 / 2]
    trainer.set_learning_rate(1.0)
    assert trainer.learning_rate == 1.0
    _backward(net, [1, 1])
    trainer.step(1)
    assert _weight(net) == [-1, -1.5]


def test_allreduce_and_update_are_the_two_halves_of_step():
    net = _net()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    _backward(net, [3, 4])
    trainer.allreduce_grads()
    assert gluon.utils.clip_global_norm([net.weight.grad()], 1.0) == pytest.approx(5.0)
    trainer.update(1)
    np.testing.assert_allclose(_weight(net), [1 - 0.6, 1 - 0.8], rtol=1e-5)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_size_must_be_positive(batch_size):
    net = _net()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    _backward(net, [1, 2])
    with pytest.raises(ValueError, match="batch_size must be positive"):
        trainer.step(batch_size)


def test_stale_gradients_are_refused_or_skipped():
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=2), nn.Dense(2, in_units=2))
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    with autograd.record():
        loss = net[0](mx.nd.ones((1, 2))).sum()
    loss.backward()
    with pytest.raises(UserWarning, match=r"dense\d+_bias.*not been updated by backward"):
        trainer.step(1)
    assert (net[0].weight.data().asnumpy() == 1).all()
    trainer.step(1, ignore_stale_grad=True)
    assert (net[0].weight.data().asnumpy() == 0).all()
    assert (net[1].weight.data().asnumpy() == 1).all()
    with pytest.raises(UserWarning):
        trainer.step(1)


def test_frozen_parameters_stay():
    net = _net()
    net.weight.grad_req = "null"
    bias = gluon.Parameter("b", shape=(1,))
    bias.initialize(mx.init.Zero())
    trainer = gluon.Trainer([net.weight, bias], "sgd", {"learning_rate": 1.0})
    with autograd.record():
        loss = net(mx.nd.ones((1, 2))).sum() + bias.data()
    loss.backward()
    trainer.step(1)
    assert _weight(net) == [1, 1]
    assert bias.data().asscalar() == -1


def test_several_contexts_share_the_sum_of_gradients():
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = _net(contexts)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0, "momentum": 0.9})
    for _ in range(2):
        parts = gluon.utils.split_and_load(mx.nd.array([[1, 2], [3, 4]]), contexts)
        with autograd.record():
            losses = [net(part).sum() for part in parts]
        autograd.backward(losses)
        trainer.step(2)
    values = [net.weight.data(ctx).asnumpy().ravel() for ctx in contexts]
    np.testing.assert_allclose(values[0], [1 - 2 - 2 * 1.9, 1 - 3 - 3 * 1.9], rtol=1e-5)
    np.testing.assert_array_equal(values[0], values[1])


def test_states_are_saved_and_loaded(tmp_path, rng):
    file = str(tmp_path / "trainer.states")
    rows = rng.normal(size=(6, 2))

    def make():
        net = _net()
        options = {
            "learning_rate": 0.1,
            "momentum": 0.9,
            "lr_scheduler": lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1),
        }
        return net, gluon.Trainer(net.collect_params(), "sgd", options)

    net, trainer = make()
    for row in rows[:3]:
        _backward(net, row)
        trainer.step(1)
    trainer.save_states(file)
    other, second = make()
    other.weight.set_data(net.weight.data())
    second.load_states(file)
    assert second.learning_rate == trainer.learning_rate
    for row in rows[3:]:
        for each, its in ((net, trainer), (other, second)):
            _backward(each, row)
            its.step(1)
    assert _weight(net) == _weight(other)
    with pytest.raises(OSError, match=r"nowhere\.states"):
        second.load_states(str(tmp_path / "nowhere.states"))
    (tmp_path / "trainer.states").write_bytes(b"nonsense")
    with pytest.raises(mx.errors.FormatError, match="no optimizer states"):
        second.load_states(file)


def test_a_scheduler_sets_the_rate():
    net = _net()
    schedule = lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0, "lr_scheduler": schedule})
    rates = []
    for _ in range(3):
        _backward(net, [0, 0])
        trainer.step(1)
        rates.append(trainer.learning_rate)
    assert rates == [1.0, 0.5, 0.25]
    with pytest.raises(UserWarning, match="LRScheduler"):
        trainer.set_learning_rate(0.1)


def test_deferred_parameters_are_known_at_the_first_step():
    net = nn.Dense(1)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    _backward(net, [1, 2, 3])
    trainer.step(1)
    np.testing.assert_allclose(_weight(net), [0.9] * 3, rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda p: gluon.Trainer(3, "sgd"), "list or dict of Parameters"),
        (lambda p: gluon.Trainer([3], "sgd"), "list of int"),
        (lambda p: gluon.Trainer(p, "sgdd"), "Cannot find optimizer sgdd"),
        (lambda p: gluon.Trainer(p, "sgd", kvstore="other"), "unknown store 'other'"),
        (lambda p: gluon.Trainer(p, mx.optimizer.SGD(), {"learning_rate": 1}), "optimizer_params must be None"),
        (lambda p: gluon.Trainer(p, "sgd", update_on_kvstore=True).update(1), "update_on_kvstore"),
        (lambda p: gluon.Trainer(p, "sgd", update_on_kvstore=True).allreduce_grads(), "update_on_kvstore"),
    ],
)
def test_wrong_arguments_are_named(make, text):
    with pytest.raises(ValueError, match=text):
        make(_net().collect_params())


def test_uninitialized_parameters_are_refused():
    with pytest.raises(RuntimeError, match="not been initialized"):
        gluon.Trainer(nn.Dense(1, in_units=1).collect_params(), "sgd")


def test_a_store_object_sums_the_gradients():
    class Doubling:
        def pushpull(self, key, value, out=None, priority=0):
            for array in out:
                array *= 2

    net = _net()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore=Doubling())
    _backward(net, [1, 2])
    trainer.step(1)
    assert _weight(net) == [-1, -3]


def test_memory_does_not_grow_with_steps():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dense(4))
    net.initialize()
    net.hybridize(static_alloc=True)
    trainer = gluon.Trainer(net.collect_params(), "adam")
    x, y = mx.nd.ones((8, 8)), mx.nd.zeros((8,))
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

    def steps(count):
        for _ in range(count):
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            trainer.step(8)
        mx.nd.waitall()
        gc.collect()
        statistics = _core.memory_statistics(1, 0)
        return statistics["in_use"], statistics["system_allocations"]

    before = steps(50)
    assert steps(500) == before


def _digits():
    load_digits = pytest.importorskip("sklearn.datasets").load_digits
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[:359], order[359:]
    return images[train], labels[train].astype("float32"), images[test], labels[test].astype("float32")


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_small_convolutional_net_learns_digits(hybridize):
    images, labels, test_images, test_labels = _digits()
    mx.random.seed(1)
    np.random.seed(1)
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(16, kernel_size=3, padding=1, activation="relu"),
        nn.Conv2D(32, kernel_size=3, padding=1, activation="relu"),
        nn.MaxPool2D(),
        nn.Dense(64, activation="relu"),
        nn.Dense(10),
    )
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize(static_alloc=True)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(images, labels), 64, shuffle=True)
    for _ in range(12):
        for data, label in loader:
            with autograd.record():
                loss = loss_of(net(data), label)
            loss.backward()
            trainer.step(len(data))
    metric = mx.metric.Accuracy()
    metric.update(mx.nd.array(test_labels), net(mx.nd.array(test_images)))
    assert metric.get()[1] >= 0.97


def test_loops_that_drive_the_steps_of_a_trainer_themselves_work():
    """GluonNLP's trainer for mixed precision and the learning rate finder of MXNet's tutorials do this."""
    net = gluon.nn.Dense(1, in_units=1, use_bias=False)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    if not trainer._kv_initialized:
        trainer._init_kvstore()
    if trainer._params_to_init:
        trainer._init_params()
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, 1)))
    loss.backward()
    trainer._check_and_rescale_grad(trainer._scale / 4)
    trainer._allreduce_grads()
    trainer._update(ignore_stale_grad=False)
    assert net.weight.data().asscalar() == 0.75
