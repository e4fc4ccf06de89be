"""HybridNet's networks: training steps and inference; torch_networks.py mirrors them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.contrib import quantization
from hybridnet.gluon import nn, rnn
from hybridnet.gluon.model_zoo import vision
from serve import Step

RNG = np.random.default_rng(0)
VOCABULARY, LENGTH = 30522, 128


def array(*shape: int) -> mx.nd.NDArray:
    return mx.nd.array(RNG.standard_normal(shape, dtype="float32"))


def integers(high: int, *shape: int) -> mx.nd.NDArray:
    return mx.nd.array(RNG.integers(0, high, shape).astype("float32"))


def mlp() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(512, activation="relu"), nn.Dense(512, activation="relu"), nn.Dense(10))
    return net


def lenet() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, 5, activation="tanh"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(50, 5, activation="tanh"),
        nn.MaxPool2D(2, 2),
        nn.Dense(500, activation="tanh"),
        nn.Dense(10),
    )
    return net


class Layer(gluon.HybridBlock):
    """One layer of an encoder, norms after the sums, over x (batch, length, units)."""

    def __init__(self, units: int, heads: int, dropout: float) -> None:
        super().__init__()
        self._heads, self._size = heads, units // heads
        with self.name_scope():
            self.query, self.key, self.value, self.out = (nn.Dense(units, flatten=False) for _ in range(4))
            self.up, self.down = nn.Dense(4 * units, flatten=False), nn.Dense(units, flatten=False)
            self.norm1, self.norm2 = nn.LayerNorm(), nn.LayerNorm()
            self.gelu, self.drop = nn.GELU(), nn.Dropout(dropout)

    def split(self, x: Any) -> Any:
        """(batch, length, units) to (batch heads, length, size)."""
        return x.reshape((0, 0, self._heads, -1)).transpose((0, 2, 1, 3)).reshape((-3, 0, 0))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = F.softmax(F.batch_dot(query, key, transpose_b=True) / self._size**0.5)
        context = F.batch_dot(self.drop(weights), value)
        context = context.reshape((-4, -1, self._heads, 0, 0)).transpose((0, 2, 1, 3)).reshape((0, 0, -3))
        x = self.norm1(x + self.drop(self.out(context)))
        return self.norm2(x + self.drop(self.down(self.gelu(self.up(x)))))


class Bert(gluon.HybridBlock):
    """BERT-base: tokens (batch, LENGTH) to the hidden states of the last layer."""

    def __init__(self, units: int = 768, layers: int = 12, heads: int = 12) -> None:
        super().__init__()
        with self.name_scope():
            self.words, self.places = nn.Embedding(VOCABULARY, units), nn.Embedding(512, units)
            self.norm = nn.LayerNorm()
            self.layers = nn.HybridSequential()
            self.layers.add(*(Layer(units, heads, 0.1) for _ in range(layers)))

    def hybrid_forward(self, F: Any, tokens: Any) -> Any:
        places = F.arange(0, LENGTH).reshape((1, -1))
        return self.layers(self.norm(F.broadcast_add(self.words(tokens), self.places(places))))


def transformer(dropout: float) -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(Layer(256, 4, dropout), Layer(256, 4, dropout), nn.Dense(1000, flatten=False))
    return net


def ready(net: gluon.HybridBlock, hybrid: bool, precision: str = "float32") -> None:
    net.initialize(mx.init.Xavier())
    if hybrid:
        halves = {} if precision == "float32" else {"precision": precision}
        net.hybridize(static_alloc=True, static_shape=True, **halves)


def train(net: gluon.HybridBlock, hybrid: bool, data: mx.nd.NDArray, label: mx.nd.NDArray) -> Step:
    ready(net, hybrid)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    if hybrid:
        loss_of.hybridize()

    def step(repeat: int) -> None:
        for _ in range(repeat):
            with autograd.record():
                loss = loss_of(net(data), label)
            loss.backward()
            trainer.step(data.shape[0])
        mx.nd.waitall()

    return step


def infer(net: gluon.HybridBlock, hybrid: bool, *inputs: mx.nd.NDArray, precision: str = "float32") -> Step:
    ready(net, hybrid, precision)
    return predictions(net, *inputs)


def infer_bytes(net: gluon.HybridBlock, data: mx.nd.NDArray) -> Step:
    """Images: bytes in ranges that are measured here. Words: bytes in ranges that are found anew in each run."""
    net.initialize(mx.init.Xavier())
    if data.ndim == 4:
        batches = gluon.data.DataLoader(gluon.data.ArrayDataset(array(4, *data.shape[1:])), batch_size=1)
        quantized = quantization.quantize_net(net, calib_data=batches, calib_mode="naive")
    else:
        quantized = quantization.quantize_net(net, data_shapes=[data.shape], mode="dynamic")
    quantized.hybridize(static_alloc=True, static_shape=True)
    return predictions(quantized, data)


def predictions(net: gluon.HybridBlock, *inputs: mx.nd.NDArray) -> Step:
    def step(repeat: int) -> None:
        for _ in range(repeat):
            net(*inputs).wait_to_read()

    return step


INFERENCE: dict[str, tuple[Callable[[], gluon.HybridBlock], Callable[[], mx.nd.NDArray]]] = {
    "resnet50_infer_1": (vision.resnet50_v1, lambda: array(1, 3, 224, 224)),
    "resnet50_infer_16": (vision.resnet50_v1, lambda: array(16, 3, 224, 224)),
    "mobilenet_infer_1": (vision.mobilenet1_0, lambda: array(1, 3, 224, 224)),
    "bert_infer": (Bert, lambda: integers(VOCABULARY, 1, LENGTH)),
    "resnet50_bfloat16": (vision.resnet50_v1, lambda: array(1, 3, 224, 224)),
    "mobilenet_bfloat16": (vision.mobilenet1_0, lambda: array(1, 3, 224, 224)),
    "bert_bfloat16": (Bert, lambda: integers(VOCABULARY, 1, LENGTH)),
    "resnet50_int8": (vision.resnet50_v1, lambda: array(1, 3, 224, 224)),
    "mobilenet_int8": (vision.mobilenet1_0, lambda: array(1, 3, 224, 224)),
    "bert_int8": (Bert, lambda: integers(VOCABULARY, 1, LENGTH)),
}
TRAINING: dict[str, Callable[[], tuple[gluon.HybridBlock, mx.nd.NDArray, mx.nd.NDArray]]] = {
    "mlp_train": lambda: (mlp(), array(128, 784), integers(10, 128)),
    "lenet_train": lambda: (lenet(), array(64, 1, 28, 28), integers(10, 64)),
    "resnet18_train": lambda: (vision.resnet18_v1(), array(8, 3, 224, 224), integers(1000, 8)),
    "transformer_train": lambda: (transformer(0.0), array(8, 128, 256), integers(1000, 8, 128)),
    "transformer_dropout_train": lambda: (transformer(0.1), array(8, 128, 256), integers(1000, 8, 128)),
    "bert_train": lambda: (Bert(), integers(VOCABULARY, 8, LENGTH), integers(768, 8, LENGTH)),
    "lstm_train": lambda: (rnn.LSTM(256, num_layers=2, input_size=256), array(35, 32, 256), integers(256, 35, 32)),
}


def train_case(name: str, hybrid: bool) -> Step:
    net, data, label = TRAINING[name]()
    return train(net, hybrid, data, label)


def infer_case(name: str, hybrid: bool) -> Step:
    make, inputs = INFERENCE[name]
    if name.endswith("int8"):
        return infer_bytes(make(), inputs())
    return infer(make(), hybrid, inputs(), precision="bfloat16" if name.endswith("bfloat16") else "float32")


def modes(name: str) -> dict[str, Callable[[], Step]]:
    case = train_case if name in TRAINING else infer_case
    return {f"{name}/imperative": lambda: case(name, False), f"{name}/hybridized": lambda: case(name, True)}


CASES = {key: step for name in (*TRAINING, *INFERENCE) for key, step in modes(name).items()}
