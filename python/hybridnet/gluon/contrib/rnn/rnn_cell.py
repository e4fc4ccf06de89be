"""Variational dropout, LSTM with projection, and unrolling with a loop operator."""

from __future__ import annotations

from typing import Any

from ...._public_names import dir_of
from ...nn._arguments import positive
from ...parameter import tensor_types
from ...rnn._modifier_cells import ModifierCell, _check_steps
from ...rnn._sequences import begin_state_of, format_sequence, is_traced_sequence, mask_beyond
from ...rnn._unrolling import Attributes, run_steps
from ...rnn.rnn_cell import LSTMCell, RecurrentCell

__all__ = ["LSTMPCell", "VariationalDropoutCell", "dynamic_unroll"]


class VariationalDropoutCell(ModifierCell):
    """Dropout with one mask for all steps of a sequence, in training. Source: Gal and Ghahramani, arXiv 1512.05287.

    Parameters
    ----------
    base_cell : RecurrentCell
    drop_inputs, drop_states, drop_outputs : float, default 0
        Dropout rates; only the first state is dropped.

    Raises ParamError for drop_states of a BidirectionalCell, which has no steps.
    """

    def __init__(
        self, base_cell: RecurrentCell, drop_inputs: float = 0.0, drop_states: float = 0.0, drop_outputs: float = 0.0
    ) -> None:
        if drop_states:
            _check_steps(base_cell, "variational state dropout")
        super().__init__(base_cell)
        self.drop_inputs = drop_inputs
        self.drop_states = drop_states
        self.drop_outputs = drop_outputs
        self._masks: dict[str, Any] = {}

    def _alias(self) -> str:
        return "vardrop"

    def reset(self) -> None:
        """Deletes the masks: the next step draws new ones."""
        super().reset()
        self._masks = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"

    def _drop(self, F: Any, what: str, rate: float, value: Any) -> Any:
        if not rate:
            return value
        mask = self._masks.get(what)
        # A mask of another mode (an array while tracing, or vice versa) belongs to another sequence.
        if type(mask) is not type(value):
            mask = self._masks[what] = F.Dropout(F.ones_like(value), p=rate)
        return value * mask

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        first = self._drop(F, "states", self.drop_states, states[0])
        inputs = self._drop(F, "inputs", self.drop_inputs, inputs)
        output, states = self.base_cell(inputs, [first, *states[1:]])
        return self._drop(F, "outputs", self.drop_outputs, output), states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Runs the wrapped cell with one mask for all steps. Arguments: see RecurrentCell.unroll."""
        self.reset()
        states = begin_state_of(self, begin_state, inputs, layout)
        inputs, axis, functions, _ = format_sequence(length, inputs, layout, True)
        if self.drop_inputs:
            inputs = functions.Dropout(inputs, p=self.drop_inputs, axes=(axis,))
        outputs, states = self._unroll_base(functions, length, inputs, states, layout, valid_length)
        if self.drop_outputs:
            outputs = functions.Dropout(outputs, p=self.drop_outputs, axes=(axis,))
        if valid_length is not None:
            outputs = mask_beyond(functions, outputs, length, valid_length, axis, True)
        if merge_outputs is None:
            merge_outputs = self._gives_array(valid_length is not None, True)
        return format_sequence(length, outputs, layout, merge_outputs)[0], states

    def _unroll_base(
        self, functions: Any, length: int, inputs: Any, states: list[Any], layout: str, valid_length: Any
    ) -> tuple[Any, list[Any]]:
        """Unrolls the wrapped cell over one array; only its first state is dropped."""
        if not self.drop_states:
            with self._unwrapped() as cell:
                return cell.unroll(length, inputs, states, layout, True, valid_length)
        mask = functions.Dropout(functions.ones_like(states[0]), p=self.drop_states)

        def step(x: Any, before: list[Any]) -> tuple[Any, list[Any]]:
            return self.base_cell(x, [before[0] * mask, *before[1:]])

        return run_steps(self.base_cell, step, length, inputs, states, layout, True, valid_length)

    def _gives_array(self, ends: bool, given: bool) -> bool:
        return ends or not self.drop_states


class LSTMPCell(LSTMCell):
    """LSTM whose output is projected to projection_size. Source: Sak et al., arXiv 1402.1128.

    States: output (N, projection_size) and memory (N, hidden_size).

    Parameters
    ----------
    hidden_size, projection_size : int
    i2h_weight_initializer, h2h_weight_initializer, h2r_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
    input_size : int, default 0
        0: found from the first batch.
    """

    def __init__(
        self,
        hidden_size: int,
        projection_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        h2r_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        self._projection_size = positive("LSTMPCell.projection_size", projection_size)
        super().__init__(
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            prefix,
            params,
        )
        self.h2r_weight = self._make("h2r_weight", (projection_size, hidden_size), h2r_weight_initializer)

    def _recurrent_size(self) -> int:
        return self._projection_size

    def _alias(self) -> str:
        return "lstmp"

    def _extra_repr(self) -> str:
        return f" -> {self._projection_size}"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Output (N, projection_size) and memory (N, hidden_size)."""
        sizes = (self._projection_size, self._hidden_size)
        return [{"shape": (batch_size, size), "__layout__": "NC"} for size in sizes]

    def hybrid_forward(  # type: ignore[override]
        self,
        F: Any,
        inputs: Any,
        states: Any,
        i2h_weight: Any,
        h2h_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
        h2r_weight: Any,
    ) -> Any:
        t = f"t{self._counter}_"
        i2h, h2h = self._maps(F, inputs, states[0], t, (i2h_weight, h2h_weight), (i2h_bias, h2h_bias))
        hidden, memory = self._next(F, i2h, h2h, states[1], t, "hidden")
        output = F.FullyConnected(
            hidden, weight=h2r_weight, num_hidden=self._projection_size, no_bias=True, name=t + "out"
        )
        return output, [output, memory]


