"""A backend for tests that runs elementwise operators by NumPy, with gradients, and records the compiled parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hybridnet import rewrite as rw

FUNCTIONS: dict[str, Any] = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "abs": np.abs,
    "negative": np.negative,
    "square": np.square,
    "_copy": lambda x: x,
    "elemwise_add": np.add,
    "elemwise_sub": np.subtract,
    "elemwise_mul": np.multiply,
    "_grad_add": np.add,
    "broadcast_add": np.add,
    "broadcast_sub": np.subtract,
    "broadcast_mul": np.multiply,
    "_plus_scalar": lambda x, scalar: x + scalar,
    "_mul_scalar": lambda x, scalar: x * scalar,
}
GRADIENTS: dict[str, Any] = {  # (gradient, output, inputs) -> one per input
    "tanh": lambda g, y, x: [g * (1 - y * y)],
    "sigmoid": lambda g, y, x: [g * y * (1 - y)],
    "square": lambda g, y, x: [2 * g * x],
    "negative": lambda g, y, x: [-g],
    "elemwise_add": lambda g, y, a, b: [g, g],
    "elemwise_mul": lambda g, y, a, b: [g * b, g * a],
}


class NumPyBackend:
    """The ``make`` function of a partition; `seen` holds the operator names of each part, in order."""

    def __init__(self, gradient: bool = False, views: bool = False, all_sizes: bool = False) -> None:
        self.gradient, self.views, self.all_sizes = gradient, views, all_sizes
        self.seen: list[list[str]] = []
        self.shapes: list[list[tuple[int, ...]]] = []
        self.runs = 0

    def supports(self, node: Any) -> bool:
        return node.op in (GRADIENTS if self.gradient else FUNCTIONS)

    def __call__(self, graph: Any) -> Any:
        self.seen.append([node.op for node in graph.nodes if node.op])
        self.shapes.append([entry.shape for entry in graph.inputs])

        def forward(*arrays: np.ndarray) -> list[np.ndarray]:
            self.runs += 1
            values = self._values(graph, arrays)
            return [values[entry] for entry in graph.outputs]

        backward = (lambda *lists: self._backward(graph, *lists)) if self.gradient else None
        return rw.Compiled(forward, backward, views=self.views, all_sizes=self.all_sizes)

    @staticmethod
    def _values(graph: Any, arrays: Any) -> dict[Any, np.ndarray]:
        values = dict(zip(graph.inputs, arrays, strict=True))
        for node in graph.nodes:
            if node.is_constant:
                values[node[0]] = node.value.asnumpy()
            elif node.op:
                inputs = [values[entry] for entry in node.inputs]
                scalar = {"scalar": node.params["scalar"]} if "scalar" in node.params else {}
                values[node[0]] = np.asarray(FUNCTIONS[node.op](*inputs, **scalar), dtype=node[0].dtype)
        return values

    def _backward(self, graph: Any, heads: Any, inputs: Any, outputs: Any) -> list[np.ndarray]:
        values = self._values(graph, inputs)
        for entry, output in zip(graph.outputs, outputs, strict=True):
            np.testing.assert_allclose(values[entry], output, rtol=1e-5, atol=1e-6)
        grads: dict[Any, Any] = {}
        for entry, head in zip(graph.outputs, heads, strict=True):
            grads[entry] = grads.get(entry, 0) + head
        for node in reversed(graph.nodes):
            if node.op and node[0] in grads:
                read = [values[entry] for entry in node.inputs]
                given = GRADIENTS[node.op](grads[node[0]], values[node[0]], *read)
                for entry, gradient in zip(node.inputs, given, strict=True):
                    grads[entry] = grads.get(entry, 0) + gradient
        return [np.broadcast_to(grads.get(entry, 0), entry.shape).astype(entry.dtype) for entry in graph.inputs]
