"""Nets train on gpu(0) with the CPU's numbers: imperative, hybridized, by Module, with loops and branches."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn

DEVICES = (mx.cpu(), mx.gpu(0))
RNG = np.random.default_rng(3)
IMAGES = RNG.random((16, 1, 8, 8)).astype("float32")
LABELS = RNG.integers(0, 10, 16).astype("float32")


def conv_net() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(8, 3, padding=1, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Dense(16), nn.Dropout(0.2)
    )
    net.add(nn.Dense(10))
    return net


def losses(
    make: Callable[[], gluon.Block], ctx: mx.Context, hybridize: dict[str, Any] | None, optimizer: str
) -> np.ndarray:
    mx.random.seed(1)
    np.random.seed(1)
    net = make()
    net.initialize(mx.init.Xavier(), ctx=ctx)
    if hybridize is not None:
        net.hybridize(**hybridize)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05})
    data, label = mx.nd.array(IMAGES, ctx=ctx), mx.nd.array(LABELS, ctx=ctx)
    found = []
    for _ in range(4):
        with autograd.record():
            loss = loss_of(net(data), label)
        loss.backward()
        trainer.step(len(IMAGES))
        assert loss.context == ctx
        found.append(float(loss.mean().asscalar()))
    return np.array(found)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("mode", [None, {}, {"static_alloc": True}], ids=["imperative", "hybridized", "static"])
def test_a_convolutional_net_has_the_losses_of_the_cpu(mode: dict[str, Any] | None, optimizer: str) -> None:
    cpu, gpu = (losses(conv_net, ctx, mode, optimizer) for ctx in DEVICES)
    assert cpu[-1] < cpu[0]
    np.testing.assert_allclose(gpu, cpu, rtol=2e-4)


class LstmByForeach(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.cell = gluon.rnn.LSTMCell(6, input_size=4)
        self.out = nn.Dense(10)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        steps = F.transpose(F.reshape(x, shape=(0, -1, 4)), axes=(1, 0, 2))
        states = [F.zeros_like(F.slice_axis(F.reshape(x, shape=(0, -1)), axis=1, begin=0, end=6))] * 2
        outputs, _ = F.contrib.foreach(self.cell, steps, states)
        return self.out(F.SequenceLast(outputs))


@pytest.mark.parametrize("mode", [None, {}, {"static_alloc": True}], ids=["imperative", "hybridized", "static"])
def test_an_lstm_by_foreach_has_the_losses_of_the_cpu(mode: dict[str, Any] | None) -> None:
    cpu, gpu = (losses(LstmByForeach, ctx, mode, "sgd") for ctx in DEVICES)
    np.testing.assert_allclose(gpu, cpu, rtol=2e-5)


class WhileLoop(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Dense(10)

    def forward(self, x: Any) -> Any:
        flat = x.reshape((0, -1))
        _, (small,) = mx.nd.contrib.while_loop(
            lambda v: v.max() > 0.1, lambda v: (v.mean(), [v * 0.5]), [flat], max_iterations=10
        )
        chosen = mx.nd.contrib.cond(small.sum() > 1, lambda: small * 2, lambda: small - 1)
        return self.out(chosen)


@pytest.mark.parametrize("mode", [None, {}, {"static_alloc": True}], ids=["imperative", "hybridized", "static"])
def test_loops_and_branches_that_read_values_have_the_losses_of_the_cpu(mode: dict[str, Any] | None) -> None:
    cpu, gpu = (losses(WhileLoop, ctx, mode, "sgd") for ctx in DEVICES)
    np.testing.assert_allclose(gpu, cpu, rtol=2e-5)


def test_a_module_trains() -> None:
    data = mx.sym.var("data")
    net = mx.sym.FullyConnected(mx.sym.Flatten(data), num_hidden=10)
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    found = []
    for ctx in DEVICES:
        mx.random.seed(1)
        np.random.seed(1)
        module = mx.mod.Module(net, context=ctx)
        module.fit(mx.io.NDArrayIter(IMAGES, LABELS, 8), num_epoch=2, optimizer_params={"learning_rate": 0.1})
        found.append(module.get_params()[0]["fullyconnected0_weight"].asnumpy())
    np.testing.assert_allclose(found[1], found[0], rtol=2e-5, atol=1e-7)


def test_batches_are_split_over_a_cpu_and_a_gpu() -> None:
    devices = [mx.cpu(), mx.gpu(0)]
    net = nn.Dense(3, in_units=4)
    net.initialize(ctx=devices)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    data = mx.nd.array(RNG.random((8, 4)).astype("float32"))
    with autograd.record():
        parts = [net(part).square().mean() for part in gluon.utils.split_and_load(data, devices)]
    autograd.backward(parts)
    trainer.step(8)
    weights = [net.weight.data(ctx).asnumpy() for ctx in devices]
    np.testing.assert_array_equal(*weights)


def test_parameters_move_between_devices(tmp_path: pathlib.Path) -> None:
    net = nn.Dense(3, in_units=4)
    net.initialize(ctx=mx.gpu(0))
    net.save_parameters(str(tmp_path / "a.params"))
    before = net.weight.data().asnumpy()
    net.collect_params().reset_ctx(mx.cpu())
    np.testing.assert_array_equal(net.weight.data().asnumpy(), before)
    net.collect_params().reset_ctx(mx.gpu(0))
    net.load_parameters(str(tmp_path / "a.params"))
    assert net.weight.data().context == mx.gpu(0)
    np.testing.assert_array_equal(net.weight.data().asnumpy(), before)


def test_an_exported_net_runs_on_a_gpu(tmp_path: pathlib.Path) -> None:
    net = conv_net()
    net.initialize(ctx=mx.gpu(0))
    net.hybridize()
    data = mx.nd.array(IMAGES, ctx=mx.gpu(0))
    expected = net(data).asnumpy()
    symbol, params = net.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(symbol, ["data"], params, ctx=mx.gpu(0))
    np.testing.assert_allclose(loaded(data).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    on_cpu = gluon.SymbolBlock.imports(symbol, ["data"], params)
    np.testing.assert_allclose(on_cpu(mx.nd.array(IMAGES)).asnumpy(), expected, rtol=1e-4, atol=1e-5)
