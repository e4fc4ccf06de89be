"""RNN: layers of recurrent cells, as LSTM, GRU and RNN of ONNX; as Scan where these lack an option."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._export_errors import refuse_use
from .._export_table import export_form
from .._export_values import Spec, Tensor

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
# The gates in ONNX's order, as numbers of those in the packed parameters: i f g o and r z n.
_ORDER = {"rnn_relu": (0,), "rnn_tanh": (0,), "lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}
_OPERATORS = {"rnn_relu": "RNN", "rnn_tanh": "RNN", "lstm": "LSTM", "gru": "GRU"}


class Packed:
    """The packed parameters, cut in the order in which they are stored."""

    def __init__(self, g: Any, flat: Tensor) -> None:
        self.g, self.flat, self.at = g, flat, 0
        self.array = g.value_of(flat)

    def take(self, *shape: int) -> Any:
        """The next part: an array, or a Tensor if the parameters are computed when the model runs."""
        begin = self.at
        self.at += int(np.prod(shape))
        if self.array is not None:
            return self.array.reshape(-1)[begin : self.at].reshape(shape)
        return self.g.reshape(self.g.slice(self.flat, 0, begin, self.at), shape)


def _gates_in(g: Any, part: Any, order: Sequence[int], size: int) -> Any:
    """Rows of gates in another order."""
    if len(order) == 1:
        return part
    if isinstance(part, Tensor):
        pieces = g.split(part, 0, [size] * len(order))
        return g.concat([pieces[k] for k in order], 0)
    return np.concatenate([part[k * size : (k + 1) * size] for k in order])


def _stacked(g: Any, parts: Sequence[Any], name: str) -> Tensor:
    """One part per direction along a new first axis."""
    if any(isinstance(part, Tensor) for part in parts):
        return g.concat([g.unsqueeze(part, [0]) for part in parts], 0)
    return g.weight(np.stack(parts), name)


@dataclass
class Cell:
    """Weights and biases of one layer and direction, gates in the packed order."""

    of_input: Any
    of_state: Any
    projection: Any = None
    input_bias: Any = None
    state_bias: Any = None


def unpacked(g: Any, flat: Tensor, p: Any, inputs: int) -> tuple[list[Cell], int]:
    """The cells of all layers, and the number of directions."""
    hidden, layers = int(p["state_size"]), int(p["num_layers"])
    directions = 2 if p["bidirectional"] else 1
    projected = int(p["projection_size"] or 0)
    rows, fed_back = _GATES[p["mode"]] * hidden, projected or hidden
    packed = Packed(g, flat)
    cells = []
    for i in range(layers * directions):
        cell = Cell(packed.take(rows, inputs if i < directions else directions * fed_back), packed.take(rows, fed_back))
        if projected:
            cell.projection = packed.take(projected, hidden)
        cells.append(cell)
    for cell in cells:
        cell.input_bias, cell.state_bias = packed.take(rows), packed.take(rows)
    return cells, directions


@dataclass
class _Layers:
    """The facts that all layers share."""

    g: Any
    node: Any
    mode: str
    hidden: int
    directions: int
    lengths: Tensor | None

    def states_of(self, state: Tensor | None, layer: int) -> Tensor | None:
        """The first states of a layer; None: zeros."""
        if state is None or self.g.fill_of(state) == 0:
            return None
        if state.dim(0) == self.directions:
            return state
        first = layer * self.directions
        return self.g.slice(state, 0, first, first + self.directions)

    def _of_empty(self, end: Tensor, first: Tensor | None, layer: int) -> Tensor:
        """Sequences of no steps keep their first states; runtimes return zeros."""
        g, begin = self.g, layer * self.directions
        if first is None:
            return end
        is_empty = g.unsqueeze(g.emit("Equal", self.lengths, 0), [1])
        return g.where(is_empty, g.slice(first, 0, begin, begin + self.directions), end)

    def run(self, x: Tensor, cells: Sequence[Cell], state: Tensor | None, memory: Tensor | None, layer: int) -> Any:
        """One layer: (steps, batch, directions * hidden), the last states, and the last memories."""
        g = self.g
        order = _ORDER[self.mode]
        prefix = f"{self.node.name}_l{layer}"
        weights = [
            _stacked(g, [_gates_in(g, part, order, self.hidden) for part in parts], f"{prefix}_{name}")
            for name, parts in (("W", [c.of_input for c in cells]), ("R", [c.of_state for c in cells]))
        ]
        biases = []
        for c in cells:
            pair = [_gates_in(g, part, order, self.hidden) for part in (c.input_bias, c.state_bias)]
            biases.append(g.concat(pair, 0) if isinstance(pair[0], Tensor) else np.concatenate(pair))
        weights.append(_stacked(g, biases, f"{prefix}_B"))
        attributes: dict[str, Any] = {"hidden_size": self.hidden}
        if self.directions == 2:
            attributes["direction"] = "bidirectional"
        if self.mode == "gru":
            attributes["linear_before_reset"] = 1
        if self.mode == "rnn_relu":
            attributes["activations"] = ["Relu"] * self.directions
        operands = [x, *weights, self.lengths, self.states_of(state, layer)]
        if self.mode == "lstm":
            operands.append(self.states_of(memory, layer))
        outputs = 3 if self.mode == "lstm" else 2
        made, *last = g.emit(_OPERATORS[self.mode], *operands, outputs=outputs, **attributes)
        steps, batch = x.dims[:2]
        shape = [(s[0], self.directions, s[1], self.hidden) for s in x.shapes]
        made.spec = Spec(shape, made.dtype)
        ends = Spec([s[1:] for s in shape], made.dtype)
        for tensor in last:
            tensor.spec = ends
        if self.lengths is not None:
            last = [self._of_empty(end, first, layer) for end, first in zip(last, (state, memory), strict=False)]
        if self.directions == 1:
            rows = g.squeeze(made, [1])
        else:
            rows = g.reshape(g.transpose(made, [0, 2, 1, 3]), [steps, batch, self.directions * self.hidden])
        return rows, last


def _check(node: Any) -> None:
    if node.train and node.params["p"] > 0:
        raise refuse_use(node, "dropout between layers is for training", fix="export in prediction mode")


@export_form("RNN")
def _rnn(g: Any, node: Any) -> list[Tensor]:
    """Layer by layer: the outputs of both directions are the input of the next layer."""
    _check(node)
    p = node.params
    mode = p["mode"]
    x, flat, state, *rest = node.inputs
    memory = rest.pop(0) if mode == "lstm" else None
    if x.dim(0) == 0 or x.dim(1) == 0:
        return [g.full(node.dims(), 0, x.dtype), state, *([memory] if memory is not None else [])]
    lengths = None
    if p["use_sequence_length"]:
        lengths = g.emit("Clip", g.cast(rest[0], "int32"), 0, g.number(x.dim(0), "int32"))
    cells, directions = unpacked(g, flat, p, int(x.dim(2)))
    if p["projection_size"] or p["lstm_state_clip_min"] is not None:
        return _by_scan(g, node, cells, directions, state, memory, lengths)
    layers = _Layers(g, node, mode, int(p["state_size"]), directions, lengths)
    last: list[list[Tensor]] = []
    for layer in range(int(p["num_layers"])):
        part = cells[layer * directions : (layer + 1) * directions]
        x, ends = layers.run(x, part, state, memory, layer)
        last.append(ends)
    results = [x]
    if p["state_outputs"]:
        results += [g.concat(list(ends), 0) for ends in zip(*last, strict=True)]
    return results


# ---------------------------------------------------------------------------------------------------------------- scan
def _as_tensor(g: Any, part: Any, name: str) -> Tensor:
    return part if isinstance(part, Tensor) else g.weight(np.ascontiguousarray(part), name)


def _gemm(g: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    made = g.matmul(x, g.transpose(weight, [1, 0]))
    return made if bias is None else g.emit("Add", made, bias)


def _scan_cell(g: Any, node: Any, cell: Cell, name: str) -> Any:
    """One step of an LSTM with projection or clipped memory: (x, h, c) -> (h, c)."""
    p = node.params
    of_input, of_state = (_as_tensor(g, w, f"{name}_{k}") for w, k in ((cell.of_input, "W"), (cell.of_state, "R")))
    bias = g.emit("Add", _as_tensor(g, cell.input_bias, f"{name}_Wb"), _as_tensor(g, cell.state_bias, f"{name}_Rb"))
    projection = None if cell.projection is None else _as_tensor(g, cell.projection, f"{name}_P")
    hidden = int(p["state_size"])

    def before(x: Tensor) -> Tensor:
        return _gemm(g, x, of_input, bias)

    def step(from_x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        total = g.emit("Add", from_x, _gemm(g, h, of_state))
        i, f, n, o = g.split(total, total.ndim - 1, [hidden] * 4)
        kept = g.emit("Mul", g.emit("Sigmoid", f), c)
        c = g.emit("Add", kept, g.emit("Mul", g.emit("Sigmoid", i), g.emit("Tanh", n)))
        if p["lstm_state_clip_min"] is not None:
            c = g.emit("Clip", c, float(p["lstm_state_clip_min"]), float(p["lstm_state_clip_max"]))
        h = g.emit("Mul", g.emit("Sigmoid", o), g.emit("Tanh", c))
        return (h if projection is None else _gemm(g, h, projection)), c

    return before, step


def _by_scan(
    g: Any, node: Any, cells: Sequence[Cell], directions: int, state: Tensor, memory: Tensor | None, lengths: Any
) -> list[Tensor]:
    """Layers whose cells ONNX's LSTM does not have."""
    assert memory is not None
    x = node.inputs[0]
    last_h, last_c = [], []
    for first in range(0, len(cells), directions):
        parts = []
        for direction in range(directions):
            k = first + direction
            before, step = _scan_cell(g, node, cells[k], f"{node.name}_cell{k}")
            h, c = (g.squeeze(g.slice(s, 0, k, k + 1), [0]) for s in (state, memory))
            rows, (h, c) = _scan_direction(g, before(x), step, h, c, lengths, reverse=direction == 1)
            parts.append(rows)
            last_h.append(g.unsqueeze(h, [0]))
            last_c.append(g.unsqueeze(c, [0]))
        x = g.concat(parts, 2)
    results = [x]
    if node.params["state_outputs"]:
        results += [g.concat(last_h, 0), g.concat(last_c, 0)]
    return results


