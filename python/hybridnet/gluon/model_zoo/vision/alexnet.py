"""AlexNet (https://arxiv.org/abs/1404.5997)."""

from __future__ import annotations

from typing import Any

from ...._public_names import dir_of
from ... import nn
from ._classifier import Classifier, load_pretrained

__all__ = ["AlexNet", "alexnet"]


class AlexNet(Classifier):
    """AlexNet: maps (N, 3, 224, 224) to (N, classes)."""

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                self._fill(self.features)
            self.output = nn.Dense(classes)

    @staticmethod
    def _fill(features: nn.HybridSequential) -> None:
        features.add(nn.Conv2D(64, kernel_size=11, strides=4, padding=2, activation="relu"))
        features.add(nn.MaxPool2D(pool_size=3, strides=2))
        features.add(nn.Conv2D(192, kernel_size=5, padding=2, activation="relu"))
        features.add(nn.MaxPool2D(pool_size=3, strides=2))
        for channels in (384, 256, 256):
            features.add(nn.Conv2D(channels, kernel_size=3, padding=1, activation="relu"))
        features.add(nn.MaxPool2D(pool_size=3, strides=2), nn.Flatten())
        for _ in range(2):
            features.add(nn.Dense(4096, activation="relu"), nn.Dropout(0.5))


def alexnet(pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any) -> AlexNet:
    """AlexNet. pretrained, ctx, root: see get_resnet; kwargs: classes, prefix."""
    return load_pretrained(AlexNet(**kwargs), "alexnet", pretrained, ctx, root)


__dir__ = dir_of(__name__)
