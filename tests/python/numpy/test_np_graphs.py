"""Blocks and Symbols with NumPy's interface: hybridized, exported, loaded, and the switches that Gluon reads."""

from __future__ import annotations

import json

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import gluon, np, npx
from hybridnet.gluon import nn


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


class Functional(nn.HybridBlock):
    """A block whose forward calls mx.np."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4)

    def forward(self, x):
        y = self.dense(x)
        return np.exp(y * 0.5) + np.mean(y, axis=1, keepdims=True) * 2, npx.relu(y).sum()


class Classic(Functional):
    """The computation of Functional in hybrid_forward, with F."""

    def forward(self, *args):
        return nn.HybridBlock.forward(self, *args)

    def hybrid_forward(self, F, x):
        y = self.dense(x)
        return F.np.exp(y * 0.5) + F.np.mean(y, axis=1, keepdims=True) * 2, F.npx.relu(y).sum()


def trained(net, x):
    x.attach_grad()
    with mx.autograd.record():
        first, second = net(x)
        loss = first.sum() + second
    loss.backward()
    return [first, second, x.grad.copy(), net.dense.weight.grad().copy()]


@pytest.mark.parametrize("kind", [Functional, Classic])
def test_a_block_gives_the_same_numbers_in_every_mode(kind, tmp_path, rng):
    net = kind()
    net.initialize()
    x = np.array(rng.normal(size=(3, 5)), dtype="float32")
    wanted = trained(net, x)
    net.hybridize()
    for got, want in zip(trained(net, x), wanted, strict=True):
        assert type(got) is np.ndarray and got.shape == want.shape
        onp.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-6, atol=1e-6)
    net.export(str(tmp_path / "net"))
    ops = [node["op"] for node in json.loads((tmp_path / "net-symbol.json").read_text())["nodes"]]
    assert {"_npi_exp", "_npi_mean", "_npi_multiply_scalar", "_npi_add", "_np_sum"} <= set(ops)
    loaded = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    for got, want in zip(loaded(x), wanted, strict=False):
        assert type(got) is np.ndarray
        onp.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-6, atol=1e-6)


def test_new_batch_sizes_need_no_new_trace(rng):
    net = Functional()
    net.initialize()
    net.hybridize()
    for size in (3, 7, 2, 7, 1):
        values = rng.normal(size=(size, 5)).astype("float32")
        imperative = trained(net, np.array(values))[0]
        assert imperative.shape == (size, 4)


def test_parameters_are_arrays_of_mx_np_and_train(rng):
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dense(1))
    net.initialize()
    net.hybridize()
    x = np.array(rng.normal(size=(16, 3)), dtype="float32")
    y = x.sum(axis=1, keepdims=True)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    losses = []
    for _ in range(30):
        with mx.autograd.record():
            loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        trainer.step(1)
        losses.append(float(loss))
    assert losses[-1] < 0.3 * losses[0]
    assert type(net[0].weight.data()) is type(net[0].weight.grad()) is np.ndarray


def test_symbols_compose_with_numpys_rules():
    x = mx.sym.var("x").as_np_ndarray()
    y = mx.sym.np.exp(x) + 1 > mx.sym.np.zeros((3,))
    assert type(y) is type(x) and y.list_arguments() == ["x"]
    assert y.infer_shape(x=(2, 3))[1] == [(2, 3)]
    assert y.infer_type(x="float64")[1] == [onp.bool_]
    again = mx.sym.load_json(y.tojson())
    assert again.tojson() == y.tojson()
    executor = again.bind(mx.cpu(), {"x": mx.nd.zeros((2, 3))})
    assert executor.forward()[0].asnumpy().all()
    assert type(y.as_nd_ndarray()) is mx.sym.Symbol


def test_loops_hold_operators_of_mx_np(rng):
    class Sums(nn.HybridBlock):
        def forward(self, data):
            total, _ = mx.nd.contrib.foreach(
                lambda row, state: (np.tanh(row) + state, row + state), data, np.zeros((4,))
            )
            return total

    values = rng.normal(size=(5, 4)).astype("float32")
    net = Sums()
    imperative = net(np.array(values))
    net.hybridize()
    compiled = net(np.array(values))
    assert type(imperative) is type(compiled) is np.ndarray
    onp.testing.assert_allclose(compiled.asnumpy(), imperative.asnumpy(), rtol=1e-6)


def test_the_switches_switch():
    assert npx.is_np_array() and npx.is_np_shape() and mx.is_np_array()
    npx.reset_np()
    assert not npx.is_np_array() and not npx.is_np_shape()
    npx.set_np(array=False)
    assert not npx.is_np_array() and npx.is_np_shape()
    npx.reset_np()
    with npx.np_array(True), npx.np_shape(True):
        assert npx.is_np_array() and npx.is_np_shape()
    assert not npx.is_np_array() and not npx.is_np_shape()

    @npx.use_np
    def inside():
        return npx.is_np_array() and npx.is_np_shape()

    assert inside() and not npx.is_np_array()
    with pytest.raises(ValueError, match="shape=True"):
        npx.set_np(shape=False, array=True)


@npx.use_np
class Summed(gluon.HybridBlock):
    """A decorated class that inherits everything but its forward pass."""

    def __init__(self):
        super().__init__()
        self.weight = self.params.get("weight", shape=(2, 2), init="ones")

    def hybrid_forward(self, F, x, weight):
        return F.np.sum(F.np.dot(x, weight) + F.np.ones(()))

    @staticmethod
    def is_numpy():
        return npx.is_np_array() and npx.is_np_shape()

    @classmethod
    def is_numpy_too(cls):
        return cls is Summed and npx.is_np_array()


class Halved(Summed):
    """A class that inherits from a decorated class."""

    def hybrid_forward(self, F, x, weight):
        return super().hybrid_forward(F, x, weight) / 2


@pytest.mark.parametrize(("kind", "total"), [(Summed, 12.0), (Halved, 6.0)])
@pytest.mark.parametrize("hybridize", [False, True])
def test_a_decorated_class_is_within_the_scope_in_inherited_methods_too(kind, total, hybridize):
    npx.reset_np()
    net = kind()
    net.initialize()
    if hybridize:
        net.hybridize()
    out = net(np.ones((2, 2)))
    assert type(out) is np.ndarray and out.shape == () and out.item() == total
    assert type(net.weight.data()) is np.ndarray
    assert type(net.forward(np.ones((2, 2)))) is np.ndarray
    assert Summed.is_numpy() and net.is_numpy() and Summed.is_numpy_too()
    assert not npx.is_np_array() and not npx.is_np_shape()


def test_outputs_have_the_interface_that_the_code_gives_them_without_the_switch_too():
    class Mixed(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x.as_nd_ndarray() + x.as_nd_ndarray(), F.np.multiply(x, x), x * 2

    npx.reset_np()
    net = Mixed()
    wanted = [mx.nd.NDArray, np.ndarray, np.ndarray]
    assert [type(out) for out in net(np.ones((2, 3)))] == wanted
    net.hybridize()
    assert [type(out) for out in net(np.ones((2, 3)))] == wanted
