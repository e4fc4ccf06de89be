"""Adam and its relatives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import ndarray
from ._sgd import interleave
from .optimizer import AGGREGATE_ALL, Optimizer, as_lists, register, split_lazy, zeros_like

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = ["LAMB", "Adam", "AdamW", "Adamax", "Nadam"]


class _Moments(Optimizer):
    """Keeps two arrays: mean and (uncentred) variance of the gradient."""

    beta1: float
    beta2: float
    epsilon: float

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return (zeros_like(weight), zeros_like(weight))

    def _corrected(self, indices: list[Any], lrs: list[float]) -> list[float]:
        """Learning rates times the correction of both moments' bias (Adam paper, end of section 2)."""
        counts = self._index_update_count
        return [
            lr * math.sqrt(1.0 - self.beta2 ** counts[i]) / (1.0 - self.beta1 ** counts[i])
            for i, lr in zip(indices, lrs, strict=False)
        ]


@register
class Adam(_Moments):
    """Adam: steps by the mean of the gradient over the root of its variance, all weights in one call.

    ``g = clip(rescale * grad + wd * weight)``; ``m = beta1 * m + (1 - beta1) * g``;
    ``v = beta2 * v + (1 - beta2) * g^2``; ``weight -= lr * corrections * m / (sqrt(v) + epsilon)``.
    Source: Kingma and Ba, arXiv 1412.6980.

    Parameters
    ----------
    learning_rate : float, default 0.001
    beta1, beta2 : float, default 0.9 and 0.999
    epsilon : float, default 1e-8
    lazy_update : bool, default True
        Whether a row_sparse gradient changes its own rows only. False: it is used like a dense one.
    others
        See Optimizer.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_update: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lazy_update = lazy_update
        self.aggregate_num = AGGREGATE_ALL

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        self._update_count(indices)
        if any(each.stype != "default" for each in grads):
            lazy, (indices, weights, grads, states) = split_lazy(self.lazy_update, indices, weights, grads, states)
            for i, w, g, s in lazy:
                self._update_lazily(i, w, g, s)
            if not weights:
                return
        means, variances = zip(*states, strict=False)
        ndarray._internal._multi_adam_update(
            *interleave(weights, grads, means, variances),
            out=weights,
            num_weights=len(weights),
            lrs=self._corrected(indices, self._get_lrs(indices)),
            wds=self._get_wds(indices),
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            **self._gradient_arguments(),
        )

    def _update_lazily(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        mean, variance = state
        ndarray.adam_update(
            weight,
            grad,
            mean,
            variance,
            out=weight,
            lr=self._corrected([index], self._get_lrs([index]))[0],
            wd=self._get_wd(index),
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            **self._gradient_arguments(),
        )


@register
class AdamW(_Moments):
    """Adam with decoupled weight decay: ``weight -= lr * (corrections * m / (sqrt(v) + epsilon) + wd * weight)``.

    Source: Loshchilov and Hutter, arXiv 1711.05101, algorithm 2. Parameters as Adam; correct_bias: whether the
    moments' bias is corrected.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        correct_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.correct_bias = correct_bias
        self.aggregate_num = AGGREGATE_ALL

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        self._update_count(indices)
        plain = self._get_lrs(indices)
        lrs = self._corrected(indices, plain) if self.correct_bias else plain
        # The operator steps by eta * (lr * m / (sqrt(v) + epsilon) + wd * weight); decay uses the plain rate.
        wds = [lr * wd for lr, wd in zip(plain, self._get_wds(indices), strict=False)]
        means, variances = zip(*states, strict=False)
        arguments = {"clip_gradient": self.clip_gradient} if self.clip_gradient else {}
        ndarray._internal._multi_adamw_update(
            *interleave(weights, grads, means, variances),
            ndarray.full((1,), self.rescale_grad, ctx=weights[0].context, dtype=weights[0].dtype),
            out=weights,
            num_weights=len(weights),
            lrs=lrs,
            wds=wds,
            etas=[1.0] * len(weights),
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            **arguments,
        )


@register
class Adamax(_Moments):
    """Adam with the largest instead of the root mean square gradient. Source: Kingma and Ba, arXiv 1412.6980, 7.1."""

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        lr /= 1.0 - self.beta1 ** self._index_update_count[index]
        grad = grad * self.rescale_grad + wd * weight
        if self.clip_gradient is not None:
            grad = ndarray.clip(grad, -self.clip_gradient, self.clip_gradient)
        mean, largest = state
        mean[:] = self.beta1 * mean + (1.0 - self.beta1) * grad
        largest[:] = ndarray.maximum(self.beta2 * largest, ndarray.abs(grad))
        # A weight whose gradients were all zero stays: 0 / 0 is kept out by the smallest float.
        weight -= lr * mean / ndarray.maximum(largest, 1.2e-38)


@register
class Nadam(_Moments):
    """Adam with Nesterov momentum. Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016.

    schedule_decay: decay of the momentum schedule, default 0.004.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        schedule_decay: float = 0.004,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.schedule_decay = schedule_decay
        self.m_schedule = 1.0

    def _momentum(self, t: int) -> float:
        return self.beta1 * (1.0 - 0.5 * pow(0.96, t * self.schedule_decay))

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        t = self._index_update_count[index]
        grad = grad * self.rescale_grad + wd * weight
        if self.clip_gradient is not None:
            grad = ndarray.clip(grad, -self.clip_gradient, self.clip_gradient)
        momentum, following = self._momentum(t), self._momentum(t + 1)
        # As in MXNet, one schedule runs over the updates of all weights.
        self.m_schedule *= momentum
        mean, variance = state
        mean[:] = self.beta1 * mean + (1.0 - self.beta1) * grad
        variance[:] = self.beta2 * variance + (1.0 - self.beta2) * grad * grad
        ahead = (1.0 - momentum) / (1.0 - self.m_schedule) * grad
        ahead = ahead + following / (1.0 - self.m_schedule * following) * mean
        weight -= lr * ahead / (ndarray.sqrt(variance / (1.0 - pow(self.beta2, t))) + self.epsilon)


@register
class LAMB(_Moments):
    """Adam whose step for each layer is scaled by the norm of the weight over the norm of the step.

    Source: You et al., arXiv 1904.00962.

    Parameters
    ----------
    learning_rate, beta1, beta2, epsilon : float
    lower_bound, upper_bound : float, optional
        Bounds of the weight's norm in the ratio.
    bias_correction : bool, default True
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction

    def _bounds(self) -> dict[str, Any]:
        bounds = {"lower_bound": self.lower_bound, "upper_bound": self.upper_bound}
        return {name: value for name, value in bounds.items() if value}

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if isinstance(index, (list, tuple)):
            for each in zip(index, weight, grad, state, strict=True):
                self.update(*each)
            return
        lr, wd = self._begin(index)
        mean, variance = state
        step = ndarray.lamb_update_phase1(
            weight,
            grad,
            mean,
            variance,
            wd=wd,
            t=self._index_update_count[index],
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            bias_correction=self.bias_correction,
            **self._gradient_arguments(),
        )
        ndarray.lamb_update_phase2(
            weight, step, ndarray.norm(weight), ndarray.norm(step), lr=lr, out=weight, **self._bounds()
        )
