"""FusedRNNCell: all layers as one operator, with one vector of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import initializer, ndarray, symbol
from ..errors import ParamError, ShapeError, UnsupportedError
from ..gluon.rnn._sequences import format_sequence
from ..symbol import Symbol
from ._base_cell import BaseRNNCell, RNNParams
from ._cells import DropoutCell, GRUCell, LSTMCell, RNNCell
from ._containers import BidirectionalCell, SequentialRNNCell

__all__ = ["FusedRNNCell"]

_GATES = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")}


class FusedRNNCell(BaseRNNCell):
    """Runs all layers, directions and steps in the operator RNN.

    Parameters
    ----------
    num_hidden : int
    num_layers : int, default 1
    mode : {'lstm', 'gru', 'rnn_relu', 'rnn_tanh'}
    bidirectional : bool, default False
    dropout : float, default 0
        Dropout rate between layers.
    get_next_state : bool, default False
        Whether unroll returns states.
    forget_bias : float, default 1.0
        Initial bias of LSTM's forget gates.
    prefix, params
        See BaseRNNCell; default prefix: mode and '_'.

    Raises ParamError for another mode.
    """

    def __init__(
        self,
        num_hidden: int,
        num_layers: int = 1,
        mode: str = "lstm",
        bidirectional: bool = False,
        dropout: float = 0.0,
        get_next_state: bool = False,
        forget_bias: float = 1.0,
        prefix: str | None = None,
        params: RNNParams | None = None,
    ) -> None:
        if mode not in _GATES:
            raise ParamError(f"FusedRNNCell: mode must be one of {', '.join(_GATES)}", given=repr(mode))
        super().__init__(prefix=f"{mode}_" if prefix is None else prefix, params=params)
        self._num_hidden = num_hidden
        self._num_layers = num_layers
        self._mode = mode
        self._bidirectional = bidirectional
        self._dropout = dropout
        self._get_next_state = get_next_state
        self._directions = "lr" if bidirectional else "l"
        init = initializer.FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self._params.get("parameters", init=init)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """State shapes: (num_layers * directions, N, num_hidden) each; LSTM has output and memory."""
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(2 if self._mode == "lstm" else 1)]

    @property
    def _gate_names(self) -> Sequence[str]:
        return _GATES[self._mode]

    def _parts(self, inputs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yields names and shapes of the parts of the vector, in order."""
        hidden, gates = self._num_hidden, self._gate_names
        for kind in ("weight", "bias"):
            for layer in range(self._num_layers):
                columns = {"i2h": inputs if layer == 0 else hidden * len(self._directions), "h2h": hidden}
                for direction in self._directions:
                    for group in ("i2h", "h2h"):
                        shape = (hidden, columns[group]) if kind == "weight" else (hidden,)
                        for gate in gates:
                            yield f"{self._prefix}{direction}{layer}_{group}{gate}_{kind}", shape

    def unpack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Returns a copy of args with one array per layer, direction and gate. Raises ShapeError for a wrong size."""
        args = dict(args)
        vector = args.pop(str(self._parameter.name))
        hidden, directions = self._num_hidden, len(self._directions)
        upper = (self._num_layers - 1) * (hidden + directions * hidden + 2)
        inputs = vector.size // directions // hidden // len(self._gate_names) - upper - hidden - 2
        position = 0
        for name, shape in self._parts(inputs):
            size = shape[0] * (shape[1] if len(shape) == 2 else 1)
            args[name] = vector[position : position + size].reshape(shape).copy()
            position += size
        if position != vector.size:
            raise ShapeError(f"Invalid parameters size for FusedRNNCell: {vector.size} values do not fit")
        return args

    def pack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Reverses unpack_weights."""
        args = dict(args)
        inputs = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"].shape[1]
        parts = [args.pop(name).reshape((-1,)) for name, _ in self._parts(inputs)]
        args[str(self._parameter.name)] = ndarray.concat(*parts, dim=0)
        return args

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        raise UnsupportedError("FusedRNNCell cannot be stepped. Please use unroll, or unfuse() first.")

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Symbol]]:
        """Runs the operator. Arguments: see BaseRNNCell.unroll; 'TNC' is faster."""
        self.reset()
        inputs, axis, _, _ = format_sequence(length, inputs, layout, True)
        if axis == 1:
            inputs = symbol.swapaxes(inputs, dim1=0, dim2=1)
        states = self.begin_state() if begin_state is None else begin_state
        run: Any = symbol.RNN  # takes the number of states of the mode
        outputs = run(
            inputs,
            self._parameter,
            *states,
            state_size=self._num_hidden,
            num_layers=self._num_layers,
            bidirectional=self._bidirectional,
            p=self._dropout,
            state_outputs=self._get_next_state,
            mode=self._mode,
            name=self._prefix + "rnn",
        )
        next_states: list[Symbol] = []
        if self._get_next_state:
            outputs, *next_states = (outputs[i] for i in range(1 + len(states)))
            for state in next_states:
                state._set_attr(__layout__="LNC")
        if axis == 1:
            outputs = symbol.swapaxes(outputs, dim1=0, dim2=1)
        return format_sequence(length, outputs, layout, merge_outputs)[0], next_states

    def _cell(self, prefix: str) -> BaseRNNCell:
        if self._mode == "lstm":
            return LSTMCell(self._num_hidden, prefix=prefix)
        if self._mode == "gru":
            return GRUCell(self._num_hidden, prefix=prefix)
        return RNNCell(self._num_hidden, activation=self._mode[len("rnn_") :], prefix=prefix)

    def unfuse(self) -> SequentialRNNCell:
        """Returns cells that compute the same, step by step; unpack_weights returns their weights by gate."""
        stack = SequentialRNNCell()
        for i in range(self._num_layers):
            cells = [self._cell(f"{self._prefix}{direction}{i}_") for direction in self._directions]
            if self._bidirectional:
                stack.add(BidirectionalCell(cells[0], cells[1], output_prefix=f"{self._prefix}bi_l{i}_"))
            else:
                stack.add(cells[0])
            if self._dropout > 0 and i != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{i}_"))
        return stack