def _loop_body(F: Any, cell: RecurrentCell, valid_length: Any) -> Any:
    """The body of foreach: one step. With valid_length, the last state counts steps, and states stop changing there."""
    if valid_length is None:
        return cell
    last = F.cast(valid_length, dtype="float32")

    def step(inputs: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        *old, count = states
        output, new = cell(inputs, old)
        valid = F.broadcast_greater(last, count)
        return output, [*(F.where(valid, after, before) for after, before in zip(new, old, strict=True)), count + 1]

    return step


def dynamic_unroll(
    cell: RecurrentCell,
    inputs: Any,
    begin_state: Any,
    drop_inputs: float = 0,
    drop_outputs: float = 0,
    layout: str = "TNC",
    valid_length: Any = None,
) -> tuple[Any, list[Any]]:
    """Unrolls a cell over a sequence of any length with the operator foreach: the graph holds one step only.

    Parameters
    ----------
    cell : RecurrentCell
    inputs : NDArray or Symbol
        (T, N, C), which is fastest, or (N, T, C) with layout 'NTC'.
    begin_state : list of NDArray or Symbol
    drop_inputs, drop_outputs : float, default 0
        Rates of dropout, with one mask for all steps.
    valid_length : NDArray or Symbol (N,), optional
        Outputs beyond it are zero, and the states are those after each sample's last valid step.

    Returns (outputs in layout, states).
    """
    inputs, axis, F, _ = format_sequence(None, inputs, layout, True)
    if axis != 0:
        inputs = F.swapaxes(inputs, dim1=0, dim2=axis)
    states = [begin_state] if isinstance(begin_state, tensor_types) else list(begin_state)
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(0,))
    attributes = Attributes(cell)
    begin = states if valid_length is None else [*states, F.zeros((1,))]
    outputs, after = F.contrib.foreach(_loop_body(F, cell, valid_length), inputs, begin)
    if is_traced_sequence(inputs, "TNC") and attributes.changed():  # a loop in a graph can only carry its states
        attributes.restore()
        outputs, after = cell.unroll(inputs.shape[0], inputs, states, "TNC", True, valid_length)
    elif valid_length is not None:
        outputs = F.SequenceMask(outputs, sequence_length=valid_length, use_sequence_length=True, axis=0)
        after = after[:-1]
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(0,))
    if axis != 0:
        outputs = F.swapaxes(outputs, dim1=0, dim2=axis)
    return outputs, after


__dir__ = dir_of(__name__)
