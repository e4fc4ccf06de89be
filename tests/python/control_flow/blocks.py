"""Blocks made of a function, for tests of loops and branches."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import gluon


class Block(gluon.HybridBlock):
    """Calls a function of arrays; `children` are the blocks that the function uses."""

    def __init__(self, function: Callable[..., Any], *children: gluon.Block) -> None:
        super().__init__()
        self.function = function
        for i, child in enumerate(children):
            setattr(self, f"child{i}", child)
        self.initialize()

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def flat(value: Any) -> list[Any]:
    """The arrays of nested lists, tuples and dicts, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (list, tuple)) else [value]


def wait_for(value: Any) -> Any:
    """Waits for the arrays of a nest, which raises the errors of their computation; returns the nest."""
    for array in flat(value):
        array.wait_to_read()
    return value


def gradients(
    function: Callable[..., Any], arrays: Sequence[np.ndarray], order: int = 1
) -> tuple[list[np.ndarray], Block]:
    """Returns the sum of squares of a function's results (order 2: gradients) with its gradients, and the block."""
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
    """Returns ``mx.sym`` for a symbol, ``mx.nd`` for an array."""
    return mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd


def exported(block: gluon.HybridBlock, folder: pathlib.Path, inputs: int) -> gluon.SymbolBlock:
    """Exports a block that has run hybridized, and imports the files."""
    symbol, params = block.export(str(folder / "model"))
    names = ["data"] if inputs == 1 else [f"data{i}" for i in range(inputs)]
    return gluon.SymbolBlock.imports(symbol, names, params)
