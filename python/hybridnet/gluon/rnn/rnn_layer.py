"""Recurrent layers: a whole sequence, all layers and directions, as one operator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ... import ndarray, symbol
from ..._public_names import dir_of
from ...errors import ParamError, ShapeError, UnsupportedError
from ...ndarray import NDArray
from ...util import is_np_shape
from .._hybrid_block import HybridBlock
from .._numpy_border import for_user
from ..nn._arguments import fraction, one_of, positive, unknown_or_positive
from ..parameter import Parameter, tensor_types
from . import rnn_cell
from ._sequences import zeros_for_batch

__all__ = ["GRU", "LSTM", "RNN"]

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
_MOST_LAYERS = 16  # more than these as second positional argument are a size
_PARAMETER = re.compile(r"([lr])(\d+)_(i2h|h2h|h2r)_(weight|bias)\Z")


def _size_as_layers(layer: str, hidden: Any, layers: int) -> ParamError:
    return ParamError(
        f"{layer}: the second argument, num_layers",
        expected=f"1 to {_MOST_LAYERS}",
        given=str(layers),
        because="the arguments are (hidden_size, num_layers), and the first batch determines the input size",
        fix=f"for {hidden} inputs and a state of {layers} write rnn.{layer}({layers}, input_size={hidden}); for so "
        f"many layers num_layers={layers}",
    )


class _RNNLayer(HybridBlock):
    """Base of RNN, LSTM and GRU. Arguments: see LSTM."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 and isinstance(args[1], int) and args[1] > _MOST_LAYERS and cls.__module__ == __name__:
            raise _size_as_layers(cls.__name__, *args[:2])
        return super().__new__(cls, *args, **kwargs)

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        layout: str,
        dropout: float,
        bidirectional: bool,
        input_size: int,
        i2h_weight_initializer: Any,
        h2h_weight_initializer: Any,
        i2h_bias_initializer: Any,
        h2h_bias_initializer: Any,
        mode: str,
        projection_size: int | None,
        h2r_weight_initializer: Any,
        lstm_state_clip_min: float | None,
        lstm_state_clip_max: float | None,
        lstm_state_clip_nan: bool,
        dtype: Any,
        use_sequence_length: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        layer = type(self).__name__
        self._hidden_size = positive(f"{layer}.hidden_size", hidden_size)
        self._num_layers = positive(f"{layer}.num_layers", num_layers)
        self._input_size = unknown_or_positive(f"{layer}.input_size", input_size)
        self._projection_size = positive(f"{layer}.projection_size", projection_size) if projection_size else None
        self._layout = one_of(f"{layer}.layout", layout, ("TNC", "NTC"))
        fraction(f"{layer}.dropout", dropout)
        self._mode = mode
        self._gates = _GATES[mode]
        self._dropout = dropout
        self._dir = 2 if bidirectional else 1
        self._dtype = dtype
        self._use_sequence_length = use_sequence_length
        self._clip = {
            "lstm_state_clip_min": lstm_state_clip_min,
            "lstm_state_clip_max": lstm_state_clip_max,
            "lstm_state_clip_nan": lstm_state_clip_nan,
        }
        self._initializers = {
            "i2h_weight_initializer": i2h_weight_initializer,
            "h2h_weight_initializer": h2h_weight_initializer,
            "i2h_bias_initializer": i2h_bias_initializer,
            "h2h_bias_initializer": h2h_bias_initializer,
        }
        self._make_parameters(h2r_weight_initializer)

    def _make_parameters(self, h2r_weight_initializer: Any) -> None:
        rows, inputs = self._gates * self._hidden_size, self._input_size
        outputs = self._projection_size or self._hidden_size
        for layer in range(self._num_layers):
            for direction in "lr"[: self._dir]:
                shapes: dict[str, tuple[int, ...]] = {"i2h_weight": (rows, inputs), "h2h_weight": (rows, outputs)}
                shapes.update(i2h_bias=(rows,), h2h_bias=(rows,))
                for name, shape in shapes.items():
                    self._make(f"{direction}{layer}_{name}", shape, self._initializers[f"{name}_initializer"])
                if self._projection_size:
                    self._make(f"{direction}{layer}_h2r_weight", (outputs, self._hidden_size), h2r_weight_initializer)
            inputs = outputs * self._dir

    def _make(self, name: str, shape: tuple[int, ...], init: Any) -> None:
        param = self.params.get(name, shape=shape, init=init, allow_deferred_init=True, dtype=self._dtype)
        setattr(self, name, param)

    def __repr__(self) -> str:
        inputs = self.l0_i2h_weight.shape[1]
        text = f"{type(self).__name__}({inputs if inputs > 0 else None} -> {self._hidden_size}, {self._layout}"
        if self._num_layers != 1:
            text += f", num_layers={self._num_layers}"
        if self._dropout != 0:
            text += f", dropout={self._dropout}"
        return text + (", bidirectional)" if self._dir == 2 else ")")

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        # Parameter names in files follow MXNet: the names of the cells that _unfuse makes.
        if prefix:
            prefix += "."
        result = {}
        for key, param in self._reg_params.items():
            direction, layer, group, kind = _PARAMETER.match(key).groups()  # type: ignore[union-attr]
            cell = f"{direction}_cell." if self._dir == 2 else ""
            result[f"{prefix}_unfused.{layer}.{cell}{group}_{kind}"] = param
        for name, child in self._children.items():
            result.update(child._collect_params_with_prefix(prefix + name))
        return result

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Returns shape, layout and element type of each state: (num_layers * directions, N, hidden_size)."""
        shape = (self._num_layers * self._dir, batch_size, self._hidden_size)
        return [{"shape": shape, "__layout__": "LNC", "dtype": self._dtype}]

    def cast(self, dtype: Any) -> None:
        """Converts parameters, and the states that begin_state creates, to another element type."""
        super().cast(dtype)
        self._dtype = dtype

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = ndarray.zeros, **kwargs: Any) -> list[Any]:
        """Returns the initial states. Arguments: see RecurrentCell.begin_state."""
        return for_user(
            [
                func(name=f"{self.prefix}h0_{i}", **{**info, **kwargs})
                for i, info in enumerate(self.state_info(batch_size))
            ]
        )

    def __call__(self, inputs: Any, states: Any = None, sequence_length: Any = None, **kwargs: Any) -> Any:
        """Runs the layer over a sequence; without states it starts from zeros and returns the outputs only."""
        skip_states = states is None
        self._learn_input_size(inputs)
        if states is None:
            if isinstance(inputs, NDArray):
                batch_size = inputs.shape[self._layout.find("N")]
                states = self.begin_state(batch_size, ctx=inputs.context, dtype=inputs.dtype)
            else:
                # A size of 0 is inferred later, but with NumPy's shapes 0 is a valid size.
                batch_axis = self._layout.find("N")
                states = self.begin_state(
                    0, func=zeros_for_batch(inputs, batch_axis) if is_np_shape() else symbol.zeros
                )
        elif isinstance(states, tensor_types):
            states = [states]
        if not skip_states and isinstance(inputs, NDArray):
            self._check_states(inputs, states)
        args = (sequence_length,) if self._use_sequence_length else ()
        outputs, states = super().__call__(inputs, list(states), *args, **kwargs)
        return outputs if skip_states else (outputs, states)

    def _learn_input_size(self, inputs: Any) -> None:
        # Inference cannot find it for two directions: only the sum of two unknown sizes in the packed vector is known.
        if self.l0_i2h_weight.shape[1] > 0:
            return
        shape = inputs.shape if isinstance(inputs, NDArray) else getattr(inputs, "_spec", (None,))[0]
        if shape is not None and len(shape) == 3 and shape[2] > 0:
            for direction in "lr"[: self._dir]:
                param = self._reg_params[f"{direction}0_i2h_weight"]
                param.shape = ((param.shape or (0,))[0], shape[2])

    def infer_shape(self, inputs: Any, *args: Any) -> None:
        """Infers the parameters' unknown sizes. Arguments: see forward."""
        self._learn_input_size(inputs)
        super().infer_shape(inputs, *args)

    def _check_states(self, inputs: NDArray, states: list[Any]) -> None:
        expected = self.state_info(inputs.shape[self._layout.find("N")])
        if len(states) != len(expected):
            raise ShapeError(type(self).__name__, expected=f"{len(expected)} recurrent states", given=str(len(states)))
        for state, info in zip(states, expected, strict=True):
            if state.shape != info["shape"]:
                raise ShapeError(f"Invalid recurrent state shape. Expecting {info['shape']}", given=str(state.shape))

    def hybrid_forward(  # type: ignore[override]  # states and lengths by name, parameters in kwargs
        self, F: Any, inputs: Any, states: Any, sequence_length: Any = None, **kwargs: Any
    ) -> Any:
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, 0, 1)
        if self._use_sequence_length:
            states = [*states, sequence_length]
        outputs, *states = F.RNN(
            inputs,
            self._packed(F, kwargs),
            *states,
            use_sequence_length=self._use_sequence_length,
            state_size=self._hidden_size,
            projection_size=self._projection_size,
            num_layers=self._num_layers,
            bidirectional=self._dir == 2,
            p=self._dropout,
            state_outputs=True,
            mode=self._mode,
            **self._clip,
        )
        if self._layout == "NTC":
            outputs = F.swapaxes(outputs, 0, 1)
        return outputs, states

    def _packed(self, F: Any, params: dict[str, Any]) -> Any:
        """Returns all weights, then all biases, as one vector: layer by layer, direction by direction."""
        parts: list[Any] = []
        for kind in ("weight", "bias"):
            groups = ("i2h", "h2h", "h2r") if self._projection_size and kind == "weight" else ("i2h", "h2h")
            for layer in range(self._num_layers):
                for direction in "lr"[: self._dir]:
                    parts.extend(F.reshape(params[f"{direction}{layer}_{g}_{kind}"], shape=(-1,)) for g in groups)
        return F._internal._rnn_param_concat(*parts, dim=0)

    def _cell(self, **kwargs: Any) -> Any:
        if self._mode == "lstm":
            return rnn_cell.LSTMCell(self._hidden_size, **kwargs)
        if self._mode == "gru":
            return rnn_cell.GRUCell(self._hidden_size, **kwargs)
        return rnn_cell.RNNCell(self._hidden_size, activation=self._mode[len("rnn_") :], **kwargs)

    def _unfuse(self) -> rnn_cell.HybridSequentialRNNCell:
        """Returns cells with the same parameters. Raises UnsupportedError with projection or clipping."""
        if self._projection_size or any(value not in (None, False) for value in self._clip.values()):
            raise UnsupportedError(f"{type(self).__name__}._unfuse: cells have neither projection nor clipped states")
        stack = rnn_cell.HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        inputs = self._input_size
        with stack.name_scope():
            for layer in range(self._num_layers):
                cells = [
                    self._cell(prefix=f"{direction}{layer}_", input_size=inputs, **self._initializers)
                    for direction in "lr"[: self._dir]
                ]
                stack.add(rnn_cell.BidirectionalCell(*cells) if self._dir == 2 else cells[0])
                if self._dropout > 0 and layer != self._num_layers - 1:
                    stack.add(rnn_cell.DropoutCell(self._dropout))
                inputs = self._hidden_size * self._dir
        return stack


