"""Graphs of every kind: networks, loops, branches, and many operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
from hybridnet import rewrite as rw
from hybridnet.gluon import nn

contrib = mx.contrib


class Net(mx.gluon.HybridBlock):
    """A block that calls a function of F, its input and its layers."""

    def __init__(self, function: Callable[[Any, Any], Any], *layers: Any) -> None:
        super().__init__()
        self.function = function
        for layer in layers:
            self.register_child(layer)
        self.layers = layers

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.function(F, x, *self.layers)


def dense(F: Any, x: Any, layer: Any) -> Any:
    return F.Dropout(F.softmax(layer(x)), p=0.3)


def convolution(F: Any, x: Any, conv: Any, norm: Any) -> Any:
    x = F.reshape(x, shape=(1, 1, 4, 3))
    return F.Pooling(F.relu(norm(conv(x))), kernel=(2, 2), pool_type="avg", stride=(1, 1))


def cumulative(F: Any, x: Any) -> Any:
    w = F.ones((3,)) * 2
    return F.contrib.foreach(lambda row, state: (F.relu(row) * w + state, state + row), x, F.zeros((3,)))[0]


def folded(F: Any, x: Any) -> Any:
    """A loop without outputs and with several states in a list."""
    return F.contrib.foreach(lambda row, s: ([], [s[1], s[0] + row]), x, [F.zeros((3,)), F.ones((3,))])[1]


def nested(F: Any, x: Any) -> Any:
    def inner(row: Any, state: Any) -> Any:
        return row + state, F.contrib.cond(F.sum(row) > 0, lambda: state + row, lambda: state * 2)

    def outer(row: Any, state: Any) -> Any:
        rows, last = F.contrib.foreach(inner, F.stack(row, row * 2, axis=0), state)
        return F.sum(rows, axis=0), last

    return F.contrib.foreach(outer, x, F.ones((3,)))[0]


def counted_while(F: Any, x: Any) -> Any:
    outs, states = F.contrib.while_loop(
        lambda i, v: i < 3,
        lambda i, v: (v * 2, (i + 1, v + F.sum(x, axis=0))),
        (F.zeros((1,)), F.ones((3,))),
        max_iterations=5,
    )
    return [outs, states[1]]


def branches(F: Any, x: Any) -> Any:
    return F.contrib.cond(F.sum(x) > 0, lambda: [F.exp(x), x], lambda: [x - 1, F.abs(x)])


def constants(F: Any, x: Any) -> Any:
    return x * F.full((4, 3), 0.1) + F.arange(12).reshape((4, 3)) - F.full((4, 3), float("inf"))


def several_outputs(F: Any, x: Any) -> Any:
    a, b, c = F.split(x, num_outputs=3, axis=1)
    return F.concat(c, a, dim=1), b, F.topk(x, k=2, ret_typ="both")[0]


NETS: dict[str, Callable[[], Any]] = {
    "dense": lambda: Net(dense, nn.Dense(5, activation="tanh")),
    "convolution": lambda: Net(convolution, nn.Conv2D(2, 2), nn.BatchNorm()),
    **{f.__name__: (lambda f=f: Net(f)) for f in (
        cumulative, folded, nested, counted_while, branches, constants, several_outputs,
    )},
    "lstm": lambda: Net(lambda F, x, cell: cell(F.expand_dims(x, axis=0)), mx.gluon.rnn.LSTM(2)),
}  # fmt: skip


def graphs_of(name: str) -> list[Any]:
    """Returns the graphs of a network: traced for prediction and for training, and both rewritten by the first half of
    the pipeline, which folds constants and rewrites loops."""
    net = NETS[name]()
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((4, 3)))
    graphs = []
    for train in (False, True):
        graphs.append(net.graph(train=train))
        rewritten, _ = graphs[-1].clone()
        rw.apply(rewritten)
        graphs.append(rewritten)
    return graphs
