"""HybridNet's programs, in the style of its users; torch_side.py mirrors them case by case."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import hybridnet as mx
import hybridnet_control_flow as control_flow
import hybridnet_networks as networks
import numpy as np
from hybridnet import autograd, gluon
from hybridnet_networks import RNG, array, infer
from serve import Step, serve


def called(run: Callable[..., Any], *inputs: mx.nd.NDArray) -> Step:
    """Returns a step of calls without waits between them, like in a script."""

    def step(repeat: int) -> None:
        for _ in range(repeat):
            out = run(*inputs)
        out.wait_to_read()

    return step


def record_backward() -> Step:
    x, w = array(4, 4), array(4, 4)
    x.attach_grad()

    def step(repeat: int) -> None:
        for _ in range(repeat):
            with autograd.record():
                y = mx.nd.tanh(x * w + w)
                z = mx.nd.relu(y) * x
            z.backward()
        x.grad.wait_to_read()

    return step


class Expression(gluon.HybridBlock):
    def hybrid_forward(self, F, x, a, b):
        return F.tanh(a * x + b) * F.sigmoid(x) + x


class Linear(gluon.HybridBlock):
    def hybrid_forward(self, F, x, y, z, a, b):
        return a * x + b * y + z


def on_16m(block: gluon.HybridBlock, count: int) -> Step:
    return infer(block, True, *(array(1 << 24) for _ in range(count)))


def adam_300() -> Step:
    params = gluon.ParameterDict()
    for number in range(150):
        params.get(f"weight{number}", shape=(64, 64))
        params.get(f"bias{number}", shape=(64,), init="zeros")
    params.initialize()
    trainer = gluon.Trainer(params, "adam", {"learning_rate": 1e-3})

    def step(repeat: int) -> float:
        spent = 0.0
        for _ in range(repeat):
            with autograd.record():
                total = mx.nd.add_n(*(param.data().sum() for param in params.values()))
            total.backward()
            mx.nd.waitall()
            start = time.perf_counter()
            trainer.step(1)
            mx.nd.waitall()
            spent += time.perf_counter() - start
        return spent

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


CASES = {
    "add_scalar/imperative": lambda: called(lambda x: x + 1, array(4, 4)),
    "multiply_add/imperative": lambda: called(lambda a, b, c: a * b + c, *(array(4, 4) for _ in range(3))),
    "dot_32/imperative": lambda: called(mx.nd.dot, array(32, 32), array(32, 32)),
    "record_backward/imperative": record_backward,
    "expression_16m/hybridized": lambda: on_16m(Expression(), 3),
    "linear_16m/hybridized": lambda: on_16m(Linear(), 5),
    "adam_300/imperative": adam_300,
    "loader_0/imperative": lambda: loader(0),
    "loader_2/imperative": lambda: loader(2),
    **networks.CASES,
    **control_flow.CASES,
}

if __name__ == "__main__":
    serve(mx.__version__, CASES)
