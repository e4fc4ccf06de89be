"""Recurrent cells that use convolutions: states are images.

Sources: Shi et al., arXiv 1506.04214 (LSTM); Ballas et al., arXiv 1511.06432 (GRU).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._public_names import dir_of
from ....errors import ParamError, ShapeError
from ...nn._arguments import one_of, positive
from ...rnn.rnn_cell import HybridRecurrentCell

__all__ = [
    "Conv1DGRUCell",
    "Conv1DLSTMCell",
    "Conv1DRNNCell",
    "Conv2DGRUCell",
    "Conv2DLSTMCell",
    "Conv2DRNNCell",
    "Conv3DGRUCell",
    "Conv3DLSTMCell",
    "Conv3DRNNCell",
]

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


class _ConvCell(HybridRecurrentCell):
    """Base of all convolutional cells: the convolutions of input and state, for all gates at once.

    Arguments: see Conv2DLSTMCell.
    """

    _dims = 1
    _gates = 1
    _states = 1

    def __init__(
        self,
        input_shape: Sequence[int],
        hidden_channels: int,
        i2h_kernel: int | Sequence[int],
        h2h_kernel: int | Sequence[int],
        i2h_pad: int | Sequence[int] = 0,
        i2h_dilate: int | Sequence[int] = 1,
        h2h_dilate: int | Sequence[int] = 1,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str | None = None,
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._hidden_channels = positive(f"{type(self).__name__}.hidden_channels", hidden_channels)
        layouts = _LAYOUTS[self._dims]
        self._layout = one_of(f"{type(self).__name__}.conv_layout", conv_layout or layouts[0], layouts)
        self._channel_axis = self._layout.index("C")
        self._activation = activation
        self._i2h = {
            "kernel": self._sizes("i2h_kernel", i2h_kernel),
            "pad": self._sizes("i2h_pad", i2h_pad),
            "dilate": self._sizes("i2h_dilate", i2h_dilate),
        }
        kernel, dilate = self._sizes("h2h_kernel", h2h_kernel), self._sizes("h2h_dilate", h2h_dilate)
        if any(size % 2 == 0 for size in kernel):
            raise ParamError(f"{type(self).__name__}: Only support odd number, get h2h_kernel= {h2h_kernel}")
        pad = tuple(d * (k - 1) // 2 for d, k in zip(dilate, kernel, strict=True))
        self._h2h = {"kernel": kernel, "pad": pad, "dilate": dilate}
        channels, self._state_shape = self._decide_shapes(tuple(input_shape))
        rows = self._gates * hidden_channels
        weights = (
            ("i2h_weight", self._weight_shape(rows, channels, self._i2h["kernel"]), i2h_weight_initializer),
            ("h2h_weight", self._weight_shape(rows, hidden_channels, kernel), h2h_weight_initializer),
            ("i2h_bias", (rows,), i2h_bias_initializer),
            ("h2h_bias", (rows,), h2h_bias_initializer),
        )
        for name, shape, init in weights:
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))

    def _sizes(self, what: str, value: int | Sequence[int]) -> tuple[int, ...]:
        sizes = (value,) * self._dims if isinstance(value, int) else tuple(value)
        if len(sizes) != self._dims:
            raise ParamError(
                (
                    f"{type(self).__name__}: For {self._dims}D convolution, the convolution settings can only be "
                    f"either int or list/tuple of length {self._dims}"
                ),
                given=f"{what}={value}",
            )
        return sizes

    def _in_layout(self, channels: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return (channels, *sizes) if self._channel_axis == 1 else (*sizes, channels)

    def _weight_shape(self, rows: int, channels: int, kernel: tuple[int, ...]) -> tuple[int, ...]:
        return (rows, *self._in_layout(channels, kernel))

    def _decide_shapes(self, input_shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """Returns the number of input channels, and the state's shape without N."""
        if len(input_shape) != self._dims + 1:
            raise ShapeError(
                f"{type(self).__name__}: input_shape has {self._dims + 1} sizes ({self._layout[1:]})",
                given=str(input_shape),
            )
        channel_first = self._channel_axis == 1
        channels, sizes = (input_shape[0], input_shape[1:]) if channel_first else (input_shape[-1], input_shape[:-1])
        settings = (self._i2h[name] for name in ("kernel", "pad", "dilate"))
        outputs = tuple(x + 2 * p - d * (k - 1) if x else 0 for x, k, p, d in zip(sizes, *settings, strict=True))
        if any(out < 1 for out, size in zip(outputs, sizes, strict=True) if size):
            raise ShapeError(f"{type(self).__name__}: i2h_kernel does not fit into input_shape {input_shape}")
        return channels, self._in_layout(self._hidden_channels, outputs)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """The state shapes: (N, hidden_channels, *sizes) in conv_layout; LSTM has output and memory."""
        shape = (batch_size, *self._state_shape)
        return [{"shape": shape, "__layout__": self._layout} for _ in range(self._states)]

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape
        channels = shape[1 if self._channel_axis == 1 else -1]
        return f"{type(self).__name__}({channels or None} -> {shape[0]}, {self._activation}, {self._layout})"

    def _maps(self, F: Any, inputs: Any, state: Any, t: str, params: dict[str, Any]) -> tuple[Any, Any]:
        common = {
            "num_filter": self._gates * self._hidden_channels,
            "layout": self._layout,
            "stride": (1,) * self._dims,
        }
        i2h = F.Convolution(
            inputs, weight=params["i2h_weight"], bias=params["i2h_bias"], name=t + "i2h", **self._i2h, **common
        )
        h2h = F.Convolution(
            state, weight=params["h2h_weight"], bias=params["h2h_bias"], name=t + "h2h", **self._h2h, **common
        )
        return i2h, h2h

    def _gate_parts(self, F: Any, maps: Any, name: str) -> Any:
        return F.SliceChannel(maps, num_outputs=self._gates, axis=self._channel_axis, name=name)


