"""HybridNet's loops and branches; torch_control_flow.py mirrors them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.contrib import cond, foreach, while_loop
from serve import Step

RNG = np.random.default_rng(0)
HIDDEN, BATCH, LENGTH = 256, 32, 35


class Function(gluon.HybridBlock):
    """A hybridized function that uses some blocks."""

    def __init__(self, function: Callable[..., Any], *children: gluon.Block) -> None:
        super().__init__()
        self.function = function
        for i, child in enumerate(children):
            setattr(self, f"child{i}", child)
        self.initialize()
        self.hybridize(static_alloc=True)

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class Cell(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.of_input = gluon.nn.Dense(4 * HIDDEN, in_units=HIDDEN)
        self.of_state = gluon.nn.Dense(4 * HIDDEN, in_units=HIDDEN)

    def hybrid_forward(self, F: Any, x: Any, h: Any, c: Any) -> Any:
        i, f, g, o = F.split(self.of_input(x) + self.of_state(h), num_outputs=4, axis=1)
        c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
        return F.sigmoid(o) * F.tanh(c), c


def lstm() -> tuple[Function, list[Any]]:
    cells = [Cell(), Cell()]

    def run(data: Any, *states: Any) -> Any:
        def body(x: Any, s: Any) -> Any:
            h0, c0 = cells[0](x, s[0], s[1])
            h1, c1 = cells[1](h0, s[2], s[3])
            return h1, [h0, c0, h1, c1]

        return foreach(body, data, list(states))[0]

    data = mx.nd.array(RNG.standard_normal((LENGTH, BATCH, HIDDEN), dtype="float32"))
    return Function(run, *cells), [data, *(mx.nd.zeros((BATCH, HIDDEN)) for _ in range(4))]


def lstm_foreach() -> Step:
    net, args = lstm()

    def step(repeat: int) -> None:
        for _ in range(repeat):
            net(*args)
        mx.nd.waitall()

    return step


def lstm_foreach_train() -> Step:
    net, args = lstm()

    def step(repeat: int) -> None:
        for _ in range(repeat):
            with autograd.record():
                loss = net(*args).sum()
            loss.backward()
        mx.nd.waitall()

    return step


def while_1000() -> Step:
    def run(i: Any, x: Any) -> Any:
        return while_loop(lambda i, x: i < 1000, lambda i, x: (i + 1, x * 0.999), (i, x), 1000, has_outputs=False)

    net, args = Function(run), [mx.nd.zeros((1,)), mx.nd.ones((8,))]

    def step(repeat: int) -> None:
        for _ in range(repeat):
            net(*args)
        mx.nd.waitall()

    return step


def cond_call() -> Step:
    net, x = Function(lambda x: cond(x.sum() > 0, lambda: x * 2, lambda: x * 3)), mx.nd.ones((8,))

    def step(repeat: int) -> None:
        for _ in range(repeat):
            net(x)
        mx.nd.waitall()

    return step


CASES = {
    "lstm_foreach": lstm_foreach,
    "lstm_foreach_train": lstm_foreach_train,
    "while_1000": while_1000,
    "cond_call": cond_call,
}
