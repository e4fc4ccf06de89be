"""ConvRNNCell, ConvLSTMCell, ConvGRUCell: cells with images as states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .. import symbol
from ..errors import ParamError
from ..symbol import Symbol
from ._base_cell import BaseRNNCell, RNNParams

__all__ = ["BaseConvRNNCell", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell"]

_LEAKY = partial(symbol.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(BaseRNNCell):
    """Base of convolutional cells.

    Parameters
    ----------
    input_shape : tuple of int
        Shape of a batch of one step's input, in conv_layout.
    num_hidden : int
        Channels of the state.
    h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate : pairs of int
        h2h_kernel must be odd, so that the state keeps its size.
    i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer
    activation : str or callable, default leaky ReLU with slope 0.2
    prefix, params
        See BaseRNNCell.
    conv_layout : str, default 'NCHW'

    Raises ParamError for an even h2h_kernel.
    """

    _gates: Sequence[str] = ("",)
    _states = 1
    _default_prefix = ""

    def __init__(
        self,
        input_shape: Sequence[int],
        num_hidden: int,
        h2h_kernel: Sequence[int] = (3, 3),
        h2h_dilate: Sequence[int] = (1, 1),
        i2h_kernel: Sequence[int] = (3, 3),
        i2h_stride: Sequence[int] = (1, 1),
        i2h_pad: Sequence[int] = (1, 1),
        i2h_dilate: Sequence[int] = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        activation: Any = _LEAKY,
        prefix: str | None = None,
        params: RNNParams | None = None,
        conv_layout: str = "NCHW",
    ) -> None:
        super().__init__(prefix=self._default_prefix if prefix is None else prefix, params=params)
        if any(size % 2 == 0 for size in h2h_kernel):
            raise ParamError(f"{type(self).__name__}: Only support odd number, get h2h_kernel= {h2h_kernel}")
        pad = tuple(d * (k - 1) // 2 for d, k in zip(h2h_dilate, h2h_kernel, strict=True))
        self._i2h: dict[str, Any] = {"kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate}
        self._h2h: dict[str, Any] = {"kernel": h2h_kernel, "stride": (1, 1), "pad": pad, "dilate": h2h_dilate}
        self._num_hidden = num_hidden
        self._conv_layout: Any = conv_layout
        self._activation = activation
        data = symbol.Variable("data")
        probe = symbol.Convolution(data, num_filter=num_hidden, **{**self._i2h, "layout": conv_layout})
        self._state_shape = (0, *probe.infer_shape(data=tuple(input_shape))[1][0][1:])
        variables = self._params
        self._weights = {
            "i2h": (
                variables.get("i2h_weight", init=i2h_weight_initializer),
                variables.get("i2h_bias", init=i2h_bias_initializer),
            ),
            "h2h": (
                variables.get("h2h_weight", init=h2h_weight_initializer),
                variables.get("h2h_bias", init=h2h_bias_initializer),
            ),
        }

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """State shapes: (N, num_hidden, height, width) each, in conv_layout; LSTM has output and memory."""
        return [{"shape": self._state_shape, "__layout__": self._conv_layout} for _ in range(self._states)]

    @property
    def _gate_names(self) -> Sequence[str]:
        return self._gates

    def _map(self, group: str, data: Symbol, name: str) -> Symbol:
        weight, bias = self._weights[group]
        return symbol.Convolution(
            data,
            weight,
            bias,
            num_filter=self._num_hidden * len(self._gates),
            layout=self._conv_layout,
            name=f"{name}{group}",
            **(self._i2h if group == "i2h" else self._h2h),
        )

    def _cut(self, data: Symbol, name: str) -> Symbol:
        return symbol.SliceChannel(data, num_outputs=len(self._gates), axis=self._conv_layout.find("C"), name=name)


class ConvRNNCell(BaseConvRNNCell):
    """Computes ``h' = activation(W * x + R * h + b)``. Arguments: see BaseConvRNNCell."""

    _default_prefix = "ConvRNN_"

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        total = self._map("i2h", inputs, name) + self._map("h2h", states[0], name)
        output = self._get_activation(total, self._activation, name=name + "out")
        return output, [output]


class ConvLSTMCell(BaseConvRNNCell):
    """LSTM with convolutions. Source: Shi et al., arXiv 1506.04214. Arguments: see BaseConvRNNCell."""

    _gates = ("_i", "_f", "_c", "_o")
    _states = 2
    _default_prefix = "ConvLSTM_"

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        gates = self._cut(self._map("i2h", inputs, name) + self._map("h2h", states[0], name), name + "slice")
        in_gate = symbol.Activation(gates[0], act_type="sigmoid", name=name + "i")
        forget = symbol.Activation(gates[1], act_type="sigmoid", name=name + "f")
        candidate = self._get_activation(gates[2], self._activation, name=name + "c")
        out_gate = symbol.Activation(gates[3], act_type="sigmoid", name=name + "o")
        memory = symbol.elemwise_add(forget * states[1], in_gate * candidate, name=name + "state")
        output = symbol.elemwise_mul(out_gate, self._get_activation(memory, self._activation), name=name + "out")
        return output, [output, memory]


class ConvGRUCell(BaseConvRNNCell):
    """GRU with convolutions. Source: Ballas et al., arXiv 1511.06432. Arguments: see BaseConvRNNCell."""

    _gates = ("_r", "_z", "_o")
    _default_prefix = "ConvGRU_"

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h = self._cut(self._map("i2h", inputs, name), name + "i2h_slice")
        h2h = self._cut(self._map("h2h", states[0], name), name + "h2h_slice")
        reset = symbol.Activation(i2h[0] + h2h[0], act_type="sigmoid", name=name + "r_act")
        update = symbol.Activation(i2h[1] + h2h[1], act_type="sigmoid", name=name + "z_act")
        candidate = self._get_activation(i2h[2] + reset * h2h[2], self._activation, name=name + "h_act")
        output = symbol.elemwise_add((1.0 - update) * candidate, update * states[0], name=name + "out")
        return output, [output]
