"""RNNCell, LSTMCell, GRUCell, and DropoutCell (which has no weights)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import initializer, symbol
from ..gluon.rnn._sequences import format_sequence
from ..symbol import Symbol
from ._base_cell import BaseRNNCell, RNNParams

__all__ = ["DropoutCell", "GRUCell", "LSTMCell", "RNNCell"]


class _DenseCell(BaseRNNCell):
    """Base of cells with fully connected maps from input and state to all gates at once."""

    _gates: Sequence[str] = ("",)
    _states = 1

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, bias_init: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._num_hidden = num_hidden
        variables = self.params
        self._weights = {
            "i2h": (variables.get("i2h_weight"), variables.get("i2h_bias", init=bias_init)),
            "h2h": (variables.get("h2h_weight"), variables.get("h2h_bias")),
        }
        self._own_params = params is None

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """State shapes: (N, num_hidden) each; LSTM has output and memory."""
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"} for _ in range(self._states)]

    @property
    def _gate_names(self) -> Sequence[str]:
        return self._gates

    def _map(self, group: str, data: Symbol, name: str) -> Symbol:
        weight, bias = self._weights[group]
        rows = self._num_hidden * len(self._gates)
        return symbol.FullyConnected(data=data, weight=weight, bias=bias, num_hidden=rows, name=f"{name}{group}")


class RNNCell(_DenseCell):
    """Computes ``h' = activation(i2h(x) + h2h(h))``.

    num_hidden: units; activation: name or callable; prefix, params: see BaseRNNCell.
    """

    def __init__(
        self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_", params: RNNParams | None = None
    ) -> None:
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        total = self._map("i2h", inputs, name) + self._map("h2h", states[0], name)
        output = self._get_activation(total, self._activation, name=name + "out")
        return output, [output]


class LSTMCell(_DenseCell):
    """Long short-term memory; gates in the order input, forget, candidate, output.

    num_hidden: units; forget_bias: initial bias of the forget gate; prefix, params: see BaseRNNCell.
    """

    _gates = ("_i", "_f", "_c", "_o")
    _states = 2

    def __init__(
        self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None, forget_bias: float = 1.0
    ) -> None:
        super().__init__(num_hidden, prefix, params, initializer.LSTMBias(forget_bias=forget_bias))

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        total = self._map("i2h", inputs, name) + self._map("h2h", states[0], name)
        gates = symbol.SliceChannel(total, num_outputs=4, name=name + "slice")
        in_gate = symbol.Activation(gates[0], act_type="sigmoid", name=name + "i")
        forget = symbol.Activation(gates[1], act_type="sigmoid", name=name + "f")
        candidate = symbol.Activation(gates[2], act_type="tanh", name=name + "c")
        out_gate = symbol.Activation(gates[3], act_type="sigmoid", name=name + "o")
        memory = symbol.elemwise_add(forget * states[1], in_gate * candidate, name=name + "state")
        output = symbol.elemwise_mul(out_gate, symbol.Activation(memory, act_type="tanh"), name=name + "out")
        return output, [output, memory]


class GRUCell(_DenseCell):
    """Gated recurrent unit in cuDNN's form; gates in the order reset, update, candidate.

    num_hidden: units; prefix, params: see BaseRNNCell.
    """

    _gates = ("_r", "_z", "_o")

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None) -> None:
        super().__init__(num_hidden, prefix, params)

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h = symbol.SliceChannel(self._map("i2h", inputs, name), num_outputs=3, name=name + "i2h_slice")
        h2h = symbol.SliceChannel(self._map("h2h", states[0], name), num_outputs=3, name=name + "h2h_slice")
        reset = symbol.Activation(i2h[0] + h2h[0], act_type="sigmoid", name=name + "r_act")
        update = symbol.Activation(i2h[1] + h2h[1], act_type="sigmoid", name=name + "z_act")
        candidate = symbol.Activation(i2h[2] + reset * h2h[2], act_type="tanh", name=name + "h_act")
        output = symbol.elemwise_add((1.0 - update) * candidate, update * states[0], name=name + "out")
        return output, [output]


class DropoutCell(BaseRNNCell):
    """Dropout of the inputs, at rate dropout; no states."""

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None) -> None:
        super().__init__(prefix, params)
        self.dropout = dropout

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """There are no states."""
        return []

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        return (symbol.Dropout(data=inputs, p=self.dropout) if self.dropout > 0 else inputs), states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Symbol]]:
        """Applies dropout to a merged sequence at once. Arguments: see BaseRNNCell.unroll."""
        self.reset()
        inputs = format_sequence(length, inputs, layout, merge_outputs)[0]
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs)
