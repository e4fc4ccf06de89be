"""Networks that exercise the compiler, with the shapes of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import gluon
from hybridnet.gluon import nn


class Residual(gluon.HybridBlock):
    """Computes relu(body(x) + x), with the sum in either order."""

    def __init__(self, channels: int, flipped: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._flipped = flipped
        with self.name_scope():
            self.body = nn.HybridSequential()
            self.body.add(nn.Conv2D(channels, 3, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
            self.body.add(nn.Conv2D(channels, 3, padding=1), nn.BatchNorm(scale=False))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        y = self.body(x)
        return F.relu(x + y if self._flipped else y + x)


class Branches(gluon.HybridBlock):
    """Concatenates two convolutions of one input and multiplies by a pooled value."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.left = nn.Conv2D(6, 3, padding=1, activation="relu")
            self.right = nn.Conv2D(10, 1, activation="tanh")
            self.gate = nn.Dense(16, activation="sigmoid")
            self.last = nn.Conv2D(4, 3, strides=2)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        both = F.concat(self.left(x), self.right(x), dim=1)
        gate = self.gate(F.mean(both, axis=(2, 3)))
        both = F.broadcast_mul(both, F.reshape(gate, shape=(0, 0, 1, 1)))
        return self.last(both)


class Dense(gluon.HybridBlock):
    """Layers that read all previous layers; outputs are parts of the result and means over space."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.layers = nn.HybridSequential()
            for _ in range(3):
                self.layers.add(nn.Conv2D(4, 3, padding=1, activation="relu"))
            self.last = nn.Conv2D(6, 1)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        for layer in self.layers:
            x = F.concat(x, layer(x), dim=1)
        first, second, third = F.split(F.slice_axis(x, axis=1, begin=1, end=13), num_outputs=3, axis=1)
        y = F.slice_axis(F.concat(first + second, third, second, dim=-3), axis=3, begin=1, end=None)
        y = F.broadcast_add(y, F.sum(y, axis=(2, 3), keepdims=True) * 0.01)
        return F.mean(self.last(y), axis=(-1, -2))


def sequential(*layers: gluon.HybridBlock) -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(*layers)
    return net


NETWORKS: dict[str, tuple[Callable[[], gluon.HybridBlock], Sequence[int]]] = {
    "mlp": (lambda: sequential(nn.Dense(32, activation="relu"), nn.Dense(16, activation="tanh"), nn.Dense(4)), (5, 12)),
    "dense_norm": (lambda: sequential(nn.Dense(16), nn.BatchNorm(), nn.Activation("sigmoid"), nn.Dense(3)), (6, 9)),
    "lenet": (
        lambda: sequential(
            nn.Conv2D(6, 5, activation="tanh"),
            nn.MaxPool2D(2, 2),
            nn.Conv2D(8, 3, activation="relu"),
            nn.AvgPool2D(2, 2),
            nn.Flatten(),
            nn.Dense(10),
        ),
        (2, 1, 20, 20),
    ),
    "norm_chain": (
        lambda: sequential(
            nn.Conv2D(16, 3, padding=1, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(8, 1),
            nn.BatchNorm(center=False, scale=False, epsilon=1e-3),
            nn.Activation("relu"),
            nn.GlobalAvgPool2D(),
            nn.Dense(5),
        ),
        (3, 4, 9, 7),
    ),
    "residual": (lambda: sequential(nn.Conv2D(8, 3, padding=1), Residual(8), Residual(8, flipped=True)), (2, 3, 8, 8)),
    "branches": (lambda: Branches(), (2, 3, 11, 10)),
    "dense": (lambda: Dense(), (2, 3, 9, 8)),
    "grouped": (
        lambda: sequential(
            nn.Conv2D(8, 3, groups=4, padding=1, strides=2),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(8, 3, dilation=2, padding=2),
            nn.Activation("softrelu"),
        ),
        (2, 4, 12, 12),
    ),
    "wide": (
        lambda: sequential(
            nn.Conv2D(32, 3, padding=1), Residual(32), nn.Conv2D(48, 3, activation="relu"), nn.Conv2D(4, 3)
        ),
        (2, 3, 18, 17),
    ),
    "line": (lambda: sequential(nn.Conv1D(8, 3), nn.BatchNorm(), nn.Conv1D(4, 3), nn.Activation("relu")), (2, 3, 15)),
    "volume": (lambda: sequential(nn.Conv3D(4, 3), nn.BatchNorm(), nn.Conv3D(2, 1), nn.MaxPool3D(2)), (1, 2, 6, 7, 8)),
}


def make(name: str, seed: int) -> tuple[gluon.HybridBlock, mx.nd.NDArray]:
    """Returns a network with fixed parameters and nondefault BatchNorm statistics, and an input for it."""
    build, shape = NETWORKS[name]
    rng = np.random.default_rng(seed)
    net = build()
    net.initialize()
    x = mx.nd.array(rng.standard_normal(shape, dtype="float32"))
    net(x)
    for key, param in net.collect_params().items():  # in the order of the network, not of the numbered names
        values = rng.standard_normal(param.shape, dtype="float32") * 0.3
        if key.endswith(("running_var", "gamma")):
            values = np.abs(values) + 0.5
        param.set_data(mx.nd.array(values))
    return net, x


def values_of(net: gluon.HybridBlock) -> list[np.ndarray]:
    """The parameters and states in the order of the network."""
    return [param.data().asnumpy() for param in net.collect_params().values()]


def gradients_of(net: gluon.HybridBlock) -> list[np.ndarray]:
    """The gradients of the trained parameters in the order of the network."""
    return [param.grad().asnumpy() for param in net.collect_params().values() if param.grad_req != "null"]
