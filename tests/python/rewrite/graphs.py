"""Graphs and helpers for tests of mx.rewrite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import gluon
from hybridnet import rewrite as rw

SHAPE = (2, 3)


class Function(gluon.HybridBlock):
    """A block without parameters that calls a function of F and the arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F: Any, *args: Any) -> Any:
        return self.function(F, *args)


def variables(*names: str) -> list[Any]:
    return [mx.sym.var(name) for name in names]


def graph_of(symbol: Any, shape: tuple[int, ...] = SHAPE, train: bool = False) -> Any:
    """Returns a graph whose variables all have one shape."""
    return rw.graph(symbol, dict.fromkeys(symbol.list_inputs(), shape), train=train)


def tutorial() -> Any:
    """Returns the merged graph of div(mul(add(y, z), x), add(y, z)), which equals x."""
    x, y, z = variables("x", "y", "z")
    graph = graph_of(((y + z) * x) / (y + z))
    rw.apply(graph, "merge")
    return graph


def ops(graph: Any) -> list[str]:
    """The operator names of a graph in topological order."""
    return [node.op for node in graph.nodes if node.op]


def output_names(graph: Any) -> list[str]:
    return [entry.node.name for entry in graph.outputs]


def run(graph: Any, **arrays: np.ndarray) -> list[np.ndarray]:
    """Runs a graph and returns the values of its outputs."""
    symbol = graph.symbol()
    given = {name: mx.nd.array(array, dtype=array.dtype) for name, array in arrays.items()}
    args = {name: given[name] for name in symbol.list_arguments()}
    return [out.asnumpy() for out in symbol.bind(mx.cpu(), args).forward()]


def x_times_y_over_y(graph: Any, node: Any) -> Any:
    """Rewrites x * y / y to x."""
    product, divisor = node.operands
    if not isinstance(product, rw.Entry) or product.node.op not in ("elemwise_mul", "broadcast_mul"):
        return None
    left, right = product.node.inputs
    return left if right == divisor else right if left == divisor else None
