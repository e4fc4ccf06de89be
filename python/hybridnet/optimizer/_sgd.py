"""Stochastic gradient descent and its relatives."""

from __future__ import annotations

from typing import Any

from .. import _core
from ._ruled import RuledOptimizer
from .optimizer import register

__all__ = ["DCASGD", "FTML", "LARS", "LBSGD", "NAG", "SGD", "SGLD", "Signum", "Test", "ccSGD"]


@register
class SGD(RuledOptimizer):
    """``mom = momentum * mom - lr * (clip(rescale * grad) + wd * weight); weight += mom``, all weights in one call.

    Parameters
    ----------
    momentum : float, default 0.0
    lazy_update : bool, default True
        Whether a row_sparse gradient updates only its own rows. False: it is used like a dense one.
    others
        See Optimizer.
    """

    _rule = _core.UpdateRule("SGD")

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update


@register
class ccSGD(SGD):
    """The optimizer SGD under an old name."""

    _rule = _core.UpdateRule("ccSGD")


@register
class NAG(RuledOptimizer):
    """Nesterov momentum: ``mom = momentum * mom + g; weight -= lr * (g + momentum * mom)``.

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning, 2013.
    """

    _rule = _core.UpdateRule("NAG")

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum


@register
class Signum(RuledOptimizer):
    """Steps by the sign of the momentum (or of the gradient, with momentum 0).

    ``mom = momentum * mom - (1 - momentum) * (clip(rescale * grad) + wd * weight)``;
    ``weight = (1 - lr * wd_lh) * weight + lr * sign(mom)``. Source: Bernstein et al., arXiv 1802.04434.
    """

    _rule = _core.UpdateRule("Signum")

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh


@register
class FTML(RuledOptimizer):
    """Follow the moving leader. Source: Zheng and Kwok, ICML 2017."""

    _rule = _core.UpdateRule("FTML")

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon


@register
class LARS(RuledOptimizer):
    """SGD whose step for each layer is scaled by ``eta * |weight| / (|grad| + wd * |weight| + eps)``.

    Parameters whose names end in gamma, beta or bias keep the plain rate. Source: You et al., arXiv 1708.03888.

    Parameters
    ----------
    momentum : float, default 0.0
    eta, eps : float, default 0.001 and 0
    momentum_correction : bool, default True
        Whether momentum follows changes of the learning rate.
    """

    _rule = _core.UpdateRule("LARS")

    def __init__(
        self,
        momentum: float = 0.0,
        lazy_update: bool = True,
        eta: float = 0.001,
        eps: float = 0,
        momentum_correction: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.momentum_correction = momentum_correction
        self.lazy_update = lazy_update
        self.eta = eta
        self.eps = eps
        self.last_lr: float | None = None
        self.cur_lr: float | None = None

    def _decays(self, name: str) -> bool:
        return name.endswith("_weight")


@register
class LBSGD(RuledOptimizer):
    """SGD for large batches: gradients of batch_scale steps are averaged, and the rate warms up.

    Parameters
    ----------
    momentum : float, default 0.0
    warmup_strategy : {'linear', 'power2', 'sqrt', 'lars'}
    warmup_epochs, updates_per_epoch, begin_epoch, num_epochs : int
    batch_scale : int, default 1
        Steps that make one large batch; the rate grows up to this factor.
    """

    _rule = _core.UpdateRule("LBSGD")

    def __init__(
        self,
        momentum: float = 0.0,
        multi_precision: bool = False,
        warmup_strategy: str = "linear",
        warmup_epochs: int = 5,
        batch_scale: int = 1,
        updates_per_epoch: int = 32,
        begin_epoch: int = 0,
        num_epochs: int = 60,
        **kwargs: Any,
    ) -> None:
        super().__init__(multi_precision=multi_precision, **kwargs)
        self.momentum = momentum
        self.warmup_strategy = warmup_strategy
        self.warmup_epochs = warmup_epochs
        self.batch_scale = batch_scale
        self.updates_per_epoch = updates_per_epoch
        self.begin_epoch = begin_epoch
        self.num_epochs = num_epochs


@register
class DCASGD(RuledOptimizer):
    """SGD with a correction for the delay between computing a gradient and using it.

    Source: Zheng et al., Asynchronous Stochastic Gradient Descent with Delay Compensation, arXiv 1609.08326.
    """

    _rule = _core.UpdateRule("DCASGD")

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lamda = lamda


@register
class SGLD(RuledOptimizer):
    """Stochastic gradient Langevin dynamics: half a step of SGD plus noise of variance lr.

    Source: Patterson and Teh, Stochastic Gradient Riemannian Langevin Dynamics on the Probability Simplex, 2013.
    """

    _rule = _core.UpdateRule("SGLD")


@register
class Test(RuledOptimizer):
    """Adds the rescaled gradient; for tests of key-value stores."""

    _rule = _core.UpdateRule("Test")
