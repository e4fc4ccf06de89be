"""Models whose outputs on the CPU are stored beside them, for programs that run them on a GPU."""

from __future__ import annotations

import pathlib
from typing import Any

import hybridnet as mx
from hybridnet.gluon import nn


class Loop(mx.gluon.HybridBlock):
    """Layers, and a loop over two rows made of them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(8, activation="tanh", in_units=6)
        self.norm = nn.LayerNorm(in_channels=8)
        self.last = nn.Dense(4, in_units=8)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        y = self.norm(self.first(x))
        rows = F.stack(y, 2 * y, axis=0)
        out, _ = F.contrib.foreach(lambda row, state: (F.tanh(row + state), row + state), rows, F.zeros_like(y))
        return self.last(out[1])


def export_loop(folder: pathlib.Path) -> tuple[str, str]:
    """Writes a Loop with an input of three rows; returns what export_case() does."""
    mx.random.seed(1)
    net = Loop()
    net.initialize()
    return export_case(net, [mx.nd.random.normal(shape=(3, 6))], folder / "loop")


def export_case(net: mx.gluon.HybridBlock, inputs: list[mx.nd.NDArray], place: pathlib.Path) -> tuple[str, str]:
    """Exports a network; returns the prefix, and the file with "in:data" (or "in:data0", ...) and "out:0", ..."""
    net.hybridize()
    out = net(*inputs)
    net.export(str(place))
    names = ["data"] if len(inputs) == 1 else [f"data{i}" for i in range(len(inputs))]
    arrays = {f"in:{name}": array for name, array in zip(names, inputs, strict=True)}
    arrays.update({f"out:{i}": array for i, array in enumerate(out if isinstance(out, (list, tuple)) else [out])})
    mx.nd.save(f"{place}.case", arrays)
    return str(place), f"{place}.case"
