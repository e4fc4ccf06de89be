"""Stochastic gradient descent and its relatives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ndarray
from .optimizer import AGGREGATE_ALL, Optimizer, as_lists, register, split_lazy, zeros_like

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = ["DCASGD", "FTML", "LARS", "LBSGD", "NAG", "SGD", "SGLD", "Signum", "Test", "ccSGD"]


class _MomentumOptimizer(Optimizer):
    """Keeps one momentum array, and with multi_precision a float32 copy: (momentum, copy)."""

    momentum: float

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum != 0.0 else None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        if self._uses_master_copy(weight):
            master = weight.astype("float32")
            return (self.create_state(index, master), master)
        self._warn_about_low_precision(weight)
        return self.create_state(index, weight)

    def _arguments(self) -> dict[str, Any]:
        arguments = self._gradient_arguments()
        if self.momentum > 0:
            arguments["momentum"] = self.momentum
        return arguments


def interleave(*columns: Any) -> list[Any]:
    """[a0, b0, a1, b1, ...] of columns a, b."""
    return [value for row in zip(*columns, strict=False) for value in row]


def multi_sgd(
    weights: list[Any], grads: list[Any], states: list[Any], multi_precision: bool, moments: bool, **arguments: Any
) -> None:
    """Updates all weights in one operator call."""
    arguments.update(out=weights, num_weights=len(weights))
    if multi_precision and moments:
        ndarray.multi_mp_sgd_mom_update(*interleave(weights, grads, *zip(*states, strict=False)), **arguments)
    elif multi_precision:
        ndarray.multi_mp_sgd_update(*interleave(weights, grads, [state[1] for state in states]), **arguments)
    elif moments:
        ndarray.multi_sgd_mom_update(*interleave(weights, grads, states), **arguments)
    else:
        ndarray.multi_sgd_update(*interleave(weights, grads), **arguments)


@register
class SGD(_MomentumOptimizer):
    """``mom = momentum * mom - lr * (clip(rescale * grad) + wd * weight); weight += mom``, all weights in one call.

    Parameters
    ----------
    momentum : float, default 0.0
    lazy_update : bool, default True
        Whether a row_sparse gradient changes its own rows only. False: it is used like a dense one.
    others
        See Optimizer.
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update
        self.aggregate_num = AGGREGATE_ALL

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        self._update_count(indices)
        if any(each.stype != "default" for each in grads):
            lazy, (indices, weights, grads, states) = split_lazy(self.lazy_update, indices, weights, grads, states)
            for i, w, g, s in lazy:
                self._update_lazily(i, w, g, s, multi_precision)
            if not weights:
                return
        multi_sgd(
            weights,
            grads,
            states,
            multi_precision,
            self.momentum > 0,
            lrs=self._get_lrs(indices),
            wds=self._get_wds(indices),
            **self._arguments(),
        )

    def _update_lazily(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool) -> None:
        arguments = {"lr": self._get_lr(index), "wd": self._get_wd(index), **self._arguments()}
        momentum, master = state if multi_precision else (state, None)
        target = weight if master is None else master
        grad = grad if master is None else grad.astype("float32")
        if momentum is None:
            ndarray.sgd_update(target, grad, out=target, **arguments)
        else:
            ndarray.sgd_mom_update(target, grad, momentum, out=target, **arguments)
        if master is not None:
            weight[:] = master.astype(weight.dtype)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_impl(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        first = weight[0] if isinstance(index, (list, tuple)) else weight
        self._update_impl(index, weight, grad, state, multi_precision=self._uses_master_copy(first))


@register
class ccSGD(SGD):
    """SGD under an old name."""


@register
class NAG(_MomentumOptimizer):
    """Nesterov momentum: ``mom = momentum * mom + g; weight -= lr * (g + momentum * mom)``.

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning, 2013.
    """

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        lr, wd = self._begin(index)
        arguments = {"out": weight, "lr": lr, "wd": wd, **self._arguments()}
        if multi_precision and state[0] is not None:
            ndarray.mp_nag_mom_update(weight, grad, state[0], state[1], **arguments)
        elif multi_precision:
            ndarray.mp_sgd_update(weight, grad, state[1], **arguments)
        elif state is not None:
            ndarray.nag_mom_update(weight, grad, state, **arguments)
        else:
            ndarray.sgd_update(weight, grad, **arguments)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_impl(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_impl(index, weight, grad, state, multi_precision=self._uses_master_copy(weight))


@register
class Signum(_MomentumOptimizer):
    """Steps by the sign of the momentum (or of the gradient, with momentum 0).

    ``mom = momentum * mom - (1 - momentum) * (clip(rescale * grad) + wd * weight)``;
    ``weight = (1 - lr * wd_lh) * weight + lr * sign(mom)``. Source: Bernstein et al., arXiv 1802.04434.
    """

    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        return Optimizer.create_state_multi_precision(self, index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        arguments = {"out": weight, "lr": lr, "wd": wd, **self._arguments()}
        if state is None:
            ndarray.signsgd_update(weight, grad, **arguments)
        else:
            if self.wd_lh:
                arguments["wd_lh"] = self.wd_lh
            ndarray.signum_update(weight, grad, state, **arguments)


@register
class FTML(Optimizer):
    """Follow the moving leader. Source: Zheng and Kwok, ICML 2017."""

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return tuple(zeros_like(weight) for _ in range(3))

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        arguments: dict[str, Any] = {"rescale_grad": self.rescale_grad, "t": self._index_update_count[index]}
        if self.clip_gradient:
            arguments["clip_grad"] = self.clip_gradient
        d, v, z = state
        ndarray.ftml_update(
            weight,
            grad,
            d,
            v,
            z,
            out=weight,
            lr=lr,
            wd=wd,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            **arguments,
        )


def _norm(array: NDArray) -> float:
    return float(ndarray.norm(array.astype("float32")).asscalar())


@register
class LARS(_MomentumOptimizer):
    """SGD whose step for each layer is scaled by ``eta * |weight| / (|grad| + wd * |weight| + eps)``.

    Parameters whose names end in gamma, beta or bias keep the plain rate. Source: You et al., arXiv 1708.03888.

    Parameters
    ----------
    momentum : float, default 0.0
    eta, eps : float, default 0.001 and 0
    momentum_correction : bool, default True
        Whether momentum follows changes of the learning rate.
    """

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
        self.aggregate_num = AGGREGATE_ALL
        self.eta = eta
        self.eps = eps
        self.last_lr: float | None = None
        self.cur_lr: float | None = None

    def _decays(self, name: str) -> bool:
        return name.endswith("_weight")

    def _name(self, index: Any) -> str:
        param = self.param_dict.get(index)
        return param.name if param is not None else self.idx2name.get(index, str(index))

    def _layer_lrs(self, indices: list[Any], weights: list[Any], grads: list[Any], wds: list[float]) -> list[float]:
        scaled = [i for i, index in enumerate(indices) if not self._name(index).endswith(("gamma", "beta", "bias"))]
        lrs = self._get_lrs(indices)
        if not scaled:
            return lrs
        arrays = [weights[i] for i in scaled] + [grads[i] for i in scaled]
        norms = np.sqrt(ndarray.multi_sum_sq(*arrays, num_arrays=len(arrays)).asnumpy().astype("float64"))
        for i, weight, grad in zip(scaled, norms, norms[len(scaled) :] * self.rescale_grad, strict=False):
            if weight > 0.0 and grad > 0.0:
                lrs[i] *= float(self.eta * weight / (grad + wds[i] * weight + self.eps))
        return lrs

    def _corrected_momentum(self) -> float:
        lr = self.learning_rate
        self.last_lr, self.cur_lr = (lr if self.cur_lr is None else self.cur_lr), lr
        return self.momentum * lr / self.last_lr if self.momentum_correction and self.last_lr else self.momentum

    def _update_impl(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool = False) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        self._update_count(indices)
        wds = self._get_wds(indices)
        lrs = self._layer_lrs(indices, weights, grads, wds)
        arguments = self._arguments()
        if "momentum" in arguments:
            arguments["momentum"] = self._corrected_momentum()
        multi_sgd(weights, grads, states, multi_precision, self.momentum > 0, lrs=lrs, wds=wds, **arguments)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._update_impl(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        first = weight[0] if isinstance(index, (list, tuple)) else weight
        self._update_impl(index, weight, grad, state, multi_precision=self._uses_master_copy(first))


@register
class LBSGD(_MomentumOptimizer):
    """SGD for large batches: gradients of batch_scale steps are averaged, and the rate warms up.

    Parameters
    ----------
    momentum : float, default 0.0
    warmup_strategy : {'linear', 'power2', 'sqrt', 'lars'}
    warmup_epochs, updates_per_epoch, begin_epoch, num_epochs : int
    batch_scale : int, default 1
        Steps that make one large batch; the rate grows up to this factor.
    """

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
        self.init_updates = begin_epoch * updates_per_epoch
        self.num_epochs = num_epochs
        # Per weight: sum of gradients since the last step (None right after one), and the number of gradients so far.
        self.cumgrads: dict[Any, tuple[Any, int]] = {}

    def _get_lbmult(self, updates: int) -> float:
        warmup = self.warmup_epochs * self.updates_per_epoch
        largest = float(self.batch_scale)
        if updates >= warmup:
            return largest
        if warmup <= 1:
            return 1.0
        share = updates / warmup
        shares = {"linear": share, "power2": share * share, "sqrt": math.sqrt(share)}
        return 1.0 + (largest - 1) * shares.get(self.warmup_strategy, 0.0)

    def _get_lars(self, weight: NDArray, grad: NDArray, wd: float) -> float:
        weight2, grad2 = _norm(weight) ** 2, _norm(grad) ** 2
        return min(max(math.sqrt(weight2 / (grad2 + wd * weight2 + 1e-18)), 0.01), 100.0)

    def _cumulate(self, index: Any, grad: NDArray) -> tuple[NDArray, int]:
        total, count = self.cumgrads.get(index, (None, self.init_updates))
        total = grad.copy() if total is None else total + grad
        self.cumgrads[index] = (total, count + 1)
        return total, count + 1

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._apply(index, weight, grad, state, False)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._apply(index, weight, grad, state, self._uses_master_copy(weight))

    def _apply(self, index: Any, weight: Any, grad: Any, state: Any, multi_precision: bool) -> None:
        lr, wd = self._get_lr(index), self._get_wd(index)
        self._update_count(index)
        total, count = self._cumulate(index, grad)
        if count % self.batch_scale:
            return
        grad = total / self.batch_scale
        lars = self.warmup_strategy == "lars"
        lr *= self._get_lars(weight, grad, wd) if lars else self._get_lbmult(count)
        multi_sgd(
            [weight], [grad], [state], multi_precision, self.momentum > 0, lrs=[lr], wds=[wd], **self._arguments()
        )
        self.cumgrads[index] = (None, count)


@register
class DCASGD(Optimizer):
    """SGD with a correction for the delay between computing a gradient and using it.

    Source: Zheng et al., Asynchronous Stochastic Gradient Descent with Delay Compensation, arXiv 1609.08326.
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.weight_previous: dict[Any, Any] = {}
        self.lamda = lamda

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return (zeros_like(weight) if self.momentum != 0.0 else None, weight.copy())

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        grad = self._scaled(grad)
        mom, previous = state
        step = -lr * (grad + wd * weight + self.lamda * grad * grad * (weight - previous))
        if mom is not None:
            mom[:] = step = self.momentum * mom + step
        previous[:] = weight
        weight += step


@register
class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: half a step of SGD plus noise of variance lr.

    Source: Patterson and Teh, Stochastic Gradient Riemannian Langevin Dynamics on the Probability Simplex, 2013.
    """

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._begin(index)
        noise = ndarray.random.normal(0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype, ctx=weight.context)
        weight += noise - (lr / 2) * (self._scaled(grad) + wd * weight)


@register
class Test(Optimizer):
    """Adds the rescaled gradient; for tests of key-value stores."""

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        weight += grad * self.rescale_grad
        state[:] = weight
