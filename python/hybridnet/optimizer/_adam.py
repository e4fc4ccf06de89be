"""Adam and its relatives."""

from __future__ import annotations

from typing import Any

from .. import _core
from ._ruled import RuledOptimizer
from .optimizer import register

__all__ = ["LAMB", "Adam", "AdamW", "Adamax", "Nadam"]


@register
class Adam(RuledOptimizer):
    """Adam: steps by the mean of the gradient divided by the root of its variance, all weights in one call.

    ``g = clip(rescale * grad + wd * weight)``; ``m = beta1 * m + (1 - beta1) * g``;
    ``v = beta2 * v + (1 - beta2) * g^2``; ``weight -= lr * corrections * m / (sqrt(v) + epsilon)``.
    Source: Kingma and Ba, arXiv 1412.6980.

    Parameters
    ----------
    learning_rate : float, default 0.001
    beta1, beta2 : float, default 0.9 and 0.999
    epsilon : float, default 1e-8
    lazy_update : bool, default True
        Whether a row_sparse gradient updates only its own rows. False: it is used like a dense one.
    others
        See Optimizer.
    """

    _rule = _core.UpdateRule("Adam")

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


@register
class AdamW(RuledOptimizer):
    """Adam with decoupled weight decay: ``weight -= lr * (corrections * m / (sqrt(v) + epsilon) + wd * weight)``.

    Source: Loshchilov and Hutter, arXiv 1711.05101, algorithm 2. Parameters: see Adam; correct_bias: whether the
    moments' bias is corrected.
    """

    _rule = _core.UpdateRule("AdamW")

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


@register
class Adamax(RuledOptimizer):
    """Adam with the largest instead of the root mean square gradient. Source: Kingma and Ba, arXiv 1412.6980, 7.1."""

    _rule = _core.UpdateRule("Adamax")

    def __init__(self, learning_rate: float = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2


@register
class Nadam(RuledOptimizer):
    """Adam with Nesterov momentum. Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016.

    schedule_decay: decay of the momentum schedule, default 0.004.
    """

    _rule = _core.UpdateRule("Nadam")

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


@register
class LAMB(RuledOptimizer):
    """Adam whose step for each layer is scaled by the norm of the weight over the norm of the step.

    Source: You et al., arXiv 1904.00962.

    Parameters
    ----------
    learning_rate, beta1, beta2, epsilon : float
    lower_bound, upper_bound : float, optional
        Bounds of the weight's norm in the ratio.
    bias_correction : bool, default True
    """

    _rule = _core.UpdateRule("LAMB")

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
