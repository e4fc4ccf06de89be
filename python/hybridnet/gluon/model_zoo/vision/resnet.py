"""ResNet v1 (https://arxiv.org/abs/1512.03385) and v2 (https://arxiv.org/abs/1603.05027), 18 to 152 layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._public_names import dir_of
from ....errors import ParamError, not_overridden
from ... import nn
from ..._hybrid_block import HybridBlock
from ._classifier import Classifier, load_pretrained

__all__ = [
    "BasicBlockV1",
    "BasicBlockV2",
    "BottleneckV1",
    "BottleneckV2",
    "ResNetV1",
    "ResNetV2",
    "get_resnet",
    "resnet18_v1",
    "resnet18_v2",
    "resnet34_v1",
    "resnet34_v2",
    "resnet50_v1",
    "resnet50_v2",
    "resnet101_v1",
    "resnet101_v2",
    "resnet152_v1",
    "resnet152_v2",
]


def _conv3x3(channels: int, stride: int, in_channels: int) -> nn.Conv2D:
    return nn.Conv2D(channels, kernel_size=3, strides=stride, padding=1, use_bias=False, in_channels=in_channels)


def _conv1x1(channels: int, stride: int, in_channels: int) -> nn.Conv2D:
    return nn.Conv2D(channels, kernel_size=1, strides=stride, use_bias=False, in_channels=in_channels)


class _BlockV1(HybridBlock):
    """Computes ``relu(body(x) + shortcut(x))``; the shortcut is a 1x1 convolution if downsample, else x itself.

    Parameters
    ----------
    channels : int
        Number of output channels.
    stride : int
    downsample : bool, default False
        Whether the shortcut changes size or channels.
    in_channels : int, default 0
        0: found from the first batch.
    """

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.body = nn.HybridSequential(prefix="")
        self._fill(self.body, channels, stride, in_channels)
        self.downsample = None
        if downsample:
            self.downsample = nn.HybridSequential(prefix="")
            self.downsample.add(_conv1x1(channels, stride, in_channels), nn.BatchNorm())

    def _fill(self, body: nn.HybridSequential, channels: int, stride: int, in_channels: int) -> None:
        """Adds the layers of the body."""
        raise not_overridden(self, "_fill(body, channels, stride, in_channels)")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        residual = x if self.downsample is None else self.downsample(x)
        return F.Activation(self.body(x) + residual, act_type="relu")


class BasicBlockV1(_BlockV1):
    """Two 3x3 convolutions, for ResNet v1 with 18, 34 layers. Arguments: channels, stride, downsample, in_channels."""

    def _fill(self, body: nn.HybridSequential, channels: int, stride: int, in_channels: int) -> None:
        body.add(_conv3x3(channels, stride, in_channels), nn.BatchNorm(), nn.Activation("relu"))
        body.add(_conv3x3(channels, 1, channels), nn.BatchNorm())


class BottleneckV1(_BlockV1):
    """1x1, 3x3, 1x1 convolutions, for ResNet v1 with 50 and more layers. Arguments: see BasicBlockV1."""

    def _fill(self, body: nn.HybridSequential, channels: int, stride: int, in_channels: int) -> None:
        # The 1x1 convolutions have a bias, like the files that MXNet published.
        body.add(nn.Conv2D(channels // 4, kernel_size=1, strides=stride), nn.BatchNorm(), nn.Activation("relu"))
        body.add(_conv3x3(channels // 4, 1, channels // 4), nn.BatchNorm(), nn.Activation("relu"))
        body.add(nn.Conv2D(channels, kernel_size=1, strides=1), nn.BatchNorm())


class _BlockV2(HybridBlock):
    """Normalizes before each convolution; the shortcut starts after the first activation if downsample, else at x."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        residual = x
        for i, (norm, conv) in enumerate(self._steps()):
            x = F.Activation(norm(x), act_type="relu")
            if i == 0 and self.downsample is not None:
                residual = self.downsample(x)
            x = conv(x)
        return x + residual

    def _steps(self) -> tuple[tuple[Any, Any], ...]:
        """Returns (normalization, convolution) of each step."""
        raise not_overridden(self, "_steps()")


class BasicBlockV2(_BlockV2):
    """Two 3x3 convolutions, for ResNet v2 with 18 and 34 layers. Arguments: see BasicBlockV1."""

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.bn1 = nn.BatchNorm()
        self.conv1 = _conv3x3(channels, stride, in_channels)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(channels, 1, channels)
        self.downsample = _conv1x1(channels, stride, in_channels) if downsample else None

    def _steps(self) -> tuple[tuple[Any, Any], ...]:
        return (self.bn1, self.conv1), (self.bn2, self.conv2)


