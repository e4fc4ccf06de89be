"""A program of the corpus: a function or block, its inputs, and the nodes that it must become."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import hybridnet as mx
import numpy as np

KINDS = ("_cond", "_foreach", "_while_loop")


def a(*values: Any, dtype: str = "float32") -> np.ndarray:
    """Returns an array of these numbers or rows."""
    return np.array(values, dtype)


class Function(mx.gluon.HybridBlock):
    """A block whose forward is a function of the corpus."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


@dataclass
class Program:
    """One program of the corpus.

    inputs: values of the arguments, one tuple per call; the first one is traced first. cond, foreach, while_: how many
    nodes of these kinds the graph has, together with those in bodies. gradient: whether gradients are compared.
    numpy: whether its arrays are those of mx.np. random: whether it draws numbers, so that only statistics agree.
    per_length: why a graph fits one length of the inputs only; "" if one file serves all lengths.
    """

    name: str
    target: Any
    inputs: list[tuple[np.ndarray, ...]]
    cond: int
    foreach: int
    while_: int
    gradient: bool
    numpy: bool
    random: bool
    per_length: str

    def block(self) -> mx.gluon.HybridBlock:
        """Returns a new block; its parameters have the same values every time."""
        if not isinstance(self.target, type):
            return Function(self.target)
        block = self.target()
        for number, parameter in enumerate(block.collect_params().values()):
            size = int(np.prod(parameter.shape))
            values = np.sin(np.arange(size) * 1.7 + number).reshape(parameter.shape)
            parameter.initialize(mx.init.Constant(mx.nd.array(values)))
        return block

    def arrays(self, values: Sequence[np.ndarray]) -> list[Any]:
        """Returns arguments made of these values."""
        make = mx.np.array if self.numpy else mx.nd.array
        return [make(value, dtype=value.dtype) for value in values]

    @contextlib.contextmanager
    def interface(self) -> Iterator[None]:
        """Has NumPy's rules for shapes and arrays if the program is one of mx.np."""
        with mx.util.np_shape(self.numpy), mx.util.np_array(self.numpy):
            yield

    def names(self) -> list[str]:
        """The names of the inputs in exported files."""
        count = len(self.inputs[0])
        return ["data"] if count == 1 else [f"data{i}" for i in range(count)]

    def counts(self) -> dict[str, int]:
        """The expected number of nodes of each kind."""
        return dict(zip(KINDS, (self.cond, self.foreach, self.while_), strict=True))

    def __str__(self) -> str:
        return self.name


class Programs(list[Program]):
    """The programs of a module, in the order of their definitions."""

    def add(
        self,
        *inputs: tuple[np.ndarray, ...],
        cond: int = 0,
        foreach: int = 0,
        while_: int = 0,
        gradient: bool = True,
        numpy: bool = False,
        random: bool = False,
        per_length: str = "",
    ) -> Callable[[Any], Any]:
        """Decorator: the function, or class of a block, is a program. Arguments: see Program."""

        def note(target: Any) -> Any:
            self.append(
                Program(
                    target.__name__, target, list(inputs), cond, foreach, while_, gradient, numpy, random, per_length
                )
            )
            return target

        return note


def flat(outputs: Any) -> list[np.ndarray]:
    """Returns all arrays and numbers of a result, in order."""
    if isinstance(outputs, dict):
        outputs = list(outputs.values())
    if isinstance(outputs, (list, tuple)):
        return [array for output in outputs for array in flat(output)]
    return [outputs.asnumpy() if hasattr(outputs, "asnumpy") else np.asarray(outputs)]


def count_nodes(graph: dict[str, Any]) -> dict[str, int]:
    """Returns how many control nodes a graph (parsed JSON) and its bodies have."""
    found: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    pending = [graph]
    while pending:
        for node in pending.pop()["nodes"]:
            if node["op"] in KINDS:
                found[node["op"]] += 1
            pending += node.get("subgraphs", [])
    return dict(found)


def graph_of(block: mx.gluon.HybridBlock) -> dict[str, Any]:
    """Returns the graph of the last call as parsed JSON."""
    return json.loads(block._cached_graph[1].tojson())
