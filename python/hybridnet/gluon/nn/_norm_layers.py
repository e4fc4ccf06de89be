"""Normalization layers."""

from __future__ import annotations

import numbers
from typing import Any

from ... import autograd, group
from ...errors import ParamError
from ...ndarray._dtypes import dtype_name
from .._hybrid_block import HybridBlock
from ._arguments import fraction, positive, unknown_or_positive

__all__ = ["BatchNorm", "BatchNormReLU", "GroupNorm", "InstanceNorm", "LayerNorm", "SyncBatchNorm"]


_MOST_AXES = 6  # data has fewer axes than this; an "axis" beyond is a number of channels


def _channel_axis(layer: str, axis: int) -> int:
    """Returns the axis. Raises ParamError for numbers of channels, which other libraries have as first argument."""
    if isinstance(axis, numbers.Integral) and -_MOST_AXES <= axis < _MOST_AXES:
        return int(axis)
    channels = axis[-1] if isinstance(axis, (list, tuple)) and axis else axis
    raise ParamError(
        f"{layer}.axis",
        expected="the axis of the channels, such as 1 or -1",
        given=repr(axis),
        because="the first argument is the axis, and the first batch determines the number of channels",
        fix=f"write nn.{layer}() or nn.{layer}(in_channels={channels})",
    )


def _small(layer: str, epsilon: float) -> float:
    """Returns epsilon. Raises ParamError for sizes, which other libraries have at this place."""
    if isinstance(epsilon, numbers.Real) and 0 <= epsilon < 1:
        return epsilon
    raise ParamError(
        f"{layer}.epsilon",
        expected="a small number, such as 1e-5",
        given=repr(epsilon),
        because="the second argument is epsilon, and the first batch determines the number of channels",
        fix=f"leave it out, or name the argument that {epsilon!r} is meant for",
    )


class _Norm(HybridBlock):
    """Base of normalization layers: scale (gamma), shift (beta) and the text form."""

    _kwargs: dict[str, Any]

    def _make_scale_and_shift(
        self, size: int, scale: bool, center: bool, gamma_initializer: Any, beta_initializer: Any, **kwargs: Any
    ) -> None:
        self.gamma = self.params.get(
            "gamma",
            grad_req="write" if scale else "null",
            shape=(size,),
            init=gamma_initializer,
            allow_deferred_init=True,
            **({"differentiable": scale} if kwargs.get("frozen") else {}),
        )
        self.beta = self.params.get(
            "beta",
            grad_req="write" if center else "null",
            shape=(size,),
            init=beta_initializer,
            allow_deferred_init=True,
            **({"differentiable": center} if kwargs.get("frozen") else {}),
        )

    def _content(self) -> str:
        return ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())

    def __repr__(self) -> str:
        size = (self.gamma.shape or (0,))[0]
        return f"{type(self).__name__}({self._content()}, in_channels={size if size > 0 else None})"


class _BatchNorm(_Norm):
    """Base of BatchNorm and BatchNormReLU. Arguments: see BatchNorm."""

    fuse_relu = False

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        in_channels = unknown_or_positive(f"{type(self).__name__}.in_channels", in_channels)
        self._kwargs = {
            "axis": _channel_axis(type(self).__name__, axis),
            "eps": epsilon,
            "momentum": fraction(f"{type(self).__name__}.momentum", momentum),
            "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
        }
        if in_channels != 0:
            self.in_channels = in_channels
        self._make_scale_and_shift(in_channels, scale, center, gamma_initializer, beta_initializer, frozen=True)
        state = {"grad_req": "null", "shape": (in_channels,), "allow_deferred_init": True, "differentiable": False}
        self.running_mean = self.params.get("running_mean", init=running_mean_initializer, **state)
        self.running_var = self.params.get("running_var", init=running_variance_initializer, **state)

    def cast(self, dtype: Any) -> None:
        """Converts to another element type; statistics and scales stay float32 for 16-bit floats."""
        super().cast("float32" if dtype_name(dtype) in ("float16", "bfloat16") else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        out = F.BatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)
        return F.relu(out) if self.fuse_relu else out


class BatchNorm(_BatchNorm):
    """Normalizes each channel by the mean and variance of the batch in training, by running ones otherwise.

    ``gamma * (x - mean) / sqrt(var + epsilon) + beta``; running = momentum * running + (1 - momentum) * batch.
    Source: Ioffe and Szegedy, arXiv 1502.03167.

    Shapes: data any with the channels on axis; gamma, beta, running_mean, running_var (channels,).

    Parameters
    ----------
    axis : int, default 1
    momentum : float, default 0.9
    epsilon : float, default 1e-5
    center, scale : bool, default True
        Whether beta is added; whether gamma is learned (otherwise it is 1).
    use_global_stats : bool, default False
        Whether running statistics are used in training too.
    beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer
    in_channels : int, default 0
        0: found from the first batch.
    """


