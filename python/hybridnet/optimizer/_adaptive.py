"""Optimizers with a separate rate for each element: AdaGrad, AdaDelta, RMSProp, FTRL."""

from __future__ import annotations

from typing import Any

from .. import _core
from ._ruled import RuledOptimizer
from .optimizer import register

__all__ = ["AdaDelta", "AdaGrad", "Ftrl", "RMSProp"]


@register
class AdaGrad(RuledOptimizer):
    """``history += g^2; weight -= lr * (g / sqrt(history + eps) + wd * weight)``.

    Source: Duchi et al., Adaptive Subgradient Methods, 2011.
    """

    _rule = _core.UpdateRule("AdaGrad")

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps


@register
class RMSProp(RuledOptimizer):
    """Divides the gradient by the root of a running mean of its square.

    centered=False: Tieleman and Hinton, lecture 6.5, 2012; centered=True: Graves, arXiv 1308.0850, eq. 38-45.

    Parameters
    ----------
    learning_rate : float, default 0.001
    gamma1 : float, default 0.9
        Decay of the running means.
    gamma2 : float, default 0.9
        Momentum; centered only.
    epsilon : float, default 1e-8
    centered : bool, default False
        Whether the running mean of the gradient is subtracted from its square.
    clip_weights : float, optional
        Weights are clipped to [-clip_weights, clip_weights] after the step.
    """

    _rule = _core.UpdateRule("RMSProp")

    def __init__(
        self,
        learning_rate: float = 0.001,
        gamma1: float = 0.9,
        gamma2: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.centered = centered
        self.epsilon = epsilon
        self.clip_weights = clip_weights


@register
class AdaDelta(RuledOptimizer):
    """Steps by the ratio of running means of past steps and gradients; there is no learning rate.

    Source: Zeiler, arXiv 1212.5701.

    rho: decay of the running means, default 0.9; epsilon, default 1e-5.
    """

    _rule = _core.UpdateRule("AdaDelta")

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon


@register
class Ftrl(RuledOptimizer):
    """Follow the regularized leader. Source: McMahan et al., Ad Click Prediction: a View from the Trenches, 2013.

    lamda1: L1 penalty, default 0.01; learning_rate, default 0.1; beta, default 1.
    """

    _rule = _core.UpdateRule("Ftrl")

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.lamda1 = lamda1
        self.beta = beta
