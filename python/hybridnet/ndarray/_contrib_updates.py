"""Optimizer updates of many tensors at once, with the argument lists of MXNet's contrib namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .ndarray import NDArray

Arrays = Sequence[NDArray]


def _scale(rescale_grad: NDArray | float, weight: NDArray) -> NDArray:
    """The scale of gradients as an array of one number: if it is not finite, the operator skips the update."""
    from . import full

    if isinstance(rescale_grad, NDArray):
        return rescale_grad.as_in_context(weight.context)
    return full((1,), rescale_grad, ctx=weight.context)


def _in_turn(*columns: Arrays) -> list[NDArray]:
    """Interleaves the tensors: those of the first update, then those of the second, and so on."""
    return [array for row in zip(*columns, strict=True) for array in row]


def adamw_update(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    rescale_grad: NDArray | float,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    clip_gradient: float = -1.0,
    out: NDArray | None = None,
    name: str | None = None,
    **kwargs: Any,
) -> NDArray:
    """AdamW (arXiv 1711.05101, algorithm 2): ``weight -= eta * (lr * mean / (sqrt(var) + epsilon) + wd * weight)``.

    mean and var are replaced. Nothing changes if rescale_grad, a number or an array of one, is 0 or not finite.
    """
    from . import _internal

    arguments = {
        "lr": lr,
        "eta": eta,
        "beta1": beta1,
        "beta2": beta2,
        "epsilon": epsilon,
        "wd": wd,
        "clip_gradient": clip_gradient,
    }
    return _internal._adamw_update(
        weight, grad, mean, var, _scale(rescale_grad, weight), out=out, name=name, **arguments, **kwargs
    )


def mp_adamw_update(
    weight: NDArray,
    grad: NDArray,
    mean: NDArray,
    var: NDArray,
    weight32: NDArray,
    rescale_grad: NDArray | float,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    clip_gradient: float = -1.0,
    out: NDArray | None = None,
    name: str | None = None,
    **kwargs: Any,
) -> NDArray:
    """Runs adamw_update on weight32, a float32 copy of the weight, which is replaced as well."""
    from . import _internal

    arguments = {
        "lr": lr,
        "eta": eta,
        "beta1": beta1,
        "beta2": beta2,
        "epsilon": epsilon,
        "wd": wd,
        "clip_gradient": clip_gradient,
    }
    return _internal._mp_adamw_update(
        weight, grad, mean, var, weight32, _scale(rescale_grad, weight), out=out, name=name, **arguments, **kwargs
    )


def multi_adamw_update(
    weights: Arrays,
    grads: Arrays,
    mean: Arrays,
    var: Arrays,
    rescale_grad: NDArray | float,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    out: Arrays | None = None,
    name: str | None = None,
    size: int = 0,
    **kwargs: Any,
) -> list[NDArray]:
    """Runs adamw_update on several tensors; lrs, wds and etas hold one number for each."""
    from . import _internal

    arrays = [*_in_turn(weights, grads, mean, var), _scale(rescale_grad, weights[0])]
    return _internal._multi_adamw_update(
        *arrays, out=out, num_weights=size or len(weights), lrs=lrs, wds=wds, etas=etas, name=name, **kwargs
    )


def multi_mp_adamw_update(
    weights: Arrays,
    grads: Arrays,
    mean: Arrays,
    var: Arrays,
    weights32: Arrays,
    rescale_grad: NDArray | float,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    out: Arrays | None = None,
    name: str | None = None,
    size: int = 0,
    **kwargs: Any,
) -> list[NDArray]:
    """Runs mp_adamw_update on several tensors; lrs, wds and etas hold one number for each."""
    from . import _internal

    arrays = [*_in_turn(weights, grads, mean, var, weights32), _scale(rescale_grad, weights[0])]
    return _internal._multi_mp_adamw_update(
        *arrays, out=out, num_weights=size or len(weights), lrs=lrs, wds=wds, etas=etas, name=name, **kwargs
    )


def multi_lamb_update(
    weights: Arrays,
    grads: Arrays,
    mean: Arrays,
    var: Arrays,
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    out: Arrays | None = None,
    num_tensors: int = 0,
    **kwargs: Any,
) -> list[NDArray]:
    """Runs LAMB (You et al., ICLR 2020, algorithm 2) on several tensors; mean and var are replaced.

    step_count, lrs and wds hold one number for each tensor; step_count starts at 1.
    """
    from . import _internal

    return _internal._multi_lamb_update(
        *_in_turn(weights, grads, mean, var),
        out=out,
        num_tensors=num_tensors or len(weights),
        step_count=step_count,
        learning_rates=lrs,
        wds=wds,
        **kwargs,
    )


def multi_mp_lamb_update(
    weights: Arrays,
    grads: Arrays,
    mean: Arrays,
    var: Arrays,
    weights32: Arrays,
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    out: Arrays | None = None,
    num_tensors: int = 0,
    **kwargs: Any,
) -> list[NDArray]:
    """Runs multi_lamb_update on weights32, float32 copies of the weights, which are replaced as well."""
    from . import _internal

    return _internal._multi_mp_lamb_update(
        *_in_turn(weights, grads, mean, var, weights32),
        out=out,
        num_tensors=num_tensors or len(weights),
        step_count=step_count,
        learning_rates=lrs,
        wds=wds,
        **kwargs,
    )
