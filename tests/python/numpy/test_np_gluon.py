"""Gluon after npx.set_np(): layers, losses, data, training and files with arrays of mx.np."""

from __future__ import annotations

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import autograd, gluon, np, npx
from hybridnet.gluon import nn, rnn


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


LAYERS = [
    (lambda: nn.Dense(4, activation="relu"), (3, 5), (3, 4)),
    (lambda: nn.Dense(4, flatten=False), (3, 2, 5), (3, 2, 4)),
    (lambda: nn.Conv2D(4, 3, padding=1), (2, 3, 5, 5), (2, 4, 5, 5)),
    (lambda: nn.Conv2DTranspose(4, 2, strides=2), (2, 3, 4, 4), (2, 4, 8, 8)),
    (lambda: nn.MaxPool2D(2), (2, 3, 4, 4), (2, 3, 2, 2)),
    (lambda: nn.GlobalAvgPool2D(), (2, 3, 4, 4), (2, 3, 1, 1)),
    (lambda: nn.BatchNorm(), (4, 3), (4, 3)),
    (lambda: nn.LayerNorm(), (4, 3), (4, 3)),
    (lambda: nn.Dropout(0.5), (4, 3), (4, 3)),
    (lambda: nn.Embedding(7, 3), (4,), (4, 3)),
    (lambda: nn.Flatten(), (2, 3, 4), (2, 12)),
    (lambda: nn.PReLU(), (2, 3), (2, 3)),
    (lambda: nn.Swish(), (2, 3), (2, 3)),
    (lambda: rnn.LSTM(4), (5, 2, 3), (5, 2, 4)),
    (lambda: rnn.GRU(4, num_layers=2), (5, 2, 3), (5, 2, 4)),
    (lambda: nn.HybridLambda(lambda F, x: F.np.exp(x) + F.npx.relu(x)), (2, 3), (2, 3)),
    (lambda: nn.HybridLambda("tanh"), (2, 3), (2, 3)),
    (lambda: nn.Lambda(lambda x: np.exp(x)), (2, 3), (2, 3)),
]


@pytest.mark.parametrize("make, given, expected", LAYERS)
def test_layers_take_and_give_arrays_of_mx_np(make, given, expected, rng):
    x = np.array(rng.integers(0, 7, given) if len(given) == 1 else rng.normal(size=given), dtype="float32")
    net = nn.HybridSequential() if not isinstance(made := make(), nn.Lambda) else nn.Sequential()
    net.add(made)
    net.initialize()
    imperative = net(x)
    net.hybridize()
    compiled = net(x)
    for out in (imperative, compiled):
        assert type(out) is np.ndarray and out.shape == expected
    onp.testing.assert_allclose(compiled.asnumpy(), imperative.asnumpy(), rtol=1e-5, atol=1e-6)


LOSSES = [
    (gluon.loss.L1Loss, (4, 3), "like"),
    (gluon.loss.L2Loss, (4, 3), "like"),
    (gluon.loss.HuberLoss, (4, 3), "like"),
    (gluon.loss.SoftmaxCrossEntropyLoss, (4, 3), "classes"),
    (gluon.loss.SigmoidBinaryCrossEntropyLoss, (4, 3), "like"),
    (gluon.loss.KLDivLoss, (4, 3), "like"),
    (gluon.loss.HingeLoss, (4, 3), "like"),
    (gluon.loss.LogisticLoss, (4, 3), "like"),
]


@pytest.mark.parametrize("loss, shape, kind", LOSSES)
def test_losses_are_those_of_classic_arrays(loss, shape, kind, rng):
    prediction = rng.normal(size=shape)
    label = rng.integers(0, shape[1], shape[0]) if kind == "classes" else rng.uniform(0, 1, shape)
    found = loss()(np.array(prediction), np.array(label))
    npx.reset_np()
    wanted = loss()(mx.nd.array(prediction), mx.nd.array(label))
    assert type(found) is np.ndarray and found.shape == wanted.shape
    onp.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "rmsprop"])
