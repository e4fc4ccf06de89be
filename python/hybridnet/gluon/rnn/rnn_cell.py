"""Recurrent cells: the base, and RNN, LSTM and GRU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import ndarray
from ..._lazy_names import names_from
from ..._public_names import dir_of
from ...errors import ParamError, not_overridden
from .._hybrid_block import HybridBlock
from .._numpy_border import for_user
from ..block import Block
from ..nn._arguments import positive, unknown_or_positive
from ..nn.activations import LeakyReLU
from ._sequences import begin_state_of
from ._unrolling import run_steps

__all__ = [
    "GRUCell",
    "HybridRecurrentCell",
    "LSTMCell",
    "RNNCell",
    "RecurrentCell",
]


class RecurrentCell(Block):
    """Base of recurrent cells. A call is one step: ``output, states = cell(input, states)``.

    Subclasses define state_info and forward(inputs, states) or, derived from HybridRecurrentCell, hybrid_forward. A
    cell that stores values for the next step in its attributes is unrolled step by step in graphs; reset deletes them.
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Resets the step counter; unroll calls it."""
        self._init_counter = -1
        self._counter = -1
        for cell in self._children.values():
            if isinstance(cell, RecurrentCell):
                cell.reset()

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Returns shape and layout of each state: ``[{"shape": (batch_size, n), "__layout__": "NC"}]``."""
        raise not_overridden(self, "state_info()")

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = ndarray.zeros, **kwargs: Any) -> list[Any]:
        """Returns the initial states.

        Parameters
        ----------
        batch_size : int, default 0
            0 is allowed only with functions of mx.sym: inference finds the size.
        func : callable, default mx.nd.zeros
            Creates a state from name=, shape= and kwargs: mx.nd.ones, mx.sym.zeros, mx.sym.var.

        Raises ParamError if a modifier (ZoneoutCell, ...) holds this cell.
        """
        self._check_not_modified()
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**(info or {}), **kwargs}))
        return for_user(states)

    def _check_not_modified(self) -> None:
        if self._modified:
            raise ParamError(
                f"cell {self.name} is inside a modifier cell (such as ZoneoutCell), which changes how it steps",
                fix="call the modifier cell instead",
            )

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: Any = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list[Any]]:
        """Runs the cell over a sequence.

        Parameters
        ----------
        length : int
            Number of steps.
        inputs : NDArray or Symbol, or list of them
            A whole sequence in layout, or one (N, C) per step.
        begin_state : list, optional
            Default: zeros.
        layout : str, default 'NTC'
            Layout of inputs, if they are one array, and of merged outputs.
        merge_outputs : bool, optional
            True: one array; False: a list of steps; None: the form that needs no conversion.
        valid_length : NDArray or Symbol (N,), optional
            Outputs beyond it are zero, and the states are those after each sample's last valid step.

        Returns (outputs, states). Raises ShapeError if length disagrees with inputs, ParamError for a bad layout.

        In a hybridized block, a sequence that is one array becomes one loop (``foreach``) of the graph.
        """
        self.reset()
        states = begin_state_of(self, begin_state, inputs, layout)
        return run_steps(self, self, length, inputs, states, layout, merge_outputs, valid_length)

    def _gives_array(self, ends: bool, given: bool) -> bool:
        """Whether unroll with merge_outputs=None returns one array. ends: with valid_length; given: from one array."""
        return ends

    def _get_activation(self, F: Any, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """Applies activation to inputs: a name, a LeakyReLU layer, or a callable."""
        if isinstance(activation, str):
            function = {"tanh": "tanh", "relu": "relu", "sigmoid": "sigmoid", "softsign": "softsign"}.get(activation)
            if function is not None:
                return getattr(F, function)(inputs, **kwargs)
            return F.Activation(inputs, act_type=activation, **kwargs)
        if isinstance(activation, LeakyReLU):
            return F.LeakyReLU(inputs, act_type="leaky", slope=activation._alpha, **kwargs)
        return activation(inputs, **kwargs)

    def __call__(self, inputs: Any, states: Any, *args: Any, **kwargs: Any) -> Any:
        """Runs one step: returns (output, next states)."""
        self._counter += 1
        return super().__call__(inputs, states, *args, **kwargs)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """Base of cells that can be hybridized; subclasses define hybrid_forward(F, inputs, states, ...)."""

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        raise not_overridden(self, "hybrid_forward()")


class _GatedCell(HybridRecurrentCell):
    """Base of RNN, LSTM and GRU: input-to-hidden and hidden-to-hidden maps of all gates at once."""

    _gates = 1
    _states = 1

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        layer = type(self).__name__
        self._hidden_size = positive(f"{layer}.hidden_size", hidden_size)
        self._input_size = unknown_or_positive(f"{layer}.input_size", input_size)
        rows = self._gates * hidden_size
        self.i2h_weight = self._make("i2h_weight", (rows, self._input_size), i2h_weight_initializer)
        self.h2h_weight = self._make("h2h_weight", (rows, self._recurrent_size()), h2h_weight_initializer)
        self.i2h_bias = self._make("i2h_bias", (rows,), i2h_bias_initializer)
        self.h2h_bias = self._make("h2h_bias", (rows,), h2h_bias_initializer)

    def _make(self, name: str, shape: tuple[int, ...], init: Any) -> Any:
        return self.params.get(name, shape=shape, init=init, allow_deferred_init=True)

    def _recurrent_size(self) -> int:
        return self._hidden_size

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """The state shapes: one state (N, hidden_size); LSTM: output and memory."""
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"} for _ in range(self._states)]

    def _maps(self, F: Any, inputs: Any, state: Any, t: str, weights: tuple[Any, Any], biases: tuple[Any, Any]) -> Any:
        rows = self._gates * self._hidden_size
        i2h = F.FullyConnected(data=inputs, weight=weights[0], bias=biases[0], num_hidden=rows, name=t + "i2h")
        h2h = F.FullyConnected(data=state, weight=weights[1], bias=biases[1], num_hidden=rows, name=t + "h2h")
        return i2h, h2h

    def __repr__(self) -> str:
        rows, inputs = self.i2h_weight.shape
        return f"{type(self).__name__}({inputs if inputs > 0 else None} -> {rows}{self._extra_repr()})"

    def _extra_repr(self) -> str:
        return ""


class RNNCell(_GatedCell):
    """``h' = activation(i2h_weight x + i2h_bias + h2h_weight h + h2h_bias)``.

    Shapes: input (N, input_size), state (N, hidden_size), output (N, hidden_size).

    Parameters
    ----------
    hidden_size : int
    activation : str or callable, default 'tanh'
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
    input_size : int, default 0
        0: found from the first batch.
    """

    def __init__(
        self,
        hidden_size: int,
        activation: Any = "tanh",
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
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
        self._activation = activation

    def _alias(self) -> str:
        return "rnn"

    def _extra_repr(self) -> str:
        return f", {self._activation}"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        t = f"t{self._counter}_"
        i2h, h2h = self._maps(F, inputs, states[0], t, (i2h_weight, h2h_weight), (i2h_bias, h2h_bias))
        total = F.elemwise_add(i2h, h2h, name=t + "plus0")
        output = self._get_activation(F, total, self._activation, name=t + "out")
        return output, [output]


class LSTMCell(_GatedCell):
    """Long short-term memory: gates in the order input, forget, candidate, output.

    ``c' = f * c + i * g; h' = o * tanh(c')``. States: [h, c], (N, hidden_size) each.
    Source: Hochreiter and Schmidhuber, 1997; forget gate: Gers et al., 2000.

    Parameters
    ----------
    hidden_size : int
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
    input_size : int, default 0
        0: found from the first batch.
    activation : str, default 'tanh'
        Activation of candidate and memory.
    recurrent_activation : str, default 'sigmoid'
        Activation of the gates.
    """

    _gates = 4
    _states = 2

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
    ) -> None:
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
        self._activation = activation
        self._recurrent_activation = recurrent_activation

    def _alias(self) -> str:
        return "lstm"

    def _next(self, F: Any, i2h: Any, h2h: Any, memory: Any, t: str, name: str = "out") -> tuple[Any, Any]:
        """Returns the output gate times the activated memory, and the memory."""
        gates = F.SliceChannel(F.elemwise_add(i2h, h2h, name=t + "plus0"), num_outputs=4, name=t + "slice")
        in_gate = self._get_activation(F, gates[0], self._recurrent_activation, name=t + "i")
        forget = self._get_activation(F, gates[1], self._recurrent_activation, name=t + "f")
        candidate = self._get_activation(F, gates[2], self._activation, name=t + "c")
        out_gate = self._get_activation(F, gates[3], self._recurrent_activation, name=t + "o")
        kept = F.elemwise_mul(forget, memory, name=t + "mul0")
        memory = F.elemwise_add(kept, F.elemwise_mul(in_gate, candidate, name=t + "mul1"), name=t + "state")
        shown = self._get_activation(F, memory, self._activation, name=t + "activation0")
        return F.elemwise_mul(out_gate, shown, name=t + name), memory

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        t = f"t{self._counter}_"
        i2h, h2h = self._maps(F, inputs, states[0], t, (i2h_weight, h2h_weight), (i2h_bias, h2h_bias))
        output, memory = self._next(F, i2h, h2h, states[1], t)
        return output, [output, memory]


class GRUCell(_GatedCell):
    """Gated recurrent unit: gates in the order reset, update, candidate; the reset gate is applied after the product.

    ``h' = (1 - z) * tanh(i2h_n + r * h2h_n) + z * h``. Source: Cho et al., arXiv 1406.1078, in cuDNN's form.
    Arguments: hidden_size, initializers and input_size: see RNNCell.
    """

    _gates = 3

    def _alias(self) -> str:
        return "gru"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any
    ) -> Any:
        t = f"t{self._counter}_"
        before = states[0]
        i2h, h2h = self._maps(F, inputs, before, t, (i2h_weight, h2h_weight), (i2h_bias, h2h_bias))
        i2h_r, i2h_z, i2h_n = F.SliceChannel(i2h, num_outputs=3, name=t + "i2h_slice")
        h2h_r, h2h_z, h2h_n = F.SliceChannel(h2h, num_outputs=3, name=t + "h2h_slice")
        reset = F.Activation(F.elemwise_add(i2h_r, h2h_r, name=t + "plus0"), act_type="sigmoid", name=t + "r_act")
        update = F.Activation(F.elemwise_add(i2h_z, h2h_z, name=t + "plus1"), act_type="sigmoid", name=t + "z_act")
        candidate = F.elemwise_add(i2h_n, F.elemwise_mul(reset, h2h_n, name=t + "mul0"), name=t + "plus2")
        candidate = F.Activation(candidate, act_type="tanh", name=t + "h_act")
        rest = F.elemwise_sub(F.ones_like(update, name=t + "ones_like0"), update, name=t + "minus0")
        output = F.elemwise_add(
            F.elemwise_mul(rest, candidate, name=t + "mul1"),
            F.elemwise_mul(update, before, name=t + "mul20"),
            name=t + "out",
        )
        return output, [output]


# MXNet also has all cells in this module.
__getattr__, __dir__ = names_from(
    __name__,
    {
        "_cell_containers": "BidirectionalCell HybridSequentialRNNCell SequentialRNNCell",
        "_modifier_cells": "DropoutCell ModifierCell ResidualCell ZoneoutCell",
    },
    {"symbol": "...symbol"},
)
__dir__ = dir_of(__name__, __dir__)
