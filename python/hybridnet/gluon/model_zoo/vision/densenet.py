"""DenseNet (https://arxiv.org/abs/1608.06993)with 121 to 201 layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._public_names import dir_of
from ....errors import ParamError
from ... import nn
from ...contrib.nn import HybridConcurrent, Identity
from ._classifier import Classifier, load_pretrained

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]


def _dense_layer(growth_rate: int, bn_size: int, dropout: float) -> HybridConcurrent:
    """A dense layer: concatenates growth_rate new channels to the input."""
    new = nn.HybridSequential(prefix="")
    new.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(bn_size * growth_rate, kernel_size=1, use_bias=False))
    new.add(nn.BatchNorm(), nn.Activation("relu"))
    new.add(nn.Conv2D(growth_rate, kernel_size=3, padding=1, use_bias=False))
    if dropout:
        new.add(nn.Dropout(dropout))
    out = HybridConcurrent(axis=1, prefix="")
    out.add(Identity(), new)
    return out


def _dense_block(layers: int, bn_size: int, growth_rate: int, dropout: float, index: int) -> nn.HybridSequential:
    out = nn.HybridSequential(prefix=f"stage{index}_")
    with out.name_scope():
        out.add(*(_dense_layer(growth_rate, bn_size, dropout) for _ in range(layers)))
    return out


def _transition(channels: int) -> nn.HybridSequential:
    """A transition layer: halves height and width."""
    out = nn.HybridSequential(prefix="")
    out.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(channels, kernel_size=1, use_bias=False))
    out.add(nn.AvgPool2D(pool_size=2, strides=2))
    return out


class DenseNet(Classifier):
    """DenseNet: maps (N, 3, 224, 224) to (N, classes).

    Parameters
    ----------
    num_init_features : int
        Number of channels of the stem.
    growth_rate : int
        Number of channels that each layer adds.
    block_config : list of int
        Number of layers in each dense block.
    bn_size : int, default 4
        Channels of the 1x1 convolutions, as a multiple of growth_rate.
    dropout : float, default 0
        Dropout rate after each layer.
    classes : int, default 1000
    """

    def __init__(
        self,
        num_init_features: int,
        growth_rate: int,
        block_config: Sequence[int],
        bn_size: int = 4,
        dropout: float = 0,
        classes: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(num_init_features, kernel_size=7, strides=2, padding=3, use_bias=False))
            self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(pool_size=3, strides=2, padding=1))
            channels = num_init_features
            for i, layers in enumerate(block_config):
                self.features.add(_dense_block(layers, bn_size, growth_rate, dropout, i + 1))
                channels += layers * growth_rate
                if i != len(block_config) - 1:
                    channels //= 2
                    self.features.add(_transition(channels))
            self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.AvgPool2D(pool_size=7), nn.Flatten())
            self.output = nn.Dense(classes)


densenet_spec = {
    121: (64, 32, [6, 12, 24, 16]),
    161: (96, 48, [6, 12, 36, 24]),
    169: (64, 32, [6, 12, 32, 32]),
    201: (64, 32, [6, 12, 48, 32]),
}


def get_densenet(
    num_layers: int, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> DenseNet:
    """Returns a DenseNet. num_layers: 121, 161, 169, 201; pretrained, ctx, root: see get_resnet; kwargs: DenseNet's."""
    if num_layers not in densenet_spec:
        raise ParamError(f"get_densenet: invalid number of layers: {num_layers}. Options are {list(densenet_spec)}")
    net = DenseNet(*densenet_spec[num_layers], **kwargs)
    return load_pretrained(net, f"densenet{num_layers}", pretrained, ctx, root)


def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet-121. Arguments: see get_densenet."""
    return get_densenet(121, **kwargs)


def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet-161. Arguments: see get_densenet."""
    return get_densenet(161, **kwargs)


def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet-169. Arguments: see get_densenet."""
    return get_densenet(169, **kwargs)


def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet-201. Arguments: see get_densenet."""
    return get_densenet(201, **kwargs)


__dir__ = dir_of(__name__)
