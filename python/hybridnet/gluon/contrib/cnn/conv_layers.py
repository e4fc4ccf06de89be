"""Deformable convolutions: an offset computed by another convolution moves each point of the kernel.
Dai et al., Deformable convolutional networks (2017); Zhu et al., Deformable ConvNets v2 (2018).
"""

from __future__ import annotations

from typing import Any

from ...._public_names import dir_of
from ..._hybrid_block import HybridBlock
from ...nn._arguments import one_of, positive, sizes, unknown_or_positive
from ...nn.activations import Activation

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


class DeformableConvolution(HybridBlock):
    """2-D convolution with learned offsets of the kernel's points, per output pixel.

    Shapes: data (N, in_channels, H, W); out (N, channels, H', W'), H' and W' as for Conv2D. Parameters
    deformable_conv_weight (channels, in_channels / groups, kernel...), deformable_conv_bias (channels,), offset_weight
    and offset_bias. The offsets start at zero, which gives an ordinary convolution.

    Parameters
    ----------
    channels, kernel_size, strides, padding, dilation, groups, use_bias, in_channels, activation, weight_initializer, \\
    bias_initializer : see Conv2D
    num_deformable_group : int, default 1
        Number of channel groups with their own offsets.
    layout : {'NCHW'}
    offset_weight_initializer, offset_bias_initializer : default 'zeros'
    offset_use_bias : bool, default True

    Raises ParamError for wrong arguments.
    """

    _op_name = "DeformableConvolution"
    _numbers_per_point = 2  # offset down, offset right

    def __init__(
        self,
        channels: int,
        kernel_size: Any = (1, 1),
        strides: Any = (1, 1),
        padding: Any = (0, 0),
        dilation: Any = (1, 1),
        groups: int = 1,
        num_deformable_group: int = 1,
        layout: str = "NCHW",
        use_bias: bool = True,
        in_channels: int = 0,
        activation: str | None = None,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        offset_weight_initializer: Any = "zeros",
        offset_bias_initializer: Any = "zeros",
        offset_use_bias: bool = True,
        op_name: str | None = None,
        adj: Any = None,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        layer = type(self).__name__
        one_of(f"{layer}.layout", layout, ("NCHW",))
        channels = positive(f"{layer}.channels", channels)
        groups = positive(f"{layer}.groups", groups)
        in_channels = unknown_or_positive(f"{layer}.in_channels", in_channels)
        kernel = sizes(f"{layer}.kernel_size", kernel_size, 2, 1)
        self._points = positive(f"{layer}.num_deformable_group", num_deformable_group) * kernel[0] * kernel[1]
        common = {
            "kernel": kernel,
            "stride": sizes(f"{layer}.strides", strides, 2, 1),
            "dilate": sizes(f"{layer}.dilation", dilation, 2, 1),
            "pad": sizes(f"{layer}.padding", padding, 2, 0),
            "num_group": groups,
        }
        moves = self._points * self._numbers_per_point
        self._kwargs_offset: dict[str, Any] = {**common, "num_filter": moves, "no_bias": not offset_use_bias}
        self._kwargs_deformable_conv: dict[str, Any] = {
            **common,
            "num_filter": channels,
            "num_deformable_group": num_deformable_group,
            "no_bias": not use_bias,
        }
        with self.name_scope():
            weights = {
                "offset": (moves, offset_weight_initializer, offset_use_bias, offset_bias_initializer),
                "deformable_conv": (channels, weight_initializer, use_bias, bias_initializer),
            }
            for name, (count, init, has_bias, bias_init) in weights.items():
                shape = (count, in_channels // groups, *kernel)
                weight = self.params.get(f"{name}_weight", shape=shape, init=init, allow_deferred_init=True)
                setattr(self, f"{name}_weight", weight)
                bias = self.params.get(f"{name}_bias", shape=(count,), init=bias_init) if has_bias else None
                setattr(self, f"{name}_bias", bias)
            self.act = Activation(activation, prefix=activation + "_") if activation else None

    def _moves(self, F: Any, x: Any, weight: Any, bias: Any) -> Any:
        return F.Convolution(*_present(x, weight, bias), **self._kwargs_offset)

    def hybrid_forward(
        self,
        F: Any,
        x: Any,
        offset_weight: Any,
        deformable_conv_weight: Any,
        offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:
        moves = self._inputs_beside_data(F, self._moves(F, x, offset_weight, offset_bias))
        op = getattr(F.contrib, self._op_name)
        arrays = _present(x, *moves, deformable_conv_weight, deformable_conv_bias)
        out = op(*arrays, name="fwd", **self._kwargs_deformable_conv)
        return out if self.act is None else self.act(out)

    def _inputs_beside_data(self, F: Any, moves: Any) -> tuple[Any, ...]:
        return (moves,)

    def _alias(self) -> str:
        return "deformable_conv"

    def __repr__(self) -> str:
        k, shape = self._kwargs_deformable_conv, self.deformable_conv_weight.shape
        text = f"{type(self).__name__}({shape[1] if shape[1] > 0 else None} -> {shape[0]}"
        text += f", kernel_size={k['kernel']}, stride={k['stride']}"
        if k["pad"] != (0, 0):
            text += f", padding={k['pad']}"
        if k["dilate"] != (1, 1):
            text += f", dilation={k['dilate']}"
        if k["num_group"] != 1:
            text += f", groups={k['num_group']}"
        if self.deformable_conv_bias is None:
            text += ", bias=False"
        if self.act:
            text += f", {self.act}"
        return text + ")"


class ModulatedDeformableConvolution(DeformableConvolution):
    """DeformableConvolution with a factor from 0 to 2 for each kernel point and output pixel, initially 1.

    Shapes, parameters and errors: see DeformableConvolution; offset_weight has 3 instead of 2 rows per point.
    """

    _op_name = "ModulatedDeformableConvolution"
    _numbers_per_point = 3

    def _inputs_beside_data(self, F: Any, moves: Any) -> tuple[Any, ...]:
        offset = F.slice_axis(moves, axis=1, begin=0, end=2 * self._points)
        factors = F.slice_axis(moves, axis=1, begin=2 * self._points, end=None)
        return offset, F.sigmoid(factors) * 2

    def _alias(self) -> str:
        return "modulated_deformable_conv"


def _present(*arrays: Any) -> list[Any]:
    return [array for array in arrays if array is not None]


__dir__ = dir_of(__name__)
