"""Autograd under the names from before MXNet 1.0; new programs use :mod:`hybridnet.autograd`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from .. import autograd
from .._public_names import dir_of
from ..autograd import backward, mark_variables
from ..errors import TypeError as HybridNetTypeError
from ..ndarray import NDArray, zeros_like

__all__ = [
    "backward",
    "compute_gradient",
    "grad",
    "grad_and_loss",
    "mark_variables",
    "set_is_training",
    "test_section",
    "train_section",
    "NDArray",
    "zeros_like",
]


def set_is_training(is_train: bool) -> bool:
    """Switches recording and training mode together; returns the previous training mode."""
    autograd.set_recording(is_train)
    return autograd.set_training(is_train)


def train_section() -> AbstractContextManager[Any]:
    """Returns a scope that records in training mode: ``with train_section():``."""
    return autograd.record()


def test_section() -> AbstractContextManager[Any]:
    """Returns a scope that neither records nor trains: ``with test_section():``."""
    return autograd.pause()


def compute_gradient(outputs: Sequence[NDArray]) -> None:
    """Computes gradients of the outputs for all marked variables."""
    backward(outputs)


def grad_and_loss(
    func: Callable[..., Any], argnum: int | Sequence[int] | None = None
) -> Callable[..., tuple[list[NDArray], Any]]:
    """Returns a function with the same arguments that returns (gradients, result of func).

    argnum: index of the argument, or indices, to differentiate with respect to; all of them if None.
    """

    @functools.wraps(func)
    def wrapped(*args: Any) -> tuple[list[NDArray], Any]:
        numbers = range(len(args)) if argnum is None else [argnum] if isinstance(argnum, int) else list(argnum)
        variables = [args[number] for number in numbers]
        for number, variable in zip(numbers, variables):
            if not isinstance(variable, NDArray):
                raise HybridNetTypeError(
                    f"grad_and_loss: argument {number}", expected="an NDArray", given=type(variable).__name__
                )
        gradients = [zeros_like(variable) for variable in variables]
        mark_variables(variables, gradients)
        with train_section():
            outputs = func(*args)
        backward([outputs] if isinstance(outputs, NDArray) else outputs)
        return gradients, outputs

    return wrapped


def grad(func: Callable[..., Any], argnum: int | Sequence[int] | None = None) -> Callable[..., list[NDArray]]:
    """Returns a function with the same arguments that returns the gradients of func; see :func:`grad_and_loss`."""
    with_loss = grad_and_loss(func, argnum)

    @functools.wraps(with_loss)
    def wrapped(*args: Any) -> list[NDArray]:
        return with_loss(*args)[0]

    return wrapped


__dir__ = dir_of(__name__)
