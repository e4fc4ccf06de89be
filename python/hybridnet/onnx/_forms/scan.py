"""Scan: a graph that runs once per slice of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...symbol import contrib
from ...util import np_shape
from .._bodies import inside, prepare, slot
from .._errors import wrong
from .._table import form
from .._values import Value


@form("Scan")
def scan(g: Any, node: Any, *inputs: Any) -> Any:
    """A foreach. Since version 9: states first, then tensors that are cut along an axis each."""
    graph = node.graph("body")
    prepare(g, graph)
    count = node.attr("num_scan_inputs")
    if node.version < 9:
        return _of_batch(g, node, inputs[0], inputs[1:], count)
    states, data = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    num_outs = len(graph.output) - len(states)
    directions = node.attr("scan_input_directions") or [0] * count
    out_directions = node.attr("scan_output_directions") or [0] * num_outs
    axes = node.attr("scan_input_axes") or [0] * count
    out_axes = node.attr("scan_output_axes") or [0] * num_outs
    data = [_to_front(g, value, axis) for value, axis in zip(data, axes, strict=True)]
    backwards = all(directions)  # then iteration k reads row T - 1 - k, and writes this row
    if not backwards:
        data = [_flipped(g, value) if reverse else value for value, reverse in zip(data, directions, strict=True)]
    outs, last = _foreach(g, node, graph, data, states, backwards)
    outs = [
        _from_front(g, _flipped(g, value) if bool(direction) != backwards else value, axis)
        for value, direction, axis in zip(outs, out_directions, out_axes, strict=True)
    ]
    return (*last, *outs)


def _to_front(g: Any, value: Value, axis: int) -> Value:
    axis %= value.ndim
    return (
        value if axis == 0 else g.emit("transpose", [value], axes=(axis, *(i for i in range(value.ndim) if i != axis)))
    )


def _from_front(g: Any, value: Value, axis: int) -> Value:
    axis %= value.ndim
    order = list(range(1, value.ndim))
    return value if axis == 0 else g.emit("transpose", [value], axes=(*order[:axis], 0, *order[axis:]))


def _flipped(g: Any, value: Value) -> Value:
    return g.emit("reverse", [value], axis=(0,))


def _foreach(
    g: Any, node: Any, graph: Any, data: Sequence[Value], states: Sequence[Value], reverse: bool = False
) -> tuple[list[Value], list[Value]]:
    """Runs the graph for (states, slices of data); returns the stacked outputs and the last states."""
    made: list[Any] = []

    def body(slices: list[Any], carried: list[Any]) -> Any:
        arguments = [slot(value.name, value, symbol) for value, symbol in zip(states, carried, strict=True)]
        arguments += [
            slot(value.name, value, symbol, [shape[1:] for shape in value.shapes])
            for value, symbol in zip(data, slices, strict=True)
        ]
        with inside(g):
            made[:] = g.subgraph(graph, arguments)
            _check_states(node, states, made)
            symbols = [value.symbol for value in made]
        return symbols[len(states) :], symbols[: len(states)]

    with np_shape(True):
        outs, last = contrib.foreach(
            body, [v.symbol for v in data], [v.symbol for v in states], reverse=reverse, name=g.unique(node.name)
        )
    return (
        stacked(made[len(states) :], outs, [shape[0] for shape in data[0].shapes]),
        [slot(value.name, value, symbol) for value, symbol in zip(states, last, strict=True)],
    )


def stacked(values: Sequence[Value], symbols: Sequence[Any], rows: Sequence[int]) -> list[Value]:
    """The outputs of all iterations: `rows` (per trial) of the values that one iteration made."""
    return [
        slot(value.name, value, symbol, [(count, *shape) for count, shape in zip(rows, value.shapes, strict=True)])
        for value, symbol in zip(values, symbols, strict=True)
    ]


def _check_states(node: Any, states: Sequence[Value], made: Sequence[Value]) -> None:
    for index, (before, after) in enumerate(zip(states, made, strict=False)):
        if before.shapes != after.shapes or before.dtype != after.dtype:
            raise wrong(
                f"state {index} is {before.dtype}{before.shape} before an iteration and "
                f"{after.dtype}{after.shape} after it",
                node=node.proto,
            )


# ------------------------------------------------------------------------------------------------------------ version 8
def _of_batch(g: Any, node: Any, lengths: Any, inputs: Sequence[Value], count: int) -> Any:
    """Version 8: each example of a batch has a loop of its own, of its own length if there are lengths."""
    graph = node.graph("body")
    num_states = len(inputs) - count
    directions = node.attr("directions") or [0] * count
    batch = [*inputs, *([] if lengths is None else [lengths])]
    made: list[Any] = []

    def body(rows: list[Any], _: Any) -> Any:
        example = [
            slot(value.name, value, symbol, [shape[1:] for shape in value.shapes])
            for value, symbol in zip(batch, rows, strict=True)
        ]
        states, data = example[:num_states], example[num_states : len(inputs)]
        with inside(g):
            length = None if lengths is None else g.cast(example[-1], "int64")
            data = [
                _reversed(g, value, length) if back else value for value, back in zip(data, directions, strict=True)
            ]
            outs, last = _example(g, node, graph, data, states, length)
            made[:] = [*last, *outs]
            return [value.symbol for value in made], []

    with np_shape(True):
        outs, _ = contrib.foreach(body, [value.symbol for value in batch], [], name=g.unique(node.name))
    return tuple(stacked(made, outs, [shape[0] for shape in inputs[0].shapes]))


def _reversed(g: Any, value: Value, length: Value | None) -> Value:
    """The rows of a sequence in the other order: the first `length` ones."""
    if length is None:
        return _flipped(g, value)
    number = g.emit("_contrib_arange_like", [g.cast(value, "int64")], axis=0)
    back = g.emit("broadcast_sub", [g.emit("_minus_scalar", [length], scalar=1), number])
    back = g.emit("_maximum_scalar", [back], scalar=0)
    return g.emit("take", [value, back], axis=0, mode="clip")


def _example(
    g: Any, node: Any, graph: Any, data: Sequence[Value], states: Sequence[Value], length: Value | None
) -> tuple[list[Value], list[Value]]:
    """The loop of one example. From iteration `length` on, states stay, and outputs are zeros."""
    if length is None:
        return _foreach(g, node, graph, data, states)
    made: list[Any] = []
    like = g.constant(0, dtype="int64")

    def body(slices: list[Any], carried: list[Any]) -> Any:
        with inside(g):
            number = slot("iteration", like, carried[0])
            now = [slot(value.name, value, symbol) for value, symbol in zip(states, carried[1:], strict=True)]
            rows = [
                slot(value.name, value, symbol, [shape[1:] for shape in value.shapes])
                for value, symbol in zip(data, slices, strict=True)
            ]
            results = g.subgraph(graph, [*now, *rows])
            _check_states(node, states, results)
            runs = g.emit("_npi_less", [number, length])
            kept = [g.emit("_npi_where", [runs, new, old]) for new, old in zip(results, now, strict=False)]
            made[:] = [
                g.emit("_npi_where", [runs, value, g.emit("zeros_like", [value])]) for value in results[len(states) :]
            ]
            after = g.emit("_plus_scalar", [number], scalar=1)
            return [value.symbol for value in made], [value.symbol for value in (after, *kept)]

    outs, last = contrib.foreach(
        body, [value.symbol for value in data], [like.symbol, *[value.symbol for value in states]]
    )
    return (
        stacked(made, outs, [shape[0] for shape in data[0].shapes]),
        [slot(value.name, value, symbol) for value, symbol in zip(states, last[1:], strict=True)],
    )


__all__ = ["scan", "stacked"]
