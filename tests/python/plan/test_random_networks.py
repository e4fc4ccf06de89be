"""Random networks of image operators: all passes, no passes and imperative calls give the same values and gradients."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn


class RandomNetwork(gluon.HybridBlock):
    """A random graph with several outputs; each step reads earlier values."""

    def __init__(self, seed: int, steps: int = 14, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._seed = seed
        self._steps = steps
        rng = np.random.default_rng(seed)
        with self.name_scope():
            self.layers = nn.HybridSequential()
            for i in range(steps):
                kind = rng.integers(5)
                if kind == 0:
                    self.layers.add(nn.Conv2D(8, 3, padding=1, use_bias=bool(rng.integers(2))))
                elif kind == 1:
                    self.layers.add(nn.Conv2D(8, 1, activation="relu" if rng.integers(2) else None))
                elif kind == 2:
                    self.layers.add(nn.BatchNorm(scale=bool(rng.integers(2))))
                elif kind == 3:
                    wide = nn.HybridSequential()
                    wide.add(nn.Conv2D(32, 3, padding=1), nn.BatchNorm(), nn.Conv2D(32, 3, padding=1), nn.Conv2D(8, 1))
                    self.layers.add(wide)
                else:
                    self.layers.add(nn.MaxPool2D(3, 1, 1) if i % 2 else nn.AvgPool2D(3, 1, 1))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        rng = np.random.default_rng(self._seed + 1000)
        values = [F.tile(x, reps=(1, 4, 1, 1))]
        for layer in self.layers:
            values.append(self._step(F, rng, values, layer))
        means = F.mean(values[-1], axis=(2, 3))
        return F.tanh(values[-1]), means, F.relu(values[len(values) // 2]), F.sum(values[-2], axis=1)

    def _step(self, F: Any, rng: np.random.Generator, values: list[Any], layer: Any) -> Any:
        """Adds a random step; all values have 8 channels and one size."""

        def pick() -> Any:
            return values[max(0, len(values) - 1 - int(rng.integers(4)))]

        kind = rng.integers(12)
        if kind < 5:
            return layer(pick())
        if kind == 5:
            return F.relu(pick() + pick())
        if kind == 6:
            both = F.concat(pick(), pick(), dim=1)
            return F.slice_axis(both, axis=1, begin=3, end=11)
        if kind == 7:
            return F.broadcast_mul(pick(), F.sigmoid(F.mean(pick(), axis=(2, 3), keepdims=True)))
        if kind == 8:
            return F.tanh(pick()) * 0.5 + pick()
        if kind == 9:
            first, second = F.split(pick(), num_outputs=2, axis=1)
            return F.concat(second, F.maximum(first, second), dim=1)
        if kind == 10:
            return F.transpose(pick(), axes=(0, 1, 3, 2))
        return F.broadcast_add(pick(), F.reshape(F.mean(pick(), axis=0), shape=(1, 8, 9, 9)))


def build(seed: int, x: mx.nd.NDArray) -> RandomNetwork:
    net = RandomNetwork(seed)
    net.initialize(mx.init.Xavier())
    with autograd.train_mode():
        net(x)  # infers shapes; below, every network of one seed gets the same values
    rng = np.random.default_rng(seed)
    for key, param in net.collect_params().items():
        if param._data is None:
            continue
        values = rng.standard_normal(param.shape, dtype="float32") * 0.3
        param.set_data(mx.nd.array(np.abs(values) + 0.5 if key.endswith(("running_var", "gamma")) else values))
    return net


def run(net: RandomNetwork, x: mx.nd.NDArray, train: bool) -> list[np.ndarray]:
    x = x.copy()
    x.attach_grad()
    with autograd.record(train_mode=train):
        outputs = net(x)
        loss = sum((y * y).mean() for y in outputs)
    loss.backward()
    grads = [p.grad().asnumpy() for p in net.collect_params().values() if p._data is not None and p.grad_req != "null"]
    return [y.asnumpy() for y in outputs] + [x.grad.asnumpy()] + grads


@pytest.mark.parametrize("seed", range(24))
def test_same_values_and_gradients(seed: int) -> None:
    x = mx.nd.array(np.random.default_rng(seed).standard_normal((2, 2, 9, 9), dtype="float32"))
    plain = build(seed, x)
    predicted = [y.asnumpy() for y in plain(x)]
    expected = {train: run(plain, x, train) for train in (True, False)}
    for passes in ("fast_run", "none", "fast_run,-winograd,-fuse_elementwise"):
        net = build(seed, x)
        net.hybridize(static_alloc=True, passes=passes)
        compare([y.asnumpy() for y in net(x)], predicted)
        for train in (True, False):
            compare(run(net, x, train), expected[train])


def compare(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    scale = max(1.0, *(float(np.abs(e).max(initial=0.0)) for e in expected))
    assert np.isfinite(scale)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-3, atol=3e-5 * scale)
