"""HybridNet's recurrent layers, loops and branches; torch_control_flow.py and jax_side.py mirror them."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
from hybridnet import autograd, gluon
from hybridnet.gluon import rnn
from hybridnet_networks import array, ready
from serve import Step

HIDDEN, BATCH, LENGTH = 256, 32, 35


class Loop(gluon.HybridBlock):
    """Two cells, one on top of the other, over data (T, N, HIDDEN)."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.cells = rnn.HybridSequentialRNNCell()
            self.cells.add(rnn.LSTMCell(HIDDEN, input_size=HIDDEN))
            self.cells.add(rnn.LSTMCell(HIDDEN, input_size=HIDDEN))

    def hybrid_forward(self, F: Any, data: Any, *states: Any) -> Any:
        return F.contrib.foreach(self.cells, data, list(states))[0]


class While(gluon.HybridBlock):
    """1,000 iterations on 8 numbers."""

    def hybrid_forward(self, F: Any, i: Any, x: Any) -> Any:
        _, last = F.contrib.while_loop(
            lambda i, x: i < 1000, lambda i, x: ([], (i + 1, x * 0.999)), (i, x), max_iterations=1000
        )
        return last[1]


class Cond(gluon.HybridBlock):
    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.contrib.cond(x.sum() > 0, lambda: x * 2, lambda: x * 3)


def loop() -> tuple[gluon.HybridBlock, list[mx.nd.NDArray]]:
    net = Loop()
    return net, [array(LENGTH, BATCH, HIDDEN), *net.cells.begin_state(batch_size=BATCH)]


def fused() -> tuple[gluon.HybridBlock, list[mx.nd.NDArray]]:
    return rnn.LSTM(HIDDEN, num_layers=2, input_size=HIDDEN), [array(LENGTH, BATCH, HIDDEN)]


def forward(net: gluon.HybridBlock, inputs: list[mx.nd.NDArray], hybrid: bool = True) -> Step:
    ready(net, hybrid)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            out = net(*inputs)
        out.wait_to_read()

    return step


def forward_backward(net: gluon.HybridBlock, inputs: list[mx.nd.NDArray], hybrid: bool = True) -> Step:
    ready(net, hybrid)

    def step(repeat: int) -> None:
        for _ in range(repeat):
            with autograd.record():
                loss = net(*inputs).sum()
            loss.backward()
        mx.nd.waitall()

    return step


CASES = {
    "lstm_foreach/hybridized": lambda: forward(*loop()),
    "lstm_foreach_train/hybridized": lambda: forward_backward(*loop()),
    "lstm_fused/imperative": lambda: forward(*fused(), hybrid=False),
    "lstm_fused/hybridized": lambda: forward(*fused()),
    "lstm_fused_train/imperative": lambda: forward_backward(*fused(), hybrid=False),
    "lstm_fused_train/hybridized": lambda: forward_backward(*fused()),
    "while_1000/hybridized": lambda: forward(While(), [mx.nd.zeros((1,)), mx.nd.ones((8,))]),
    "cond_call/hybridized": lambda: forward(Cond(), [mx.nd.ones((8,))]),
}
