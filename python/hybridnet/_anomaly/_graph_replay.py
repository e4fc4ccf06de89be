"""Runs a graph operator by operator on arrays, for observers that a compiled graph does not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from ..ndarray import NDArray

__all__ = ["can_replay", "replay"]


def _graph(outputs: Any, arrays: Sequence[NDArray], train: bool) -> Any:
    from ..rewrite import graph

    named = dict(zip(outputs.list_inputs(), arrays, strict=True))
    shapes = {name: array.shape for name, array in named.items()}
    return graph(outputs, shapes, {name: array.dtype for name, array in named.items()}, train)


def can_replay(outputs: Any, arrays: Sequence[NDArray], train: bool) -> bool:
    """Whether the graph has no loops and branches, which run as a whole only."""
    return not any(node.bodies for node in _graph(outputs, arrays, train).nodes)


NodeCall = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]


def replay(outputs: Any, arrays: Sequence[NDArray], train: bool, call: NodeCall) -> list[NDArray]:
    """Returns the values of a Symbol for arrays in the order of its list_inputs().

    call(node, function, inputs, parameters) runs one operator; node is an mx.rewrite.Node.
    """
    graph = _graph(outputs, arrays, train)
    named = dict(zip(outputs.list_inputs(), arrays, strict=True))
    values: dict[Any, Any] = {}
    for node in graph.nodes:
        if node.op is None:
            values[node[0]] = named.get(node.name, node.value)
            continue
        function = _core.op_function(node.op, node.op, "hybridnet.ndarray", symbolic=False)
        result = call(node, function, tuple(values[entry] for entry in node.inputs), dict(node.params))
        results = result if isinstance(result, (list, tuple)) else [result]
        values.update({node[i]: array for i, array in enumerate(results)})
    return [values[entry] for entry in graph.outputs]
