"""VGG (https://arxiv.org/abs/1409.1556), 11 to 19 layers, with and without batch normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...._public_names import dir_of
from ....errors import ParamError
from ....initializer import Xavier
from ... import nn
from ._classifier import Classifier, load_pretrained

__all__ = ["VGG", "get_vgg", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn"]


class VGG(Classifier):
    """VGG: maps (N, 3, 224, 224) to (N, classes).

    Parameters
    ----------
    layers : list of int
        Number of convolutions in each stage.
    filters : list of int
        Number of channels in each stage.
    classes : int, default 1000
    batch_norm : bool, default False
    """

    def __init__(
        self,
        layers: Sequence[int],
        filters: Sequence[int],
        classes: int = 1000,
        batch_norm: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if len(layers) != len(filters):
            raise ParamError("VGG: layers and filters must have equal length", given=f"{list(layers)}, {list(filters)}")
        with self.name_scope():
            self.features = self._convolutions(layers, filters, batch_norm)
            for _ in range(2):
                self.features.add(nn.Dense(4096, activation="relu", weight_initializer="normal"), nn.Dropout(rate=0.5))
            self.output = nn.Dense(classes, weight_initializer="normal")

    @staticmethod
    def _convolutions(layers: Sequence[int], filters: Sequence[int], batch_norm: bool) -> nn.HybridSequential:
        features = nn.HybridSequential(prefix="")
        for count, channels in zip(layers, filters, strict=True):
            for _ in range(count):
                init = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
                features.add(nn.Conv2D(channels, kernel_size=3, padding=1, weight_initializer=init))
                if batch_norm:
                    features.add(nn.BatchNorm())
                features.add(nn.Activation("relu"))
            features.add(nn.MaxPool2D(strides=2))
        return features


vgg_spec = {
    11: ([1, 1, 2, 2, 2], [64, 128, 256, 512, 512]),
    13: ([2, 2, 2, 2, 2], [64, 128, 256, 512, 512]),
    16: ([2, 2, 3, 3, 3], [64, 128, 256, 512, 512]),
    19: ([2, 2, 4, 4, 4], [64, 128, 256, 512, 512]),
}


def get_vgg(num_layers: int, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any) -> VGG:
    """VGG. num_layers: 11, 13, 16 or 19; pretrained, ctx, root: see get_resnet; kwargs: classes, batch_norm, prefix."""
    if num_layers not in vgg_spec:
        raise ParamError(f"get_vgg: invalid number of layers: {num_layers}. Options are {list(vgg_spec)}")
    suffix = "_bn" if kwargs.get("batch_norm") else ""
    return load_pretrained(VGG(*vgg_spec[num_layers], **kwargs), f"vgg{num_layers}{suffix}", pretrained, ctx, root)


def vgg11(**kwargs: Any) -> VGG:
    """VGG-11. Arguments: see get_vgg."""
    return get_vgg(11, **kwargs)


def vgg13(**kwargs: Any) -> VGG:
    """VGG-13. Arguments: see get_vgg."""
    return get_vgg(13, **kwargs)


def vgg16(**kwargs: Any) -> VGG:
    """VGG-16. Arguments: see get_vgg."""
    return get_vgg(16, **kwargs)


def vgg19(**kwargs: Any) -> VGG:
    """VGG-19. Arguments: see get_vgg."""
    return get_vgg(19, **kwargs)


def vgg11_bn(**kwargs: Any) -> VGG:
    """VGG-11 with batch normalization. Arguments: see get_vgg."""
    return get_vgg(11, **{**kwargs, "batch_norm": True})


def vgg13_bn(**kwargs: Any) -> VGG:
    """VGG-13 with batch normalization. Arguments: see get_vgg."""
    return get_vgg(13, **{**kwargs, "batch_norm": True})


def vgg16_bn(**kwargs: Any) -> VGG:
    """VGG-16 with batch normalization. Arguments: see get_vgg."""
    return get_vgg(16, **{**kwargs, "batch_norm": True})


def vgg19_bn(**kwargs: Any) -> VGG:
    """VGG-19 with batch normalization. Arguments: see get_vgg."""
    return get_vgg(19, **{**kwargs, "batch_norm": True})


__dir__ = dir_of(__name__)
