"""HybridNet's half of the benchmarks; torch_side.py mirrors it case by case."""

from __future__ import annotations

import hybridnet as mx
import hybridnet_control_flow as control_flow
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.gluon import nn
from serve import Step, serve

RNG = np.random.default_rng(0)


def array(*shape: int) -> mx.nd.NDArray:
    return mx.nd.array(RNG.standard_normal(shape, dtype="float32"))


def labels(count: int, classes: int) -> mx.nd.NDArray:
    return mx.nd.array(RNG.integers(0, classes, count).astype("float32"))


def add_4x4() -> Step:
    a, b = array(4, 4), array(4, 4)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            a + b
        mx.nd.waitall()

    return step


def record_backward_5() -> Step:
    x, w = array(4, 4), array(4, 4)
    x.attach_grad()

    def step(repeat: int) -> None:
        for _ in range(repeat):
            with autograd.record():
                y = mx.nd.tanh(x * w + w)
                z = mx.nd.relu(y) * x
            z.backward()
        mx.nd.waitall()

    return step


def train_step(net: gluon.Block, data: mx.nd.NDArray, label: mx.nd.NDArray) -> Step:
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    loss_of.hybridize()

    def step(repeat: int) -> None:
        for _ in range(repeat):
            with autograd.record():
                loss = loss_of(net(data), label)
            loss.backward()
            trainer.step(data.shape[0])
        mx.nd.waitall()

    return step


def mlp() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(512, activation="relu"), nn.Dense(512, activation="relu"), nn.Dense(10))
    return net


def mlp_imperative() -> Step:
    return train_step(mlp(), array(128, 784), labels(128, 10))


def mlp_hybrid() -> Step:
    net = mlp()
    net.hybridize(static_alloc=True, static_shape=True)
    return train_step(net, array(128, 784), labels(128, 10))


def lenet_hybrid() -> Step:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, 5, activation="tanh"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(50, 5, activation="tanh"),
        nn.MaxPool2D(2, 2),
        nn.Dense(500, activation="tanh"),
        nn.Dense(10),
    )
    net.hybridize(static_alloc=True, static_shape=True)
    return train_step(net, array(64, 1, 28, 28), labels(64, 10))


def resnet18_train() -> Step:
    net = gluon.model_zoo.vision.resnet18_v1()
    net.hybridize(static_alloc=True, static_shape=True)
    return train_step(net, array(8, 3, 224, 224), labels(8, 1000))


def resnet50_infer(batch: int) -> Step:
    net = gluon.model_zoo.vision.resnet50_v1()
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    data = array(batch, 3, 224, 224)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            net(data).wait_to_read()

    return step


class Expression(gluon.HybridBlock):
    def hybrid_forward(self, F, x, a, b):
        return F.tanh(a * x + b) * F.sigmoid(x) + x


class Linear(gluon.HybridBlock):
    def hybrid_forward(self, F, x, y, z, a, b):
        return a * x + b * y + z


def elementwise(block: gluon.HybridBlock, count: int) -> Step:
    block.hybridize(static_alloc=True, static_shape=True)
    arrays = [array(1 << 24) for _ in range(count)]

    def step(repeat: int) -> None:
        for _ in range(repeat):
            block(*arrays).wait_to_read()

    return step


def loader(workers: int) -> Step:
    data = RNG.standard_normal((1024, 3, 64, 64), dtype="float32")
    dataset = gluon.data.ArrayDataset(data, np.arange(1024, dtype="float32"))
    batches = gluon.data.DataLoader(dataset, batch_size=32, num_workers=workers)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            for x, _ in batches:
                x.wait_to_read()

    return step


if __name__ == "__main__":
    serve(
        mx.__version__,
        {
            "add_4x4": add_4x4,
            "record_backward_5": record_backward_5,
            "mlp_imperative": mlp_imperative,
            "mlp_hybrid": mlp_hybrid,
            "lenet_hybrid": lenet_hybrid,
            "resnet18_train": resnet18_train,
            "resnet50_infer_1": lambda: resnet50_infer(1),
            "resnet50_infer_16": lambda: resnet50_infer(16),
            "expression_16m": lambda: elementwise(Expression(), 3),
            "linear_16m": lambda: elementwise(Linear(), 5),
            "loader_0": lambda: loader(0),
            "loader_2": lambda: loader(2),
            **control_flow.CASES,
        },
    )
