"""Cells of recurrent layers, step by step: all activations, limits and peepholes that ONNX has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..symbol import contrib
from ..util import np_shape
from ._arithmetic import calculate, count, cut, join
from ._bodies import inside, slot
from ._errors import wrong
from ._values import Value

__all__ = ["CELLS", "Cell", "Kind", "run_cell"]


@dataclass(frozen=True)
class Kind:
    """A kind of cell: its number of gates, its default activations, and step(g, cell, x, states) -> states.

    x is the product of the inputs of a step with their weights, with the bias added; the first state is the output.
    """

    gates: int
    activations: list[str]
    step: Callable[..., list[Value]]


@dataclass
class Cell:
    """A node, and the weights of one of its directions."""

    node: Any
    weight: Value
    recurrent: Value
    bias: Value | None
    peepholes: Value | None
    hidden: int
    direction: int

    @property
    def kind(self) -> Kind:
        """The kind of the cell."""
        return CELLS[self.node.op_type]

    def part(self, g: Any, value: Value, gate: int) -> Value:
        """The elements of a gate, of the last axis."""
        return cut(g, value, value.ndim - 1, gate * self.hidden, (gate + 1) * self.hidden)

    def activate(self, g: Any, number: int, x: Value, limited: bool = True) -> Value:
        """Applies activation `number` to x, which is clipped first if the node has `clip`."""
        clip = self.node.attr("clip")
        if clip and limited:
            x = g.emit("clip", [x], a_min=-clip, a_max=clip)
        own = len(self.kind.activations)
        names = self.node.attr("activations") or self.kind.activations * 2
        index = own * self.direction + number
        name = names[index].lower()
        if name not in _FUNCTIONS:
            raise wrong(f"activation '{names[index]}' is not one of ONNX", node=self.node.proto)
        defaults, function = _FUNCTIONS[name]
        given = [self._parameter(kind, names, index) for kind in ("alpha", "beta")]
        return function(g, x, *(own if value is None else value for own, value in zip(defaults, given, strict=False)))

    def _parameter(self, kind: str, names: Sequence[str], index: int) -> float | None:
        """alpha or beta of an activation: the lists hold those of the activations that have one, in their order."""
        values = self.node.attr(f"activation_{kind}") or []
        place = 0 if kind == "alpha" else 1
        having = [i for i, name in enumerate(names) if len(_FUNCTIONS.get(name.lower(), ((), None))[0]) > place]
        if len(values) == len(names):  # some writers give one for each
            return values[index]
        return values[having.index(index)] if index in having and having.index(index) < len(values) else None


# --------------------------------------------------------------------------------------------------------- activations
def _affine(g: Any, x: Value, alpha: float, beta: float) -> Value:
    return calculate(g, "+", calculate(g, "*", x, alpha), beta)


def _leaky(g: Any, x: Value, alpha: float) -> Value:
    return g.emit("LeakyReLU", [x], act_type="leaky", slope=alpha)


def _thresholded(g: Any, x: Value, alpha: float) -> Value:
    return calculate(g, "*", x, calculate(g, "<=", alpha, x))


def _scaled_tanh(g: Any, x: Value, alpha: float, beta: float) -> Value:
    return calculate(g, "*", g.emit("tanh", [calculate(g, "*", x, beta)]), alpha)


def _hard_sigmoid(g: Any, x: Value, alpha: float, beta: float) -> Value:
    return g.emit("hard_sigmoid", [x], alpha=alpha, beta=beta)


def _elu(g: Any, x: Value, alpha: float) -> Value:
    return g.emit("LeakyReLU", [x], act_type="elu", slope=alpha)


def _plain(op: str, **attributes: Any) -> Callable[..., Value]:
    return lambda g, x: g.emit(op, [x], **attributes)


# The defaults of alpha and beta, and the function.
_FUNCTIONS: dict[str, tuple[tuple[float, ...], Callable[..., Value]]] = {
    "affine": ((1.0, 0.0), _affine),
    "relu": ((), _plain("relu")),
    "leakyrelu": ((0.01,), _leaky),
    "thresholdedrelu": ((1.0,), _thresholded),
    "tanh": ((), _plain("tanh")),
    "scaledtanh": ((1.0, 1.0), _scaled_tanh),
    "sigmoid": ((), _plain("sigmoid")),
    "hardsigmoid": ((0.2, 0.5), _hard_sigmoid),
    "elu": ((1.0,), _elu),
    "softsign": ((), _plain("softsign")),
    "softplus": ((), _plain("Activation", act_type="softrelu")),
}


# --------------------------------------------------------------------------------------------------------------- steps
def _product(g: Any, x: Value, weight: Value, bias: Value | None = None) -> Value:
    return g.emit(
        "FullyConnected",
        [x, weight, *([] if bias is None else [bias])],
        num_hidden=g.dim(weight, 0),
        no_bias=bias is None,
        flatten=False,
    )


def _rnn(g: Any, cell: Cell, x: Value, states: Sequence[Value]) -> list[Value]:
    return [cell.activate(g, 0, calculate(g, "+", x, _product(g, states[0], cell.recurrent)))]


def _lstm(g: Any, cell: Cell, x: Value, states: Sequence[Value]) -> list[Value]:
    hidden, memory = states
    gates = calculate(g, "+", x, _product(g, hidden, cell.recurrent))

    def gate(number: int, weight: int, state: Value) -> Value:
        own = cell.part(g, gates, number)
        if cell.peepholes is None:
            return own
        return calculate(g, "+", own, calculate(g, "*", cell.part(g, cell.peepholes, weight), state))

    input_gate = cell.activate(g, 0, gate(0, 0, memory))
    if cell.node.attr("input_forget", 0):
        forget_gate = calculate(g, "-", 1, input_gate)
    else:
        forget_gate = cell.activate(g, 0, gate(2, 2, memory))
    new = cell.activate(g, 1, cell.part(g, gates, 3))
    memory = calculate(g, "+", calculate(g, "*", forget_gate, memory), calculate(g, "*", input_gate, new))
    output_gate = cell.activate(g, 0, gate(1, 1, memory))
    # ONNX's text clips the input of every activation; onnxruntime does not clip the cell state, and neither do we.
    return [calculate(g, "*", output_gate, cell.activate(g, 2, memory, limited=False)), memory]


def _gru(g: Any, cell: Cell, x: Value, states: Sequence[Value]) -> list[Value]:
    hidden, width = states[0], cell.hidden
    both = cut(g, cell.recurrent, 0, 0, 2 * width)
    candidate = cut(g, cell.recurrent, 0, 2 * width, 3 * width)
    gates = calculate(g, "+", cut(g, x, 1, 0, 2 * width), _product(g, hidden, both))
    update = cell.activate(g, 0, cell.part(g, gates, 0))
    reset = cell.activate(g, 0, cell.part(g, gates, 1))
    bias = None if cell.bias is None else cut(g, cell.bias, 0, 5 * width, 6 * width)
    if cell.node.attr("linear_before_reset", 0):
        rest = calculate(g, "*", reset, _product(g, hidden, candidate, bias))
    else:
        rest = _product(g, calculate(g, "*", reset, hidden), candidate, bias)
    new = cell.activate(g, 1, calculate(g, "+", cell.part(g, x, 2), rest))
    kept = calculate(g, "*", update, hidden)
    return [calculate(g, "+", calculate(g, "*", calculate(g, "-", 1, update), new), kept)]


CELLS = {
    "RNN": Kind(1, ["Tanh"], _rnn),
    "LSTM": Kind(4, ["Sigmoid", "Tanh", "Tanh"], _lstm),
    "GRU": Kind(3, ["Sigmoid", "Tanh"], _gru),
}


def _products_of_inputs(g: Any, cell: Cell, x: Value) -> Value:
    """The inputs of all steps by their weights, with both biases; GRU adds that of its last gate by itself."""
    width, gates = cell.hidden, cell.kind.gates
    if cell.bias is None:
        return _product(g, x, cell.weight)
    bias = cut(g, cell.bias, 0, 0, gates * width)
    recurrent = cut(g, cell.bias, 0, gates * width, 2 * gates * width)
    if cell.node.op_type == "GRU":
        zeros = g.emit("zeros_like", [cut(g, bias, 0, 0, width)])
        recurrent = join(g, [cut(g, recurrent, 0, 0, 2 * width), zeros], 0)
    return _product(g, x, cell.weight, calculate(g, "+", bias, recurrent))


def run_cell(g: Any, cell: Cell, x: Value, states: Sequence[Value], lengths: Value | None) -> tuple[Value, list[Value]]:
    """Runs the cell over the steps of x (steps, batch, inputs); returns all outputs, and the last states."""
    data = [_products_of_inputs(g, cell, x)]
    if lengths is not None:
        data.append(count(g, g.dim(x, 0), "int64", [-1, 1]))
        lengths = g.reshape(g.cast(lengths, "int64"), [-1, 1])
    around = [value for value in (cell.recurrent, cell.bias, cell.peepholes, lengths) if value is not None]
    _ = [value.symbol for value in around]  # creates these symbols in the graph around the loop
    made: list[Value] = []

    def body(slices: list[Any], carried: list[Any]) -> Any:
        row, *number = (
            slot("step", value, symbol, [shape[1:] for shape in value.shapes])
            for value, symbol in zip(data, slices, strict=True)
        )
        old = [slot("state", value, symbol) for value, symbol in zip(states, carried, strict=True)]
        with inside(g):
            new = cell.kind.step(g, cell, row, old)
            out = new[0]
            if lengths is not None:
                goes_on = g.cast(calculate(g, "<", g.reshape(number[0], [1, 1]), lengths), row.dtype)
                new = [_chosen(g, goes_on, one, other) for one, other in zip(new, old, strict=True)]
                out = calculate(g, "*", out, goes_on)
            made[:] = [out]
            return [out.symbol], [value.symbol for value in new]

    with np_shape(True):
        outs, last = contrib.foreach(
            body, [value.symbol for value in data], [value.symbol for value in states], name=g.unique(cell.node.name)
        )
    steps = [shape[0] for shape in x.shapes]
    shapes = [(steps[i], *shape) for i, shape in enumerate(made[0].shapes)]
    return slot("outputs", made[0], outs[0], shapes), [
        slot("state", value, symbol) for value, symbol in zip(states, last, strict=True)
    ]


def _chosen(g: Any, flag: Value, new: Value, old: Value) -> Value:
    """The new state where the flag is 1, else the old one."""
    rest = calculate(g, "-", 1, flag)
    return calculate(g, "+", calculate(g, "*", new, flag), calculate(g, "*", old, rest))
