"""A function as a block, in every form that a block takes, for tests of loops and branches."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import gluon


class Block(gluon.HybridBlock):
    """A function of arrays, and the blocks that it uses."""

    def __init__(self, function: Callable[..., Any], *children: gluon.Block) -> None:
        super().__init__()
        self.function = function
        for i, child in enumerate(children):
            setattr(self, f"child{i}", child)
        self.initialize()

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def flat(value: Any) -> list[Any]:
    """The arrays of a nest."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (list, tuple)) else [value]


def wait_for(value: Any) -> Any:
    """Waits for the arrays of a nest, which raises the errors of what computes them; returns the nest."""
    for array in flat(value):
        array.wait_to_read()
    return value


def gradients(
    function: Callable[..., Any], arrays: Sequence[np.ndarray], order: int = 1
) -> tuple[list[np.ndarray], Block]:
    """The sum of the squares of a function of arrays (order 2: of its gradients), its gradients, and the block."""
    block = Block(function)
    block.hybridize()
    given = [mx.nd.array(a, dtype="float64") for a in arrays]
    for a in given:
        a.attach_grad()
    with mx.autograd.record():
        loss = (block(*given) ** 2).sum()
        if order == 2:
            loss = sum((g * g).sum() for g in mx.autograd.grad(loss, given, create_graph=True, retain_graph=True))
    loss.backward()
    return [loss.asnumpy()] + [a.grad.asnumpy() for a in given], block


def operators(x: Any) -> Any:
    """``mx.sym`` in a graph, ``mx.nd`` on arrays."""
    return mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd


def exported(block: gluon.HybridBlock, folder: pathlib.Path, inputs: int) -> gluon.SymbolBlock:
    """The block, which has run hybridized, written to files and read again."""
    symbol, params = block.export(str(folder / "model"))
    names = ["data"] if inputs == 1 else [f"data{i}" for i in range(inputs)]
    return gluon.SymbolBlock.imports(symbol, names, params)
