"""Inception v3 (https://arxiv.org/abs/1512.00567)."""

from __future__ import annotations

from typing import Any

from ...._public_names import dir_of
from ... import nn
from ...contrib.nn import HybridConcurrent
from ._classifier import Classifier, load_pretrained

__all__ = ["Inception3", "inception_v3"]

# (channels, kernel, strides, padding); strides 1 and padding 0 may be omitted
Conv = tuple[Any, ...]

# The paper's asymmetric kernels, with the padding that preserves the size.
_WIDE, _TALL = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


def _conv(channels: int, kernel: Any, strides: Any = 1, padding: Any = 0) -> nn.HybridSequential:
    out = nn.HybridSequential(prefix="")
    out.add(nn.Conv2D(channels, kernel, strides, padding, use_bias=False))
    out.add(nn.BatchNorm(epsilon=0.001), nn.Activation("relu"))
    return out


def _branch(pool: str | None, *convs: Conv) -> nn.HybridSequential:
    """A branch of convolutions, after an average ('avg') or a strided maximum ('max') pooling, or without pooling."""
    out = nn.HybridSequential(prefix="")
    if pool == "avg":
        out.add(nn.AvgPool2D(pool_size=3, strides=1, padding=1))
    elif pool == "max":
        out.add(nn.MaxPool2D(pool_size=3, strides=2))
    out.add(*(_conv(*conv) for conv in convs))
    return out


def _split(*convs: Conv) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix="")
    out.add(*(_branch(None, conv) for conv in convs))
    return out


def _a(pool_features: int, prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(_branch(None, (64, 1)))
        out.add(_branch(None, (48, 1), (64, 5, 1, 2)))
        out.add(_branch(None, (64, 1), (96, 3, 1, 1), (96, 3, 1, 1)))
        out.add(_branch("avg", (pool_features, 1)))
    return out


def _b(prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(_branch(None, (384, 3, 2)))
        out.add(_branch(None, (64, 1), (96, 3, 1, 1), (96, 3, 2)))
        out.add(_branch("max"))
    return out


def _c(narrow: int, prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(_branch(None, (192, 1)))
        out.add(_branch(None, (narrow, 1), (narrow, *_WIDE), (192, *_TALL)))
        out.add(_branch(None, (narrow, 1), (narrow, *_TALL), (narrow, *_WIDE), (narrow, *_TALL), (192, *_WIDE)))
        out.add(_branch("avg", (192, 1)))
    return out


def _d(prefix: str) -> HybridConcurrent:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(_branch(None, (192, 1), (320, 3, 2)))
        out.add(_branch(None, (192, 1), (192, *_WIDE), (192, *_TALL), (192, 3, 2)))
        out.add(_branch("max"))
    return out


def _e(prefix: str) -> HybridConcurrent:
    wide, tall = (384, (1, 3), 1, (0, 1)), (384, (3, 1), 1, (1, 0))
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(_branch(None, (320, 1)))
        branch = nn.HybridSequential(prefix="")
        branch.add(_branch(None, (384, 1)), _split(wide, tall))
        out.add(branch)
        branch = nn.HybridSequential(prefix="")
        branch.add(_branch(None, (448, 1), (384, 3, 1, 1)), _split(wide, tall))
        out.add(branch)
        out.add(_branch("avg", (192, 1)))
    return out


class Inception3(Classifier):
    """Inception v3: maps (N, 3, 299, 299) to (N, classes)."""

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(_conv(32, 3, 2), _conv(32, 3), _conv(64, 3, 1, 1), nn.MaxPool2D(pool_size=3, strides=2))
            self.features.add(_conv(80, 1), _conv(192, 3), nn.MaxPool2D(pool_size=3, strides=2))
            self.features.add(_a(32, "A1_"), _a(64, "A2_"), _a(64, "A3_"), _b("B_"))
            self.features.add(_c(128, "C1_"), _c(160, "C2_"), _c(160, "C3_"), _c(192, "C4_"))
            self.features.add(_d("D_"), _e("E1_"), _e("E2_"), nn.AvgPool2D(pool_size=8), nn.Dropout(0.5))
            self.output = nn.Dense(classes)


def inception_v3(pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any) -> Inception3:
    """Inception v3. pretrained, ctx, root: see get_resnet; kwargs: classes, prefix."""
    return load_pretrained(Inception3(**kwargs), "inceptionv3", pretrained, ctx, root)


__dir__ = dir_of(__name__)