class _ConvRNNCell(_ConvCell):
    def _alias(self) -> str:
        return "conv_rnn"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]
        t = f"t{self._counter}_"
        i2h, h2h = self._maps(F, inputs, states[0], t, params)
        output = self._get_activation(F, i2h + h2h, self._activation, name=t + "out")
        return output, [output]


class _ConvLSTMCell(_ConvCell):
    _gates = 4
    _states = 2

    def _alias(self) -> str:
        return "conv_lstm"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]
        t = f"t{self._counter}_"
        i2h, h2h = self._maps(F, inputs, states[0], t, params)
        gates = self._gate_parts(F, i2h + h2h, t + "slice")
        in_gate = F.Activation(gates[0], act_type="sigmoid", name=t + "i")
        forget = F.Activation(gates[1], act_type="sigmoid", name=t + "f")
        candidate = self._get_activation(F, gates[2], self._activation, name=t + "c")
        out_gate = F.Activation(gates[3], act_type="sigmoid", name=t + "o")
        memory = F.elemwise_add(forget * states[1], in_gate * candidate, name=t + "state")
        output = F.elemwise_mul(out_gate, self._get_activation(F, memory, self._activation), name=t + "out")
        return output, [output, memory]


class _ConvGRUCell(_ConvCell):
    _gates = 3

    def _alias(self) -> str:
        return "conv_gru"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]
        t = f"t{self._counter}_"
        i2h, h2h = self._maps(F, inputs, states[0], t, params)
        from_input = self._gate_parts(F, i2h, t + "i2h_slice")
        from_state = self._gate_parts(F, h2h, t + "h2h_slice")
        reset = F.Activation(from_input[0] + from_state[0], act_type="sigmoid", name=t + "r_act")
        update = F.Activation(from_input[1] + from_state[1], act_type="sigmoid", name=t + "z_act")
        candidate = self._get_activation(F, from_input[2] + reset * from_state[2], self._activation, name=t + "h_act")
        output = F.elemwise_add((1.0 - update) * candidate, update * states[0], name=t + "out")
        return output, [output]


class Conv1DRNNCell(_ConvRNNCell):
    """``h' = tanh(W * x + R * h + b)`` over (N, C, W). Arguments: see Conv2DLSTMCell, with one spatial size."""

    _dims = 1


class Conv2DRNNCell(_ConvRNNCell):
    """``h' = tanh(W * x + R * h + b)`` over (N, C, H, W). Arguments: see Conv2DLSTMCell."""

    _dims = 2


class Conv3DRNNCell(_ConvRNNCell):
    """``h' = tanh(W * x + R * h + b)`` over (N, C, D, H, W). Arguments: see Conv2DLSTMCell, with three sizes."""

    _dims = 3


class Conv1DLSTMCell(_ConvLSTMCell):
    """LSTM with convolutions over (N, C, W). Arguments: see Conv2DLSTMCell, with one spatial size."""

    _dims = 1


class Conv2DLSTMCell(_ConvLSTMCell):
    """LSTM with convolutions over (N, C, H, W); gates in the order input, forget, candidate, output.

    Parameters
    ----------
    input_shape : tuple of int
        Shape of one sample and step, in conv_layout without N: (channels, *sizes) or (*sizes, channels). Channels may
        be 0: found from the first batch.
    hidden_channels : int
    i2h_kernel, h2h_kernel : int or tuple of int
        h2h_kernel must be odd, so that the state keeps its size.
    i2h_pad, i2h_dilate, h2h_dilate : int or tuple of int
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
    conv_layout : str
        'NCW' or 'NWC', 'NCHW' or 'NHWC', 'NCDHW' or 'NDHWC'.
    activation : str or callable, default 'tanh'

    Raises ParamError, ShapeError for arguments that do not fit.
    """

    _dims = 2


class Conv3DLSTMCell(_ConvLSTMCell):
    """LSTM with convolutions over (N, C, D, H, W). Arguments: see Conv2DLSTMCell, with three spatial sizes."""

    _dims = 3


class Conv1DGRUCell(_ConvGRUCell):
    """GRU with convolutions over (N, C, W); gates reset, update, candidate. Arguments: see Conv2DLSTMCell."""

    _dims = 1


class Conv2DGRUCell(_ConvGRUCell):
    """GRU with convolutions over (N, C, H, W); gates reset, update, candidate. Arguments: see Conv2DLSTMCell."""

    _dims = 2


class Conv3DGRUCell(_ConvGRUCell):
    """GRU with convolutions over (N, C, D, H, W); gates reset, update, candidate. Arguments: see Conv2DLSTMCell."""

    _dims = 3


__dir__ = dir_of(__name__)