class BatchNormReLU(_BatchNorm):
    """BatchNorm followed by ReLU. Arguments: see BatchNorm."""

    fuse_relu = True


def over_group(F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any, options: Any) -> Any:
    """BatchNorm (axis 1) in training with the statistics of all processes of mx.group, weighted by their counts.

    The variance is the mean of the squares around the common mean, so that it does not cancel. options: those of
    BatchNorm.
    """
    rows = F.reshape(x, shape=(0, 0, -1))  # (N, channels, positions)
    count = F.reshape(F.sum(F.ones_like(F.slice_axis(rows, axis=1, begin=0, end=1))), shape=(1,))
    sums = F._internal._group_sum(F.concat(F.sum(rows, axis=(0, 2)), count, dim=0), label="a mean of SyncBatchNorm")
    total = F.slice_axis(sums, axis=0, begin=-1, end=None)
    mean = F.broadcast_div(F.slice_axis(sums, axis=0, begin=0, end=-1), total)
    centered = F.broadcast_sub(rows, F.reshape(mean, shape=(1, -1, 1)))
    squares = F._internal._group_sum(F.sum(F.square(centered), axis=(0, 2)), label="a variance of SyncBatchNorm")
    var = F.broadcast_div(squares, total)
    factor = F.rsqrt(var + options["eps"])
    if not options["fix_gamma"]:
        factor = factor * gamma
    out = F.broadcast_mul(centered, F.reshape(factor, shape=(1, -1, 1)))
    beta = F._internal._identity_with_attr_like_rhs(beta, mean)  # infers a shape that is not known yet
    out = F.broadcast_add(out, F.reshape(beta, shape=(1, -1, 1)))
    kept = options["momentum"]
    running_mean[:] = kept * running_mean + (1 - kept) * F.stop_gradient(mean)
    running_var[:] = kept * running_var + (1 - kept) * F.stop_gradient(var)
    return F.reshape_like(out, x)


class SyncBatchNorm(BatchNorm):
    """BatchNorm with statistics over the batches of all processes of ``mx.group``, weighted by their sizes.

    Arguments: see BatchNorm, with axis 1; num_devices is accepted. All contexts of one process are one device, so in
    one process it is BatchNorm. With several processes it takes float32 and float64.
    """

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        if group.size() > 1 and autograd.is_training() and not self._kwargs["use_global_stats"]:
            return over_group(F, x, gamma, beta, running_mean, running_var, self._kwargs)
        return super().hybrid_forward(F, x, gamma, beta, running_mean, running_var)

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
            1,
            momentum,
            epsilon,
            center,
            scale,
            use_global_stats,
            beta_initializer,
            gamma_initializer,
            running_mean_initializer,
            running_variance_initializer,
            in_channels,
            **kwargs,
        )
        self._num_devices = 1 if num_devices is None else positive("SyncBatchNorm.num_devices", num_devices)


class InstanceNorm(_Norm):
    """Normalizes each channel of each sample over its positions. Source: Ulyanov et al., arXiv 1607.08022.

    Shapes: data (N, ...) with the channels on axis and at least one more axis; gamma, beta (channels,).
    """

    def __init__(
        self,
        axis: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        in_channels = unknown_or_positive("InstanceNorm.in_channels", in_channels)
        self._axis = _channel_axis("InstanceNorm", axis)
        self._epsilon = _small("InstanceNorm", epsilon)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._make_scale_and_shift(in_channels, scale, center, gamma_initializer, beta_initializer)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        out = F.InstanceNorm(F.swapaxes(x, 1, self._axis), gamma, beta, name="fwd", eps=self._epsilon)
        return F.swapaxes(out, 1, self._axis)


class LayerNorm(_Norm):
    """Normalizes along one axis of each sample. Source: Ba et al., arXiv 1607.06450.

    Shapes: data any; gamma, beta (size of axis,).
    """

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        in_channels = unknown_or_positive("LayerNorm.in_channels", in_channels)
        self._axis = _channel_axis("LayerNorm", axis)
        self._epsilon = _small("LayerNorm", epsilon)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._center = center
        self._scale = scale
        self._make_scale_and_shift(in_channels, scale, center, gamma_initializer, beta_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_Norm):
    """Normalizes groups of channels (axis 1) of each sample. Source: Wu and He, arXiv 1803.08494.

    Shapes: data (N, channels, ...), channels a multiple of num_groups; gamma, beta (num_groups,).
    """

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        positive("GroupNorm.num_groups", num_groups)
        self._kwargs = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        self._num_groups = num_groups
        self._epsilon = _small("GroupNorm", epsilon)
        self._center = center
        self._scale = scale
        self._make_scale_and_shift(num_groups, scale, center, gamma_initializer, beta_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        return F.GroupNorm(data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._content()})"