class RNN(_RNNLayer):
    """Layers of ``h' = activation(i2h_weight x + i2h_bias + h2h_weight h + h2h_bias)``.

    activation: 'relu' or 'tanh'; other arguments and shapes: see LSTM; one state.
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        activation: str = "relu",
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        one_of("RNN.activation", activation, ("relu", "tanh"))
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "rnn_" + activation,
            None,
            None,
            None,
            None,
            False,
            dtype,
            **kwargs,
        )


class LSTM(_RNNLayer):
    """Layers of long short-term memory (see LSTMCell).

    Shapes, layout 'TNC': inputs (T, N, input_size); outputs (T, N, directions * hidden_size), or projection_size;
    states h and c (num_layers * directions, N, hidden_size), h with projection_size.

    Parameters
    ----------
    hidden_size : int
    num_layers : int, default 1
    layout : {'TNC', 'NTC'}
        Layout of inputs and outputs.
    dropout : float, default 0
        Dropout rate between layers, in training.
    bidirectional : bool, default False
        Whether each layer also runs backwards; outputs of both directions are joined.
    input_size : int, default 0
        0: found from the first batch.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
    projection_size : int, optional
        Size that outputs are projected to. Source: Sak et al., arXiv 1402.1128.
    h2r_weight_initializer : initializer of the projection
    state_clip_min, state_clip_max : float, optional
        Bounds of the memory cell.
    state_clip_nan : bool, default False
        Whether clipping also replaces NaN.
    dtype : default 'float32'
    use_sequence_length : bool, default False
        Whether calls take the valid lengths (N,) as third argument.

    Call ``layer(inputs)`` for outputs, ``layer(inputs, states)`` for (outputs, states).
    Raises ParamError for wrong arguments, ShapeError for states that do not fit.
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        state_clip_min: float | None = None,
        state_clip_max: float | None = None,
        state_clip_nan: bool = False,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "lstm",
            projection_size,
            h2r_weight_initializer,
            state_clip_min,
            state_clip_max,
            state_clip_nan,
            dtype,
            **kwargs,
        )

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """State shapes: output, memory (num_layers * directions, N, hidden_size), the output with projection_size."""
        (memory,) = super().state_info(batch_size)
        shape = (*memory["shape"][:2], self._projection_size or self._hidden_size)
        return [{**memory, "shape": shape}, memory]


class GRU(_RNNLayer):
    """Layers of gated recurrent units (see GRUCell). Arguments and shapes: see LSTM, without projection; one state."""

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "gru",
            None,
            None,
            None,
            None,
            False,
            dtype,
            **kwargs,
        )


__dir__ = dir_of(__name__)
