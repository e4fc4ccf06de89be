"""Convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._lazy_names import names_from
from ..._public_names import dir_of
from ..._user_line import warn
from ...errors import ParamError
from .._hybrid_block import HybridBlock
from ._arguments import one_of, positive, sizes, unknown_or_positive
from .activations import activation_layer

__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"]


def _weight_shape(
    transposed: bool, channels: int, in_channels: int, groups: int, kernel: tuple[int, ...], layout: str
) -> tuple[int, ...]:
    """Shape of the weight. Convolution: (channels, in / groups, kernel...); transposed: (in, channels / groups,
    kernel...). If the layout has the channels last, they come after the kernel.
    """
    first, second = (in_channels, channels // groups) if transposed else (channels, in_channels // groups)
    return (first, *kernel, second) if layout.endswith("C") else (first, second, *kernel)


class _Conv(HybridBlock):
    """Base of all convolutions. Shapes and errors: see Conv2D."""

    _dimensions = 2
    _layouts: tuple[str, ...] = ()
    _transposed = False

    def __init__(
        self,
        channels: int,
        kernel_size: Any,
        strides: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        layout: str,
        in_channels: int = 0,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        op_name: str | None = None,
        adj: Any = None,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        layer, n = type(self).__name__, self._dimensions
        if self._layouts:
            one_of(f"{layer}.layout", layout, self._layouts)
        self._channels = positive(f"{layer}.channels", channels)
        self._in_channels = unknown_or_positive(f"{layer}.in_channels", in_channels)
        groups = positive(f"{layer}.groups", groups)
        if channels % groups or self._in_channels % groups:
            raise ParamError(
                f"{layer}: channels and in_channels must be multiples of groups",
                given=f"channels={channels}, in_channels={self._in_channels}, groups={groups}",
            )
        kernel = sizes(f"{layer}.kernel_size", kernel_size, n, 1)
        self._op_name = op_name or ("Deconvolution" if self._transposed else "Convolution")
        self._kwargs: dict[str, Any] = {
            "kernel": kernel,
            "stride": sizes(f"{layer}.strides", strides, n, 1),
            "dilate": sizes(f"{layer}.dilation", dilation, n, 1),
            "pad": sizes(f"{layer}.padding", padding, n, 0),
            "num_filter": self._channels,
            "num_group": groups,
            "no_bias": not use_bias,
            "layout": layout,
        }
        if adj is not None:
            self._kwargs["adj"] = self.outpad = sizes(f"{layer}.output_padding", adj, n, 0)
        shape = _weight_shape(self._transposed, self._channels, self._in_channels, groups, kernel, layout)
        with self.name_scope():
            self.weight = self.params.get("weight", shape=shape, init=weight_initializer, allow_deferred_init=True)
            self.bias = (
                self.params.get("bias", shape=(self._channels,), init=bias_initializer, allow_deferred_init=True)
                if use_bias
                else None
            )
            self.act = activation_layer(layer, activation, "name in_channels=, groups= and layout= by keyword")

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        op = getattr(F, self._op_name)
        if bias is None:
            out = op(x, weight, name="fwd", **self._kwargs)
        else:
            out = op(x, weight, bias, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)

    def _alias(self) -> str:
        return "conv"

    def __repr__(self) -> str:
        k, n, shape = self._kwargs, self._dimensions, self.weight.shape or (0, 0)
        text = f"{type(self).__name__}({shape[1] if shape[1] > 0 else None} -> {shape[0]}"
        text += f", kernel_size={k['kernel']}, stride={k['stride']}"
        if k["pad"] != (0,) * n:
            text += f", padding={k['pad']}"
        if k["dilate"] != (1,) * n:
            text += f", dilation={k['dilate']}"
        if k.get("adj", (0,) * n) != (0,) * n:
            text += f", output_padding={k['adj']}"
        if k["num_group"] != 1:
            text += f", groups={k['num_group']}"
        if self.bias is None:
            text += ", bias=False"
        if self.act:
            text += f", {self.act}"
        return text + ")"


def _warn_of_input_channels(layer: str, channels: Any, kernel: Any, stride: Any) -> None:
    """Warns about three sizes that are more likely the inputs, the outputs and the kernel, as in other libraries."""
    if not all(isinstance(size, int) for size in (channels, kernel, stride)) or kernel < 8:
        return
    if kernel >= channels or (kernel >= 16 and 2 * stride < kernel):
        warn(
            f"nn.{layer}({channels}, {kernel}, {stride}) has {channels} output channels, kernel_size={kernel} and "
            f"strides={stride}. For {channels} input channels, {kernel} output channels and kernel_size={stride} write "
            f"nn.{layer}({kernel}, kernel_size={stride}, in_channels={channels}); to keep it, name the arguments"
        )


class _PlainConv(_Conv):
    """Adds the public constructor of convolutions; layout None means channels first."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) >= 3 and cls.__module__ == __name__:
            _warn_of_input_channels(cls.__name__, *args[:3])
        return super().__new__(cls, *args, **kwargs)

    def __init__(
        self,
        channels: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        layout: str | None = None,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            self._layouts[0] if layout is None else layout,
            in_channels,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            **kwargs,
        )


