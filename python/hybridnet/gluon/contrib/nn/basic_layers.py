"""Parallel containers, batch normalization across devices, pixel shuffles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .... import autograd, group
from ...._public_names import dir_of
from ... import nn
from ..._hybrid_block import HybridBlock
from ...nn._arguments import positive, sizes
from ...nn._norm_layers import over_group

__all__ = [
    "Concurrent",
    "HybridConcurrent",
    "Identity",
    "PixelShuffle1D",
    "PixelShuffle2D",
    "PixelShuffle3D",
    "SparseEmbedding",
    "SyncBatchNorm",
]


class Concurrent(nn.Concatenate):
    """Calls each block on the same input and joins the outputs along axis (default: the last)."""


class HybridConcurrent(nn.HybridConcatenate):
    """Calls each HybridBlock on the same input and joins the outputs along axis (default: the last)."""


class Identity(nn.Identity):
    """Returns its input: the shortcut in ``HybridConcurrent``."""


class SparseEmbedding(nn.Embedding):
    """Embedding with a row_sparse gradient: the cost of a step depends on the looked-up rows only."""

    def __init__(
        self, input_dim: int, output_dim: int, dtype: Any = "float32", weight_initializer: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(input_dim, output_dim, dtype, weight_initializer, sparse_grad=True, **kwargs)


class SyncBatchNorm(nn.BatchNorm):
    """BatchNorm (axis 1) with mean and variance over the batch of all devices and processes (mx.group) together.

    Parameters
    ----------
    in_channels : int, default 0
    num_devices : int, optional
        Devices that share one batch; default: the number of GPUs, at least 1. On one device it is BatchNorm.
    momentum, epsilon, center, scale, use_global_stats and initializers : see BatchNorm

    Raises ParamError if num_devices < 1.
    """

    def __init__(
        self,
        in_channels: int = 0,
        num_devices: int | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            axis=1,
            momentum=momentum,
            epsilon=epsilon,
            center=center,
            scale=scale,
            use_global_stats=use_global_stats,
            beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer,
            running_mean_initializer=running_mean_initializer,
            running_variance_initializer=running_variance_initializer,
            in_channels=in_channels,
            **kwargs,
        )
        if num_devices is None:
            from .... import context

            num_devices = max(context.num_gpus(), 1)
        self._kwargs = {
            "eps": epsilon,
            "momentum": momentum,
            "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
            "ndev": positive("SyncBatchNorm.num_devices", num_devices),
            "key": self.prefix,
        }

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        if group.size() > 1 and autograd.is_training() and not self._kwargs["use_global_stats"]:
            return over_group(F, x, gamma, beta, running_mean, running_var, self._kwargs)
        return F.contrib.SyncBatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class _PixelShuffle(HybridBlock):
    """Moves blocks of channels into positions: (N, C * f1 * f2..., D1, D2...) to (N, C, D1 * f1, D2 * f2...)."""

    _dimensions = 2

    def __init__(self, factor: int | Sequence[int]) -> None:
        super().__init__()
        self._factors = sizes(f"{type(self).__name__}.factor", factor, self._dimensions, 1)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        n, factors = self._dimensions, self._factors
        # The factors leave the channel axis one at a time: (N, C * f1 * rest, ...) -> (N, C, f1, ..., fn, ...).
        rest = 1
        for factor in reversed(factors):
            rest *= factor
        x = F.reshape(x, (0, -4, -1, rest, *(0,) * n))
        for i, factor in enumerate(factors[:-1]):
            rest //= factor
            x = F.reshape(x, (0,) * (2 + i) + (-4, factor, rest) + (0,) * n)
        pairs = [axis for i in range(n) for axis in (2 + n + i, 2 + i)]
        x = F.transpose(x, (0, 1, *pairs))
        return F.reshape(x, (0, 0, *(-3,) * n))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors if self._dimensions > 1 else self._factors[0]})"


class PixelShuffle1D(_PixelShuffle):
    """Rearranges (N, C * f, W) to (N, C, W * f). factor: int >= 1."""

    _dimensions = 1


class PixelShuffle2D(_PixelShuffle):
    """Rearranges (N, C * f1 * f2, H, W) to (N, C, H * f1, W * f2). factor: int or 2 ints, >= 1."""


class PixelShuffle3D(_PixelShuffle):
    """Rearranges (N, C * f1 * f2 * f3, D, H, W) to (N, C, D * f1, H * f2, W * f3). factor: int or 3 ints, >= 1."""

    _dimensions = 3


__dir__ = dir_of(__name__)
