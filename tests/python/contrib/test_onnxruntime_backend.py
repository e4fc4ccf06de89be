"""Parts of graphs that ONNX Runtime runs give the results of the library."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import rewrite as rw
from hybridnet.contrib.backends import onnxruntime as backend

needs_onnxruntime = pytest.mark.skipif(
    not all(importlib.util.find_spec(package) for package in ("onnx", "onnxruntime")),
    reason="onnx or onnxruntime is not installed; tools/dev setup --all installs them",
)


@pytest.fixture
def registered() -> Iterator[None]:
    backend.register(1)
    yield
    rw.unregister("onnxruntime")


class Block(mx.gluon.HybridBlock):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, *inputs):
        return self.function(F, *inputs)


def parts_of(net: Any) -> int:
    return sum("_subgraph" in line for line in net.plan_text().splitlines())


def compare(net: Any, *arrays: np.ndarray, rtol: float = 1e-4) -> None:
    """Checks that the whole network runs as one part and gives the results of the library."""
    inputs = [mx.nd.array(array) for array in arrays]
    net.hybridize(False)
    wanted = net(*inputs)
    net.optimize_for(*inputs, backend="onnxruntime")
    got = net(*inputs)
    wanted, got = ([value] if isinstance(value, mx.nd.NDArray) else value for value in (wanted, got))
    for one, other in zip(wanted, got, strict=True):
        assert other.shape == one.shape
        np.testing.assert_allclose(other.asnumpy(), one.asnumpy(), rtol=rtol, atol=1e-5)
    assert parts_of(net) == 1, net.plan_text()


OPERATORS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "arithmetic": (lambda F, x, y: (x + y) * (x - y) / (F.abs(y) + 1.5) - 2 * x + 3 - (1 - x) / 4, [(3, 4), (3, 4)]),
    "gates": (
        lambda F, x: x * F.sigmoid(x) + 0.5 * x * (1 + F.tanh(0.7978845608028654 * (x + 0.044715 * x**3))),
        [(3, 4)],
    ),
    "root mean square": (lambda F, x: x / F.sqrt(F.mean(F.square(x), axis=-1, keepdims=True) + 1e-3), [(3, 4)]),
    "attention": (
        lambda F, q, k, v, m: F.batch_dot(F.softmax(F.broadcast_add(F.batch_dot(q, k, transpose_b=True) / 4, m)), v),
        [(2, 64, 8), (2, 70, 8), (2, 70, 8), (1, 64, 70)],
    ),
    "numbers first": (lambda F, x: 2 / (F.abs(x) + 1) + 2**x, [(3, 4)]),
    "broadcast": (
        lambda F, x, y: F.broadcast_maximum(F.broadcast_add(x, y), F.broadcast_mul(x, y)),
        [(3, 4), (1, 4)],
    ),
    "functions": (
        lambda F, x: F.exp(x) + F.tanh(x) * F.sigmoid(x) + F.sqrt(F.abs(x)) + F.log(F.abs(x) + 2) + F.erf(x),
        [(3, 4)],
    ),
    "roots": (lambda F, x: 1 / F.sqrt(F.abs(x) + 0.5), [(3, 4)]),
    "activations": (
        lambda F, x: sum(
            F.Activation(x, act_type=kind) for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign")
        ),
        [(3, 4)],
    ),
    "gelu": (lambda F, x: F.LeakyReLU(x, act_type="gelu") + 0.5 * x * (1 + F.erf(x / 2**0.5)), [(3, 4)]),
    "leaky": (
        lambda F, x: F.LeakyReLU(x, act_type="leaky", slope=0.2) + F.LeakyReLU(x, act_type="elu", slope=0.3),
        [(3, 4)],
    ),
    "clip": (lambda F, x: F.clip(x, -0.5, 0.7), [(3, 4)]),
    "softmax": (lambda F, x: F.softmax(x, axis=1) + F.log_softmax(x, axis=-1), [(2, 3, 4)]),
    "concat": (lambda F, x, y: F.concat(x, y, dim=1), [(2, 3, 4), (2, 1, 4)]),
    "views": (lambda F, x: F.transpose(F.reshape(x, (0, -1)), axes=(1, 0)).expand_dims(0), [(2, 3, 4)]),
    "products": (lambda F, x, y: F.dot(x, y, transpose_b=True), [(3, 4), (5, 4)]),
    "batch products": (lambda F, x, y: F.batch_dot(x, y, transpose_a=True), [(2, 4, 3), (2, 4, 5)]),
    "sums": (
        lambda F, x: F.broadcast_add(F.sum(x, axis=1, keepdims=True), F.mean(x, axis=(1, 2), keepdims=True)),
        [(2, 3, 4)],
    ),
    "extremes": (lambda F, x: F.max(x, axis=0) - F.min(x, axis=0), [(2, 3)]),
    "everything": (lambda F, x: F.sum(x, axis=1, exclude=True) + F.mean(x), [(2, 3, 4)]),
}


@needs_onnxruntime
@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name) -> None:
    function, shapes = OPERATORS[name]
    rng = np.random.default_rng(0)
    compare(Block(function), *(rng.normal(size=shape).astype("float32") for shape in shapes))


def layers() -> dict[str, Any]:
    nn = mx.gluon.nn
    return {
        "convolution": nn.Conv2D(6, (3, 2), strides=(2, 1), padding=(1, 0), dilation=(1, 2), activation="relu"),
        "groups": nn.Conv2D(4, 3, groups=2, use_bias=False),
        "one dimension": nn.Conv1D(4, 3, padding=1),
        "max pooling": nn.MaxPool2D(3, 2, 1),
        "average pooling": nn.AvgPool2D(3, 2, 1, count_include_pad=False),
        "padded average": nn.AvgPool2D(3, 2, 1),
        "global pooling": nn.GlobalAvgPool2D(),
        "batch norm": nn.BatchNorm(),
        "batch norm of ones": nn.BatchNorm(scale=False),
        "layer norm": nn.LayerNorm(),
        "dense": nn.Dense(5, activation="tanh"),
        "dense of rows": nn.Dense(5, flatten=False),
    }


@needs_onnxruntime
@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", list(layers()))
def test_layers(name) -> None:
    layer = layers()[name]
    shape = (2, 4, 9) if name == "one dimension" else (2, 4, 9, 8)
    layer.initialize(mx.init.Normal(0.3))
    compare(layer, np.random.default_rng(1).normal(size=shape).astype("float32"))


@needs_onnxruntime
@pytest.mark.usefixtures("registered")
def test_a_network_is_one_part_for_each_size() -> None:
    net = mx.gluon.model_zoo.vision.get_model("resnet18_v1", classes=10)
    net.initialize(mx.init.Xavier())
    for size in (32, 64):
        compare(net, np.random.default_rng(2).normal(size=(1, 3, size, size)).astype("float32"), rtol=1e-3)


@needs_onnxruntime
@pytest.mark.usefixtures("registered")
def test_bodies_of_loops_and_training() -> None:
    def function(F, data, w):
        def step(row, state):
            state = F.tanh(F.dot(state, w) + row)
            return state, state

        return F.contrib.foreach(step, data, F.zeros((2, 3)))[0]

    net = Block(function)
    rng = np.random.default_rng(3)
    x, w = (mx.nd.array(rng.normal(size=shape)) for shape in ((4, 2, 3), (3, 3)))
    gradients = []
    for backend_name in (None, "onnxruntime"):
        net.hybridize(backend=backend_name)
        w.attach_grad()
        with mx.autograd.record():
            net(x, w).sum().backward()
        gradients.append(w.grad.asnumpy())
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-4)
    assert "in the body" in net.pass_report()


@needs_onnxruntime
@pytest.mark.usefixtures("registered")
def test_loops_and_other_dtypes_stay_with_the_library() -> None:
    # A QR decomposition is a loop in ONNX, and sessions compute float32 only.
    net = Block(lambda F, x: F.tanh(F.linalg.gelqf(F.sigmoid(x))[0]) + F.cast(F.cast(x, "float64") * 2, "float32"))
    x = mx.nd.array(np.random.default_rng(4).normal(size=(3, 4)))
    wanted = net(x).asnumpy()
    net.optimize_for(x, backend="onnxruntime")
    np.testing.assert_allclose(net(x).asnumpy(), wanted, rtol=1e-5)
    assert parts_of(net) == 2


def test_without_the_package_the_error_names_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"package 'onnx'.*\n?.*pip install onnx onnxruntime"):
        backend.register()
    assert "onnxruntime" not in rw.backends()
