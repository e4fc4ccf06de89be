"""SqueezeNet 1.0 (https://arxiv.org/abs/1602.07360) and 1.1, its cheaper variant by the same authors."""

from __future__ import annotations

from typing import Any

from ...._public_names import dir_of
from ....errors import ParamError
from ... import nn
from ...contrib.nn import HybridConcurrent
from ._classifier import Classifier, load_pretrained

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]


def _fire_conv(channels: int, kernel_size: int, padding: int = 0) -> nn.HybridSequential:
    out = nn.HybridSequential(prefix="")
    out.add(nn.Conv2D(channels, kernel_size, padding=padding), nn.Activation("relu"))
    return out


def _fire(squeeze: int) -> nn.HybridSequential:
    """Fire module: squeezes to few channels, then expands fourfold by 1x1 and by 3x3 convolutions."""
    out = nn.HybridSequential(prefix="")
    out.add(_fire_conv(squeeze, 1))
    paths = HybridConcurrent(axis=1, prefix="")
    paths.add(_fire_conv(4 * squeeze, 1), _fire_conv(4 * squeeze, 3, 1))
    out.add(paths)
    return out


# Stem (channels, kernel), followed by fire modules between poolings.
_STEMS = {"1.0": (96, 7), "1.1": (64, 3)}
_FIRES = {"1.0": [[16, 16, 32], [32, 48, 48, 64], [64]], "1.1": [[16, 16], [32, 32], [48, 48, 64, 64]]}


class SqueezeNet(Classifier):
    """SqueezeNet: maps (N, 3, 224, 224) to (N, classes). version: '1.0' or '1.1'."""

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if version not in _STEMS:
            raise ParamError(f"Unsupported SqueezeNet version {version}: 1.0 or 1.1 expected")
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            channels, kernel = _STEMS[version]
            self.features.add(nn.Conv2D(channels, kernel_size=kernel, strides=2), nn.Activation("relu"))
            for group in _FIRES[version]:
                self.features.add(nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True))
                self.features.add(*(_fire(squeeze) for squeeze in group))
            self.features.add(nn.Dropout(0.5))
            self.output = nn.HybridSequential(prefix="")
            self.output.add(nn.Conv2D(classes, kernel_size=1), nn.Activation("relu"), nn.AvgPool2D(13), nn.Flatten())


def get_squeezenet(
    version: str, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> SqueezeNet:
    """SqueezeNet. version: '1.0' or '1.1'; pretrained, ctx, root: see get_resnet; kwargs: classes, prefix."""
    return load_pretrained(SqueezeNet(version, **kwargs), f"squeezenet{version}", pretrained, ctx, root)


def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0. Arguments: see get_squeezenet."""
    return get_squeezenet("1.0", **kwargs)


def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1. Arguments: see get_squeezenet."""
    return get_squeezenet("1.1", **kwargs)


__dir__ = dir_of(__name__)
