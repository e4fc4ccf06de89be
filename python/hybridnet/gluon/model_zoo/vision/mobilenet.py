"""MobileNet v1 (https://arxiv.org/abs/1704.04861) and v2 (https://arxiv.org/abs/1801.04381)."""

from __future__ import annotations

from typing import Any

from ...._public_names import dir_of
from ... import nn
from ..._hybrid_block import HybridBlock
from ._classifier import Classifier, load_pretrained

__all__ = [
    "MobileNet",
    "MobileNetV2",
    "get_mobilenet",
    "get_mobilenet_v2",
    "mobilenet0_5",
    "mobilenet0_25",
    "mobilenet0_75",
    "mobilenet1_0",
    "mobilenet_v2_0_5",
    "mobilenet_v2_0_25",
    "mobilenet_v2_0_75",
    "mobilenet_v2_1_0",
]


class RELU6(HybridBlock):
    """Activation min(max(x, 0), 6)."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.clip(x, 0, 6, name="relu6")


def _add_conv(
    out: nn.HybridSequential,
    channels: int,
    kernel: int = 1,
    stride: int = 1,
    pad: int = 0,
    groups: int = 1,
    activation: type | None = None,
) -> None:
    out.add(nn.Conv2D(channels, kernel, stride, pad, groups=groups, use_bias=False), nn.BatchNorm(scale=True))
    if activation is RELU6:
        out.add(RELU6())
    elif activation is not None:
        out.add(activation("relu"))


class LinearBottleneck(HybridBlock):
    """MobileNet v2's block: expands by t, depthwise convolution, linear projection; adds x if shapes agree.

    Parameters
    ----------
    in_channels, channels : int
        Numbers of input and output channels.
    t : int
        Expansion factor.
    stride : int
    """

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        wide = in_channels * t
        with self.name_scope():
            self.out = nn.HybridSequential()
            _add_conv(self.out, wide, activation=RELU6)
            _add_conv(self.out, wide, 3, stride, 1, groups=wide, activation=RELU6)
            _add_conv(self.out, channels)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(Classifier):
    """MobileNet v1: maps (N, 3, H, W) to (N, classes).

    multiplier : float, default 1.0
        Factor of all channel numbers, >= 0.25.
    classes : int, default 1000
    """

    # (output channels, stride) of each pair of depthwise and 1x1 convolution
    _layers = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                before = int(32 * multiplier)
                _add_conv(self.features, before, 3, 2, 1, activation=nn.Activation)
                for channels, stride in self._layers:
                    _add_conv(self.features, before, 3, stride, 1, groups=before, activation=nn.Activation)
                    before = int(channels * multiplier)
                    _add_conv(self.features, before, activation=nn.Activation)
                self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)


class MobileNetV2(Classifier):
    """MobileNet v2: maps (N, 3, H, W) to (N, classes). Arguments: see MobileNet."""

    # The paper's table 2: expansion, channels, repetitions, first stride.
    _stages = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                before = int(32 * multiplier)
                _add_conv(self.features, before, 3, 2, 1, activation=RELU6)
                for t, channels, count, first in self._stages:
                    for i in range(count):
                        after = int(channels * multiplier)
                        self.features.add(LinearBottleneck(before, after, t, first if i == 0 else 1))
                        before = after
                last = int(1280 * multiplier) if multiplier > 1.0 else 1280
                _add_conv(self.features, last, activation=RELU6)
                self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())


def _version(multiplier: float) -> str:
    """'1.0', '0.75', '0.5', '0.25': the number in the names of published files."""
    text = f"{multiplier:.2f}"
    return text[:-1] if text in ("1.00", "0.50") else text


def get_mobilenet(
    multiplier: float, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> MobileNet:
    """MobileNet v1. multiplier: factor of channels; pretrained, ctx, root: see get_resnet; kwargs: classes, prefix."""
    net = MobileNet(multiplier, **kwargs)
    return load_pretrained(net, f"mobilenet{_version(multiplier)}", pretrained, ctx, root)


def get_mobilenet_v2(
    multiplier: float, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> MobileNetV2:
    """MobileNet v2. Arguments: see get_mobilenet."""
    net = MobileNetV2(multiplier, **kwargs)
    return load_pretrained(net, f"mobilenetv2_{_version(multiplier)}", pretrained, ctx, root)


def mobilenet1_0(**kwargs: Any) -> MobileNet:
    """MobileNet v1 with 1.0 times the channels. Arguments: see get_mobilenet."""
    return get_mobilenet(1.0, **kwargs)


def mobilenet0_75(**kwargs: Any) -> MobileNet:
    """MobileNet v1 with 0.75 times the channels. Arguments: see get_mobilenet."""
    return get_mobilenet(0.75, **kwargs)


def mobilenet0_5(**kwargs: Any) -> MobileNet:
    """MobileNet v1 with 0.5 times the channels. Arguments: see get_mobilenet."""
    return get_mobilenet(0.5, **kwargs)


def mobilenet0_25(**kwargs: Any) -> MobileNet:
    """MobileNet v1 with 0.25 times the channels. Arguments: see get_mobilenet."""
    return get_mobilenet(0.25, **kwargs)


def mobilenet_v2_1_0(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 with 1.0 times the channels. Arguments: see get_mobilenet_v2."""
    return get_mobilenet_v2(1.0, **kwargs)


def mobilenet_v2_0_75(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 with 0.75 times the channels. Arguments: see get_mobilenet_v2."""
    return get_mobilenet_v2(0.75, **kwargs)


def mobilenet_v2_0_5(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 with 0.5 times the channels. Arguments: see get_mobilenet_v2."""
    return get_mobilenet_v2(0.5, **kwargs)


def mobilenet_v2_0_25(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 with 0.25 times the channels. Arguments: see get_mobilenet_v2."""
    return get_mobilenet_v2(0.25, **kwargs)


__dir__ = dir_of(__name__)
