"""Random networks with NaN, infinities and 1e30: hybridized calls have these where imperative calls have them.

    PYTHONPATH=python:tests/python/plan python -m special_networks --count 120 --seed 1

Each network has convolutions, dense layers, pooling, BatchNorm, activations, sums with earlier values, joins, Dropout,
LayerNorm, softmax, an embedding or a recurrent layer, in an order drawn from its seed. Special values stand in one row
each, so that a row without any shows values that spread to wrong rows.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon, nd
from hybridnet.gluon import nn, rnn
from special_values import difference

VALUES = (np.nan, np.inf, -np.inf, 1e30)
ACTIVATIONS = ("relu", "sigmoid", "tanh", "softrelu", "leaky", "elu", "gelu", "relu6", "silu")


class Act(gluon.HybridBlock):
    """Applies one of ACTIVATIONS."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        if self._kind == "relu6":
            return F.clip(x, a_min=0, a_max=6)
        if self._kind == "silu":
            return x * F.sigmoid(x)
        if self._kind in ("leaky", "elu", "gelu"):
            return F.LeakyReLU(x, act_type=self._kind)
        return F.Activation(x, act_type=self._kind)


class Images(gluon.HybridBlock):
    """Image layers that each read one of the last two values, then dense layers; all images have one size."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        channels = int(rng.choice([8, 12, 32]))
        self._steps: list[tuple[str, int, int]] = []
        with self.name_scope():
            self.first = nn.Conv2D(channels, 3, padding=1)
            self.layers = nn.HybridSequential()
            for _ in range(int(rng.integers(3, 8))):
                kind = str(rng.choice(["conv", "conv1", "depthwise", "pool", "norm", "act", "sum", "join", "dropout"]))
                self._steps.append((kind, len(self.layers), int(rng.integers(2))))
                if kind in ("conv", "conv1", "join"):
                    size = 3 if kind == "conv" else 1
                    self.layers.add(nn.Conv2D(channels, size, padding=size // 2, use_bias=bool(rng.integers(2))))
                elif kind == "depthwise":
                    self.layers.add(nn.Conv2D(channels, 3, padding=1, groups=channels, in_channels=channels))
                elif kind == "pool":
                    pools = (nn.MaxPool2D(3, 1, 1), nn.AvgPool2D(3, 1, 1), nn.MaxPool2D((1, 2), 1, (0, 1)))
                    self.layers.add(pools[int(rng.integers(2))])
                elif kind == "norm":
                    self.layers.add(nn.BatchNorm(scale=bool(rng.integers(2))))
                elif kind == "dropout":
                    self.layers.add(nn.Dropout(0.5))
                else:
                    self.layers.add(Act(str(rng.choice(ACTIVATIONS))))
            self.pool = (nn.GlobalMaxPool2D, nn.GlobalAvgPool2D, nn.Flatten)[int(rng.integers(3))]()
            self.last = Rows(rng, None)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        values = [self.first(x)]
        for kind, index, back in self._steps:
            value = values[-1 - min(back, len(values) - 1)]
            if kind == "sum":
                values.append(self.layers[index](value + values[-1]))
            elif kind == "join":
                values.append(self.layers[index](F.concat(value, values[-1], dim=1)))
            else:
                values.append(self.layers[index](value))
        return self.last(F.flatten(self.pool(values[-1])))


class Rows(gluon.HybridBlock):
    """Dense layers with norms, dropout and activations, on rows or (with `units`) on sequences of rows."""

    def __init__(self, rng: np.random.Generator, units: int | None) -> None:
        super().__init__()
        flatten = units is None
        with self.name_scope():
            self.layers = nn.HybridSequential()
            for _ in range(int(rng.integers(1, 4))):
                self.layers.add(nn.Dense(int(rng.choice([5, 16, 64])), flatten=flatten))
                kind = int(rng.integers(4))
                if kind == 0:
                    self.layers.add(nn.LayerNorm())
                elif kind == 1:
                    self.layers.add(nn.Dropout(0.3))
                self.layers.add(Act(str(rng.choice(ACTIVATIONS))))
            self.last = nn.Dense(units or 7, flatten=flatten)
        self._softmax = bool(rng.integers(2))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        x = self.last(self.layers(x))
        return F.softmax(x, axis=-1) if self._softmax else x


class Words(gluon.HybridBlock):
    """An embedding added to the data, then a recurrent layer or dense ones; time is the second axis."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        with self.name_scope():
            self.embedding = nn.Embedding(5, 6)
            kind = int(rng.integers(5))
            layers = (rnn.LSTM, rnn.GRU, lambda size, **k: rnn.RNN(size, activation="relu", **k))
            self.middle = layers[kind](8, layout="NTC", input_size=6) if kind < 3 else Rows(rng, 8)
            self.last = Rows(rng, None)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        ids = F.BlockGrad(F.zeros_like(F.slice_axis(x, axis=2, begin=0, end=1)).reshape(shape=(0, 0)))
        return self.last(self.middle(x + self.embedding(ids)))


def network(seed: int) -> tuple[gluon.HybridBlock, np.ndarray]:
    """Returns the initialized network of a seed, and data for it without special values."""
    rng = np.random.default_rng(seed)
    mx.random.seed(seed)
    rows = len(VALUES) + 1
    if rng.integers(4):
        net: gluon.HybridBlock = Images(rng)
        x = rng.standard_normal((rows, 3, *map(int, rng.integers(8, 15, size=2))))
    elif rng.integers(2):
        net, x = Rows(rng, None), rng.standard_normal((rows, 40))
    else:
        net, x = Words(rng), rng.standard_normal((rows, 4, 6))
    net.initialize(mx.init.Xavier())
    net(nd.array(x))
    for name, parameter in net.collect_params().items():
        if name.endswith(("bias", "beta", "running_mean")):
            parameter.set_data(nd.array(rng.standard_normal(parameter.shape) * 0.3))
    return net, x.astype("float32")


def differences_of_network(seed: int) -> list[str]:
    """Describes how hybridized predictions and recorded calls of a seed's network differ from imperative ones."""
    net, x = network(seed)
    rng = np.random.default_rng(seed + 1)
    for row, value in enumerate(VALUES):
        x[row].reshape(-1)[rng.integers(x[row].size)] = value
    data = nd.array(x)
    results = []
    for active in (False, True):
        net.hybridize(active=active)
        found = [net(data).asnumpy(), net(data).asnumpy()]
        with autograd.record(train_mode=False):
            y = net(data)
        y.backward()
        results.append([*found, y.asnumpy()])
    names = ("prediction", "second prediction", "recorded")
    return [
        f"network {seed}, {name}: {text}"
        for name, expected, given in zip(names, *results, strict=True)
        if (text := difference(given, expected))
    ]


def main() -> int:
    """Compares networks; returns 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.seed, options.seed + options.count):
        found = differences_of_network(seed)
        wrong += bool(found)
        for text in found:
            print(text, flush=True)
    print(f"{options.count} networks, {wrong} differ ({mx.runtime.isa()})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