class _TransposedConv(_Conv):
    """Adds the public constructor of transposed convolutions; layout None means channels first."""

    _transposed = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) >= 3 and cls.__module__ == __name__:
            _warn_of_input_channels(cls.__name__, *args[:3])
        return super().__new__(cls, *args, **kwargs)

    def __init__(
        self,
        channels: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        layout: str | None = None,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            self._layouts[0] if layout is None else layout,
            in_channels,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            adj=output_padding,
            **kwargs,
        )


class Conv1D(_PlainConv):
    """Convolution over one axis of positions. Layout NCW; arguments: see Conv2D."""

    _dimensions = 1
    _layouts = ("NCW",)


class Conv2D(_PlainConv):
    """Convolution over height and width (a cross-correlation, as usual in deep learning).

    Shapes (layout NCHW): data (N, in_channels, H, W); weight (channels, in_channels / groups, kernel height, kernel
    width); bias (channels,); out (N, channels, H', W') with
    H' = floor((H + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1. Layout NHWC: channels last, in the weight
    too.

    Parameters
    ----------
    channels : int
        Number of output channels, >= 1.
    kernel_size, strides, padding, dilation : int or 2 ints
    groups : int, default 1
        Divides channels and in_channels; each group of outputs reads only its group of inputs.
    layout : {'NCHW', 'NHWC'}, default 'NCHW'
    activation : str, optional
        See Activation.
    use_bias : bool, default True
    weight_initializer, bias_initializer : Initializer or str, optional
    in_channels : int, default 0
        0: found from the first batch.

    Raises ParamError for values out of range; ShapeError if a batch disagrees with in_channels or is too small.
    """

    _dimensions = 2
    _layouts = ("NCHW", "NHWC")


class Conv3D(_PlainConv):
    """Convolution over depth, height and width. Layouts NCDHW and NDHWC; arguments: see Conv2D."""

    _dimensions = 3
    _layouts = ("NCDHW", "NDHWC")


class Conv1DTranspose(_TransposedConv):
    """Transposed convolution over one axis. Layout NCW; arguments: see Conv2DTranspose."""

    _dimensions = 1
    _layouts = ("NCW",)


class Conv2DTranspose(_TransposedConv):
    """Transposed convolution over height and width: the gradient of Conv2D as a layer.

    Shapes (layout NCHW): data (N, in_channels, H, W); weight (in_channels, channels / groups, kernel height, kernel
    width); out (N, channels, H', W') with
    H' = stride * (H - 1) + dilation * (kernel - 1) + 1 - 2 * padding + output_padding.

    Parameters
    ----------
    output_padding : int or 2 ints, default 0
        Rows and columns added at one side of the output, smaller than the stride.
    others
        Same as for Conv2D.
    """

    _dimensions = 2
    _layouts = ("NCHW", "NHWC")


class Conv3DTranspose(_TransposedConv):
    """Transposed convolution over depth, height and width. Layouts NCDHW and NDHWC; arguments: see Conv2DTranspose."""

    _dimensions = 3
    _layouts = ("NCDHW", "NDHWC")


# MXNet also has these in this file.
__getattr__, __dir__ = names_from(
    __name__,
    {
        "_pool_layers": (
            "AvgPool1D AvgPool2D AvgPool3D GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D "
            "GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D MaxPool1D MaxPool2D MaxPool3D "
            "ReflectionPad2D"
        ),
    },
    {"symbol": "...symbol"},
)
__dir__ = dir_of(__name__, __dir__)