class BottleneckV2(_BlockV2):
    """1x1, 3x3, 1x1 convolutions, for ResNet v2 with 50 and more layers. Arguments: see BasicBlockV1."""

    def __init__(
        self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.bn1 = nn.BatchNorm()
        self.conv1 = _conv1x1(channels // 4, 1, 0)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(channels // 4, stride, channels // 4)
        self.bn3 = nn.BatchNorm()
        self.conv3 = _conv1x1(channels, 1, 0)
        self.downsample = _conv1x1(channels, stride, in_channels) if downsample else None

    def _steps(self) -> tuple[tuple[Any, Any], ...]:
        return (self.bn1, self.conv1), (self.bn2, self.conv2), (self.bn3, self.conv3)


def _stage(block: type, layers: int, channels: int, stride: int, index: int, in_channels: int) -> nn.HybridSequential:
    stage = nn.HybridSequential(prefix=f"stage{index}_")
    with stage.name_scope():
        stage.add(block(channels, stride, channels != in_channels, in_channels=in_channels, prefix=""))
        for _ in range(layers - 1):
            stage.add(block(channels, 1, False, in_channels=channels, prefix=""))
    return stage


class _ResNet(Classifier):
    """Stem, stages and classifier; the versions differ in the layers around the stages. Arguments: see ResNetV1."""

    def __init__(
        self,
        block: type,
        layers: Sequence[int],
        channels: Sequence[int],
        classes: int = 1000,
        thumbnail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if len(layers) != len(channels) - 1:
            raise ParamError(
                f"{type(self).__name__}: channels must have one entry more than layers (the first is the stem's)",
                given=f"layers={list(layers)}, channels={list(channels)}",
            )
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(*self._first())
            self._add_stem(channels[0], thumbnail)
            for i, count in enumerate(layers):
                stride = 1 if i == 0 else 2
                self.features.add(_stage(block, count, channels[i + 1], stride, i + 1, channels[i]))
            self.features.add(*self._last())
            self.output = nn.Dense(classes, in_units=channels[-1])

    def _add_stem(self, channels: int, thumbnail: bool) -> None:
        if thumbnail:
            self.features.add(_conv3x3(channels, 1, 0))
        else:
            self.features.add(nn.Conv2D(channels, 7, 2, 3, use_bias=False), nn.BatchNorm())
            self.features.add(nn.Activation("relu"), nn.MaxPool2D(3, 2, 1))

    def _first(self) -> list[HybridBlock]:
        """Returns the layers before the stem."""
        return []

    def _last(self) -> list[HybridBlock]:
        """Returns the layers between the stages and the classifier."""
        return [nn.GlobalAvgPool2D()]


class ResNetV1(_ResNet):
    """ResNet v1: maps (N, 3, H, W) to (N, classes).

    Parameters
    ----------
    block : class
        BasicBlockV1 or BottleneckV1.
    layers : list of int
        Number of blocks in each stage.
    channels : list of int
        Channels of the stem and of each stage.
    classes : int, default 1000
    thumbnail : bool, default False
        Whether images are small: the stem is then one 3x3 convolution.

    Raises ParamError unless channels has one entry more than layers.
    """


class ResNetV2(_ResNet):
    """ResNet v2, with BasicBlockV2 or BottleneckV2. Arguments: see ResNetV1."""

    def _first(self) -> list[HybridBlock]:
        return [nn.BatchNorm(scale=False, center=False)]

    def _last(self) -> list[HybridBlock]:
        return [nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Flatten()]


resnet_spec = {
    18: ("basic_block", [2, 2, 2, 2], [64, 64, 128, 256, 512]),
    34: ("basic_block", [3, 4, 6, 3], [64, 64, 128, 256, 512]),
    50: ("bottle_neck", [3, 4, 6, 3], [64, 256, 512, 1024, 2048]),
    101: ("bottle_neck", [3, 4, 23, 3], [64, 256, 512, 1024, 2048]),
    152: ("bottle_neck", [3, 8, 36, 3], [64, 256, 512, 1024, 2048]),
}
resnet_net_versions = [ResNetV1, ResNetV2]
resnet_block_versions: list[dict[str, Any]] = [
    {"basic_block": BasicBlockV1, "bottle_neck": BottleneckV1},
    {"basic_block": BasicBlockV2, "bottle_neck": BottleneckV2},
]


def get_resnet(
    version: int, num_layers: int, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> Any:
    """Returns a ResNet.

    Parameters
    ----------
    version : {1, 2}
    num_layers : {18, 34, 50, 101, 152}
    pretrained : bool, default False
        Whether to read published parameters; they must be on this machine (see model_store.get_model_file).
    ctx : Context, default cpu()
    root : str, optional
        Folder of parameter files.
    kwargs : classes, thumbnail, prefix

    Raises ParamError for other versions and sizes, FileError if parameters are not found.
    """
    if num_layers not in resnet_spec:
        raise ParamError(f"Invalid number of layers: {num_layers}. Options are {list(resnet_spec)}")
    if version not in (1, 2):
        raise ParamError(f"Invalid resnet version: {version}. Options are 1 and 2.")
    kind, layers, channels = resnet_spec[num_layers]
    net = resnet_net_versions[version - 1](resnet_block_versions[version - 1][kind], layers, channels, **kwargs)
    return load_pretrained(net, f"resnet{num_layers}_v{version}", pretrained, ctx, root)


def resnet18_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-18 v1. Arguments: see get_resnet."""
    return get_resnet(1, 18, **kwargs)


def resnet34_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-34 v1. Arguments: see get_resnet."""
    return get_resnet(1, 34, **kwargs)


def resnet50_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-50 v1. Arguments: see get_resnet."""
    return get_resnet(1, 50, **kwargs)


def resnet101_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-101 v1. Arguments: see get_resnet."""
    return get_resnet(1, 101, **kwargs)


def resnet152_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-152 v1. Arguments: see get_resnet."""
    return get_resnet(1, 152, **kwargs)


def resnet18_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-18 v2. Arguments: see get_resnet."""
    return get_resnet(2, 18, **kwargs)


def resnet34_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-34 v2. Arguments: see get_resnet."""
    return get_resnet(2, 34, **kwargs)


def resnet50_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-50 v2. Arguments: see get_resnet."""
    return get_resnet(2, 50, **kwargs)


def resnet101_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-101 v2. Arguments: see get_resnet."""
    return get_resnet(2, 101, **kwargs)


def resnet152_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-152 v2. Arguments: see get_resnet."""
    return get_resnet(2, 152, **kwargs)


__dir__ = dir_of(__name__)