def _scan_direction(
    g: Any, rows: Tensor, step: Any, h: Tensor, c: Tensor, lengths: Tensor | None, reverse: bool
) -> tuple[Tensor, list[Tensor]]:
    sequences = [rows]
    if lengths is not None:
        sequences.append(g.emit("Less", g.unsqueeze(g.iota(rows.dim(0), "int32"), [1]), lengths))

    def body(carried: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        next_h, next_c = step(slices[0], *carried)
        if lengths is None:
            return [next_h, next_c], [next_h]
        inside = g.unsqueeze(slices[1], [1])
        kept = [g.where(inside, new, old) for new, old in zip((next_h, next_c), carried, strict=True)]
        return kept, [g.where(inside, next_h, 0)]

    carried, stacked = g.scan([h, c], sequences, body, reverse)
    stacked[0].spec = Spec([(r[0], *s) for r, s in zip(rows.shapes, h.shapes, strict=True)], rows.dtype)
    return stacked[0], carried


# ----------------------------------------------------------------------------------------------------------- quantized
def _steps_of_weights(cells: Sequence[Cell]) -> tuple[list[np.ndarray], np.ndarray]:
    """Weights in whole steps, 127 for the largest of each row of gates in all cells; and the steps per unit."""
    matrices = [np.hstack([cell.of_input, cell.of_state]) for cell in cells]
    steps = np.float32(127) / np.max([np.abs(matrix).max(1) for matrix in matrices], 0)
    return [np.rint(matrix * steps[:, None]).astype("float32") for matrix in matrices], steps


@export_form("_contrib_quantized_rnn")
def _quantized_rnn(g: Any, node: Any) -> list[Tensor]:
    """LSTM layers whose inputs and states are bytes in every step; products of bytes are exact in float32."""
    x, flat, state, memory, scale, shift = node.inputs
    if g.value_of(flat) is None:
        raise refuse_use(node, "the weights are computed when the model runs", fix="pass them as a parameter")
    p = {"projection_size": None, **node.params}
    cells, directions = unpacked(g, flat, p, int(x.dim(2)))
    matrices, steps = _steps_of_weights(cells)
    hidden = int(p["state_size"])
    units = g.emit("Mul", g.weight(steps, f"{node.name}_steps"), scale)

    def whole(value: Tensor) -> Tensor:
        """Steps of a float, counted from the step of zero."""
        near = g.emit("Round", g.emit("Add", g.emit("Mul", value, scale), shift))
        return g.emit("Sub", g.emit("Clip", near, 0.0, 255.0), shift)

    def layer_direction(k: int, rows: Tensor) -> tuple[Tensor, list[Tensor]]:
        width = cells[k].of_input.shape[1]
        of_input = g.weight(np.ascontiguousarray(matrices[k][:, :width].T), f"{node.name}_cell{k}_W")
        of_state = g.weight(np.ascontiguousarray(matrices[k][:, width:].T), f"{node.name}_cell{k}_R")
        bias = g.weight(cells[k].input_bias + cells[k].state_bias, f"{node.name}_cell{k}_B")
        before = g.matmul(rows, of_input)

        def body(carried: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            h, c = carried
            total = g.emit("Add", slices[0], g.matmul(whole(h), of_state))
            gates = g.emit("Add", g.emit("Div", total, units), bias)
            i, f, n, o = g.split(gates, 1, [hidden] * 4)
            kept = g.emit("Mul", g.emit("Sigmoid", f), c)
            c = g.emit("Add", kept, g.emit("Mul", g.emit("Sigmoid", i), g.emit("Tanh", n)))
            h = g.emit("Mul", g.emit("Sigmoid", o), g.emit("Tanh", c))
            return [h, c], [h]

        first = [g.squeeze(g.slice(s, 0, k, k + 1), [0]) for s in (state, memory)]
        carried, stacked = g.scan(first, [before], body, reverse=k % directions == 1)
        stacked[0].spec = Spec([(r[0], *s) for r, s in zip(rows.shapes, first[0].shapes, strict=True)], "float32")
        return stacked[0], [g.unsqueeze(value, [0]) for value in carried]

    rows = g.emit("Sub", g.cast(x, "float32"), shift)
    ends: list[list[Tensor]] = []
    out = rows
    for begin in range(0, len(cells), directions):
        made = [layer_direction(k, rows) for k in range(begin, begin + directions)]
        ends += [last for _, last in made]
        out = g.concat([part for part, _ in made], 2)
        rows = whole(out)
    results = [out]
    if p["state_outputs"]:
        results += [g.concat(list(last), 0) for last in zip(*ends, strict=True)]
    return results
