"""Programs that use the common interface pass mypy: the package has types (py.typed)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hybridnet as mx
import pytest

# Calls of blocks return Any: their results depend on the arguments. Errors in the package itself are tools/dev lint's.
FLAGS = ["--strict", "--no-warn-return-any", "--follow-imports=silent"]
PROGRAM = """
from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon, nd
from hybridnet.gluon import nn
from hybridnet.gluon.contrib.estimator import EarlyStoppingHandler, Estimator, ProgressBarHandler
from hybridnet.gluon.data.vision import transforms


class Residual(gluon.HybridBlock):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(nn.Conv2D(channels, kernel_size=3, padding=1), nn.BatchNorm(), nn.Activation("relu"))

    def forward(self, x: nd.NDArray) -> nd.NDArray:
        return nd.relu(x + self.body(x))


class Scaled(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.scale = gluon.Parameter("scale", shape=(1,), init="ones")

    def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
        return F.broadcast_mul(x, scale)


class Squares(gluon.data.Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, idx: int) -> tuple[np.ndarray, float]:
        return np.full((1, 8, 8), idx, dtype="float32"), float(idx % 3)


def train(net: gluon.HybridBlock, epochs: int) -> float:
    loader = gluon.data.DataLoader(Squares(), batch_size=16, shuffle=True)
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3})
    metric = mx.metric.Accuracy()
    total = 0.0
    for _ in range(epochs):
        metric.reset()
        for data, label in loader:
            with autograd.record():
                out = net(data)
                loss = loss_fn(out, label)
            loss.backward()
            trainer.step(data.shape[0])
            metric.update(label, out)
            total += float(loss.mean().asscalar())
    name, value = metric.get()
    print(name, value)
    return total


net = nn.HybridSequential()
net.add(Residual(1), Scaled(), nn.Flatten(), nn.Dropout(0.5), nn.Dense(3))
net.initialize(mx.init.Xavier(), ctx=mx.cpu())
net.hybridize()
train(net, 2)
net.save_parameters("net.params")
net.load_parameters("net.params", ctx=mx.cpu())
net.export("net")
print(sum(int(np.prod(parameter.shape)) for parameter in net.collect_params().values()))
print({name: values.shape for name, values in nd.load("net-0000.params").items()})

a = nd.array([[1.0, 2.0], [3.0, 4.0]])
b = nd.zeros((2, 2)) + a * 2 - nd.dot(a, a)
c: np.ndarray = b.asnumpy()
b[0] = 1
a.attach_grad()
print(a.shape, b.T, b.sum(axis=1), nd.concat(a, b, dim=0), a > 1, c.mean(), a[0, 1].asscalar())
x = mx.np.arange(6).reshape(2, 3)
print(mx.np.sum(x), x.mean())

estimator = Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), train_metrics=mx.metric.Accuracy())
stopping = EarlyStoppingHandler(estimator.train_metrics[0], patience=2)
batches = gluon.data.DataLoader(gluon.data.ArrayDataset(c, [0, 1]), 2)
history = estimator.fit(batches, batches, epochs=3, event_handlers=[stopping, ProgressBarHandler()])
print(history["training accuracy"][-1], estimator.evaluate(batches), estimator.predict(a))
images = gluon.data.SimpleDataset([c]).transform_first(transforms.Compose([transforms.ToTensor()]))
pad = gluon.data.batchify.Tuple(gluon.data.batchify.Pad(val=0), gluon.data.batchify.Stack())
step = mx.jit.train_step(net, gluon.loss.L2Loss(), gluon.Trainer(net.collect_params(), "sgd"))
step(a, b)
mx.random.seed(1)
mx.viz.plot_history(history)
print(len(images), pad, gluon.rnn.LSTM(4))
"""


@pytest.mark.slow
def test_a_program_with_the_common_interface_passes_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="checks types")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    package = Path(mx.__file__).parent
    assert (package / "py.typed").exists()
    command = [sys.executable, "-m", "mypy", "--config-file=", *FLAGS, "program.py"]
    found = subprocess.run(
        command, cwd=tmp_path, env=dict(os.environ, MYPYPATH=str(package.parent)),
        capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr
