"""Optimizers with a rate of its own for each value: AdaGrad, AdaDelta, RMSProp, FTRL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import ndarray
from .optimizer import Optimizer, register, zeros_like

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = ["AdaDelta", "AdaGrad", "Ftrl", "RMSProp"]


@register
class AdaGrad(Optimizer):
    """``history += g^2; weight -= lr * (g / sqrt(history + eps) + wd * weight)``.

    Source: Duchi et al., Adaptive Subgradient Methods, 2011.
    """

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        ndarray._internal._sparse_adagrad_update(
            weight, grad, state, out=weight, lr=lr, wd=wd, epsilon=self.float_stable_eps, **self._gradient_arguments()
        )


@register
class RMSProp(Optimizer):
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

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return tuple(zeros_like(weight) for _ in range(3 if self.centered else 1))

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        arguments = {"gamma1": self.gamma1, "epsilon": self.epsilon, **self._gradient_arguments()}
        if self.clip_weights:
            arguments["clip_weights"] = self.clip_weights
        if self.centered:
            n, g, delta = state
            ndarray.rmspropalex_update(
                weight, grad, n, g, delta, out=weight, lr=lr, wd=wd, gamma2=self.gamma2, **arguments
            )
        else:
            ndarray.rmsprop_update(weight, grad, state[0], out=weight, lr=lr, wd=wd, **arguments)


@register
class AdaDelta(Optimizer):
    """Steps by the ratio of running means of past steps and gradients; there is no learning rate.

    Source: Zeiler, arXiv 1212.5701.

    rho: decay of the running means, default 0.9; epsilon, default 1e-5.
    """

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return (zeros_like(weight), zeros_like(weight))

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        _, wd = self._begin(index)
        grad = self._scaled(grad)
        squares, steps = state
        squares[:] = self.rho * squares + (1.0 - self.rho) * grad * grad
        step = ndarray.sqrt(steps + self.epsilon) / ndarray.sqrt(squares + self.epsilon) * grad
        steps[:] = self.rho * steps + (1.0 - self.rho) * step * step
        weight -= step + wd * weight


@register
class Ftrl(Optimizer):
    """Follow the regularized leader. Source: McMahan et al., Ad Click Prediction: a View from the Trenches, 2013.

    lamda1: L1 penalty, default 0.01; learning_rate, default 0.1; beta, default 1.
    """

    def __init__(self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.lamda1 = lamda1
        self.beta = beta

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return (zeros_like(weight), zeros_like(weight))

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        z, n = state
        ndarray.ftrl_update(
            weight,
            grad,
            z,
            n,
            out=weight,
            lr=lr,
            wd=wd,
            lamda1=self.lamda1,
            beta=self.beta,
            **self._gradient_arguments(),
        )
