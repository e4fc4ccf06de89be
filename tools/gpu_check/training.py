"""Digits trained on the CPU and on the GPU: imperative, hybridized, with a foreach, with a while_loop."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.gluon import nn, rnn

from .outcome import Options, Outcome

__all__ = ["check_training"]

BATCH = 64
LEAST_ACCURACY = 0.9
LOSS_TOLERANCE = 1e-3  # for the first steps: later ones grow apart by rounding


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Scikit-learn's scanned digits, (N, 1, 8, 8) in [0, 1], and labels; without it, drawn ones."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        return drawn_digits(1792)
    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype("float32").reshape(-1, 1, 8, 8), labels.astype("float32")


def drawn_digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten patterns with noise, in the form of the digits."""
    rng = np.random.default_rng(0)
    patterns, labels = rng.random((10, 1, 8, 8)), rng.integers(0, 10, count)
    noise = rng.normal(0, 0.3, (count, 1, 8, 8))
    return (patterns[labels] + noise).astype("float32"), labels.astype("float32")


def conv_net() -> gluon.HybridBlock:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Dense(64, "relu"))
    net.add(nn.Dropout(0.1), nn.Dense(10))
    return net


class RowsByForeach(gluon.HybridBlock):
    """An LSTM cell over the rows of the image."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = rnn.LSTMCell(32, input_size=8), nn.Dense(10)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        rows = F.transpose(F.reshape(x, shape=(0, 8, 8)), axes=(1, 0, 2))
        zeros = F.zeros_like(F.slice_axis(F.tile(F.reshape(x, shape=(0, -1)), reps=(1, 1)), axis=1, begin=0, end=32))
        outputs, _ = F.contrib.foreach(self.cell, rows, [zeros, zeros])
        return self.out(F.SequenceLast(outputs))


class ScaledByWhile(gluon.HybridBlock):
    """Halves the image until its values are small: the number of iterations depends on them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(nn.Dense(64, "tanh"), nn.Dense(10))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        _, last = F.contrib.while_loop(
            lambda v: F.max(v) > 0.3, lambda v: ([], [v * 0.5]), [F.reshape(x, shape=(0, -1))], max_iterations=8
        )
        return self.body(F.broadcast_mul(last[0], F.ones((1, 1)) * 4))


# name: the net, and the arguments of hybridize(); None: imperative.
MODES: dict[str, tuple[Callable[[], gluon.HybridBlock], dict[str, Any] | None]] = {
    "imperative": (conv_net, None),
    "hybridized": (conv_net, {}),
    "static": (conv_net, {"static_alloc": True, "static_shape": True}),
    "foreach": (RowsByForeach, {"static_alloc": True}),
    "while_loop": (ScaledByWhile, {"static_alloc": True}),
}
SMALL_MODES = ("hybridized", "foreach", "while_loop")  # on the stand-in, whose kernels take long to compile


def train(name: str, ctx: mx.Context, data: tuple[np.ndarray, np.ndarray], epochs: int) -> dict[str, Any]:
    """Trains a mode; returns the first losses, the accuracy on the data, and a hash of all parameters."""
    make, hybridize = MODES[name]
    mx.random.seed(1)
    np.random.seed(1)
    net = make()
    with ctx:
        net.initialize(mx.init.Xavier(), ctx=ctx)
        if hybridize is not None:
            net.hybridize(**hybridize)
        losses = _epochs(net, ctx, data, epochs)
        found = net(mx.nd.array(data[0], ctx=ctx)).asnumpy().argmax(1)
    hashed = hashlib.sha256()
    for parameter in net.collect_params().values():
        hashed.update(parameter.data(ctx).asnumpy().tobytes())
    return {"losses": losses, "accuracy": float((found == data[1]).mean()), "hash": hashed.hexdigest()[:16]}


def _epochs(net: gluon.Block, ctx: mx.Context, data: tuple[np.ndarray, np.ndarray], epochs: int) -> list[float]:
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    losses: list[float] = []
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(data[0]))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[first : first + BATCH]
            images, labels = (mx.nd.array(part[batch], ctx=ctx) for part in data)
            with autograd.record():
                loss = loss_of(net(images), labels)
            loss.backward()
            trainer.step(BATCH)
            if len(losses) < 5:
                losses.append(float(loss.mean().asscalar()))
    return losses


def check_training(options: Options) -> Outcome:
    """Each mode has the CPU's first losses, learns, and has the same bits in two runs."""
    outcome = Outcome()
    data = drawn_digits(2 * BATCH) if options.stand_in else digits()
    epochs = options.size(6, 1)
    for name in SMALL_MODES if options.stand_in else MODES:
        on_cpu = train(name, mx.cpu(), data, 1)
        first, second = (train(name, mx.gpu(0), data, epochs) for _ in range(2))
        close = np.allclose(first["losses"], on_cpu["losses"], rtol=LOSS_TOLERANCE)
        outcome.expect(close, f"{name}: losses {first['losses']}, on the CPU {on_cpu['losses']}")
        outcome.expect(first["hash"] == second["hash"], f"{name}: two runs have different bits")
        if not options.stand_in:
            accuracy = first["accuracy"]
            outcome.expect(accuracy >= LEAST_ACCURACY, f"{name}: accuracy {accuracy:.3f} after {epochs} epochs")
        outcome.rows[name] = {"gpu": first, "cpu": on_cpu}
    reached = [f"{name} {row['gpu']['accuracy']:.2f}" for name, row in outcome.rows.items()]
    outcome.line = f"two runs alike, losses of the CPU; accuracy: {', '.join(reached)}"
    return outcome