def test_a_training_loop_learns(hybrid, optimizer, rng):
    features = np.array(rng.normal(size=(64, 5)), dtype="float32")
    classes = (features.sum(axis=1) > 0).astype("int32") + (features[:, 0] > 1).astype("int32")
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(features, classes), batch_size=16, shuffle=True)
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dense(3))
    net.initialize(mx.init.Normal(sigma=0.3))
    if hybrid:
        net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.02 if optimizer != "sgd" else 0.3})
    history = []
    for _ in range(12):
        total = 0.0
        for x, y in loader:
            assert type(x) is type(y) is np.ndarray
            with autograd.record():
                cost = loss(net(x), y)
            cost.backward()
            trainer.step(x.shape[0])
            total += float(cost.sum())
        history.append(total / 64)
    assert history[-1] < 0.6 * history[0]
    accuracy = mx.metric.Accuracy()
    accuracy.update([classes], [net(features)])
    assert accuracy.get()[1] > 0.7


def test_a_layer_from_arithmetic_trains_by_hand(rng):
    true_w, true_b = np.array([2, -3.4]), 4.2
    x = np.array(rng.normal(size=(200, 2)), dtype="float32")
    y = np.dot(x, true_w) + true_b
    w, b = np.zeros((2, 1)), np.zeros(1)
    w.attach_grad()
    b.attach_grad()
    for _ in range(60):
        with autograd.record():
            cost = ((np.dot(x, w) + b - y.reshape((-1, 1))) ** 2 / 2).mean()
        cost.backward()
        for param in (w, b):
            param[:] = param - 0.3 * param.grad
    onp.testing.assert_allclose(w.reshape(-1).asnumpy(), true_w.asnumpy(), atol=1e-2)
    assert abs(float(b) - true_b) < 1e-2


def test_parameters_are_saved_and_loaded(tmp_path, rng):
    net = nn.HybridSequential()
    net.add(nn.Dense(4), nn.Dense(2))
    net.initialize()
    x = np.array(rng.normal(size=(3, 5)), dtype="float32")
    wanted = net(x)
    net.save_parameters(str(tmp_path / "net.params"))
    other = nn.HybridSequential()
    other.add(nn.Dense(4), nn.Dense(2))
    other.load_parameters(str(tmp_path / "net.params"))
    assert type(other[0].weight.data()) is np.ndarray
    onp.testing.assert_array_equal(other(x).asnumpy(), wanted.asnumpy())
    net[0].weight.set_data(np.zeros((4, 5)))
    assert not net[0].weight.data().asnumpy().any()
    net[0].bias.set_data(mx.nd.ones((4,)))
    assert net[0].bias.data().tolist() == [1.0] * 4


def test_constants_and_functions_of_gluon_utils(rng):
    class Scaled(nn.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.scale = self.params.get_constant("scale", np.array([2.0, 3.0]))

        def hybrid_forward(self, F, x, scale):
            return x * scale

    net = Scaled()
    net.initialize()
    assert net(np.ones((1, 2))).tolist() == [[2.0, 3.0]]
    net.hybridize()
    assert net(np.ones((1, 2))).tolist() == [[2.0, 3.0]]
    arrays = [np.array([3.0]), np.array([4.0])]
    assert gluon.utils.clip_global_norm(arrays, 1.0) == pytest.approx(5.0)
    assert arrays[0].tolist() == pytest.approx([0.6])
    (part,) = gluon.utils.split_and_load(onp.ones((4, 2)), [mx.cpu()])
    assert type(part) is np.ndarray and part.shape == (4, 2)


def test_worker_processes_give_arrays_of_mx_np():
    dataset = gluon.data.ArrayDataset(onp.arange(8, dtype="float32").reshape(8, 1), onp.arange(8))
    batches = list(gluon.data.DataLoader(dataset, batch_size=4, num_workers=1))
    assert [type(part) for batch in batches for part in batch] == [np.ndarray] * 4
    assert batches[1][0].tolist() == [[4.0], [5.0], [6.0], [7.0]]


def test_vision_models_run(rng):
    net = gluon.model_zoo.vision.mobilenet0_25(classes=5)
    net.initialize()
    x = np.array(rng.normal(size=(1, 3, 32, 32)), dtype="float32")
    imperative = net(x)
    net.hybridize()
    assert type(net(x)) is type(imperative) is np.ndarray
    onp.testing.assert_allclose(net(x).asnumpy(), imperative.asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hybrid", [False, True], ids=["imperative", "hybrid"])
def test_results_have_the_class_that_the_block_gives_them(hybrid):
    class Block(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            classic = x.as_nd_ndarray()
            return classic + classic, F.np.add(x, x)

    net = Block()
    if hybrid:
        net.hybridize()
    first, second = net(np.ones((2, 3)))
    assert type(first) is mx.nd.NDArray and type(second) is np.ndarray
