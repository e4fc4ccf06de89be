"""Recurrent layers: the operator RNN where it says the same, else a loop over the steps (_cells.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arithmetic import cut, join, permute
from .._cells import CELLS, Cell, run_cell
from .._errors import refuse, wrong
from .._sizes import Size
from .._table import form
from .._values import Value

# The order of the gates in operator RNN, as places in the file's order: LSTM has i, o, f, c; GRU z, r, h.
_GATES = {"RNN": (0,), "LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}


@dataclass
class _Layer:
    """The inputs of a node: data and states with time first, and directions before the batch."""

    x: Value
    weight: Value
    recurrent: Value
    bias: Value | None
    lengths: Value | None
    states: list[Value]
    peepholes: Value | None
    hidden: int
    directions: int


def _register(name: str) -> None:
    @form(name)
    def make(g: Any, node: Any, *inputs: Any) -> Any:
        return _recurrent(g, node, *inputs)


for _name in CELLS:
    _register(_name)


def _recurrent(g: Any, node: Any, x: Value, weight: Value, recurrent: Value, *rest: Any) -> tuple[Value, ...]:
    bias, lengths, first, cell, peepholes = (*rest, *[None] * 5)[:5]
    batch_first = bool(node.attr("layout", 0))
    direction = node.attr("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        raise wrong(f"direction is '{direction}'", node=node.proto)
    directions, hidden = recurrent.fixed(0), recurrent.fixed(2)
    if directions is None or hidden is None:
        raise refuse("the shape of the recurrence weights is not known", node=node.proto)
    if batch_first:
        x = permute(g, x, (1, 0, 2))
    states = []
    for given in (first, cell)[: 2 if node.op_type == "LSTM" else 1]:
        if given is not None and batch_first:
            given = permute(g, given, (1, 0, 2))
        states.append(_zeros(g, x, directions, hidden) if given is None else given)
    layer = _Layer(x, weight, recurrent, bias, lengths, states, peepholes, hidden, directions)
    fused = _mode(node, layer)
    y, last = _fused(g, node, layer, fused, direction) if fused else _loops(g, node, layer, direction)
    if batch_first:
        y = permute(g, y, (2, 0, 1, 3))
        last = [permute(g, state, (1, 0, 2)) for state in last]
    return (y, *last)


def _zeros(g: Any, x: Value, directions: int, hidden: int) -> Value:
    batch = g.dim(x, 1)
    if isinstance(batch, Size):
        return g.emit("_zeros", [], shape=(directions, batch, hidden), dtype=x.dtype)
    return g.constant(np.zeros((directions, int(batch), hidden)), "initial_state", x.dtype, trainable=False)


# ------------------------------------------------------------------------------------------------- the fused operator
def _mode(node: Any, layer: _Layer) -> str:
    """The mode of operator RNN; empty if it does not compute this layer."""
    kind = node.op_type
    functions = [name.lower() for name in node.attr("activations") or CELLS[kind].activations * layer.directions]
    if node.has("clip") or layer.peepholes is not None or node.attr("input_forget", 0):
        return ""
    if kind == "RNN":
        return f"rnn_{functions[0]}" if set(functions) in ({"tanh"}, {"relu"}) else ""
    if functions != [name.lower() for name in CELLS[kind].activations] * layer.directions:
        return ""
    if kind == "GRU" and not node.attr("linear_before_reset", 0):
        return ""
    return kind.lower()


def _fused(g: Any, node: Any, layer: _Layer, mode: str, direction: str) -> tuple[Value, list[Value]]:
    x, lengths = layer.x, layer.lengths
    parameters = _packed(g, node, layer)
    if direction == "reverse":
        x = reversed_steps(g, x, lengths)
    inputs = [x, parameters, *layer.states, *([] if lengths is None else [lengths])]
    y, *last = g.emit(
        "RNN",
        inputs,
        name=node.name,
        state_size=layer.hidden,
        num_layers=1,
        bidirectional=layer.directions == 2,
        mode=mode,
        state_outputs=True,
        use_sequence_length=lengths is not None,
    )
    if direction == "reverse":
        y = reversed_steps(g, y, lengths)
    y = g.reshape(y, [g.dim(y, 0), g.dim(y, 1), layer.directions, layer.hidden])
    return permute(g, y, (0, 2, 1, 3)), list(last[: len(layer.states)])


def reversed_steps(g: Any, x: Value, lengths: Value | None) -> Value:
    """The steps of each sequence in reverse order."""
    if lengths is None:
        return g.emit("reverse", [x], axis=(0,))
    return g.emit("SequenceReverse", [x, lengths], use_sequence_length=True)


def _packed(g: Any, node: Any, layer: _Layer) -> Value:
    """All weights of the operator in one vector: a parameter if all of them are constants."""
    order = _GATES[node.op_type]
    bias = layer.bias
    if bias is None:
        size = 2 * len(order) * layer.hidden
        bias = g.constant(np.zeros((layer.directions, size)), "bias", layer.weight.dtype)
    weight, recurrent, flat = layer.weight.const, layer.recurrent.const, bias.const
    if weight is not None and recurrent is not None and flat is not None:
        made = [_ordered(array[d], order).reshape(-1) for d in range(layer.directions) for array in (weight, recurrent)]
        made += [_ordered(half, order) for d in range(layer.directions) for half in np.split(flat[d], 2)]
        return g.constant(np.concatenate(made), f"{node.name}_parameters", layer.weight.dtype)
    pieces = []
    for d in range(layer.directions):
        pieces += [_taken(g, layer.weight, d, order, layer.hidden), _taken(g, layer.recurrent, d, order, layer.hidden)]
    for d in range(layer.directions):
        for half in range(2):
            gates = [gate + half * len(order) for gate in order]
            pieces.append(_taken(g, bias, d, gates, layer.hidden))
    return join(g, pieces, 0)


def _ordered(array: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Rows of gates in another order."""
    gates = np.split(array, len(order))
    return np.concatenate([gates[gate] for gate in order])


def _taken(g: Any, value: Value, direction: int, gates: Sequence[int], hidden: int) -> Value:
    """The rows of some gates of a direction, as a vector."""
    one = cut(g, value, 0, direction, direction + 1)
    return g.reshape(join(g, [cut(g, one, 1, gate * hidden, (gate + 1) * hidden) for gate in gates], 1), [-1])


# --------------------------------------------------------------------------------------------------------------- loops
def _loops(g: Any, node: Any, layer: _Layer, direction: str) -> tuple[Value, list[Value]]:
    outputs, lasts = [], []
    for d in range(layer.directions):
        backwards = direction == "reverse" or d == 1
        x = reversed_steps(g, layer.x, layer.lengths) if backwards else layer.x
        bias = None if layer.bias is None else _direction(g, layer.bias, d)
        peepholes = None if layer.peepholes is None else _direction(g, layer.peepholes, d)
        weights = (_direction(g, layer.weight, d), _direction(g, layer.recurrent, d))
        cell = Cell(node, *weights, bias, peepholes, layer.hidden, d)
        y, last = run_cell(g, cell, x, [_direction(g, state, d) for state in layer.states], layer.lengths)
        y = reversed_steps(g, y, layer.lengths) if backwards else y
        outputs.append(g.emit("expand_dims", [y], axis=1))
        lasts.append([g.emit("expand_dims", [state], axis=0) for state in last])
    return join(g, outputs, 1), [join(g, list(states), 0) for states in zip(*lasts, strict=True)]


def _direction(g: Any, value: Value, index: int) -> Value:
    made: Value = g.emit("squeeze", [cut(g, value, 0, index, index + 1)], axis=(0,))
    return made
