"""``mx.sym.gradient``: gradients as nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..errors import unknown_name
from . import _internal
from .symbol import Symbol, main_operator

__all__ = ["gradient"]

_OWNER = "sym.gradient"


def gradient(loss: Any, wrt: Any, head_grads: Any = None) -> Any:
    """Returns the gradient of losses with respect to variables, as graph values that any operator may read.

    A graph that contains gradients can be run, differentiated again, saved and rewritten like any other: as an output
    or an update of ``mx.function``, by ``bind`` and ``eval``, in a file.

    Parameters
    ----------
    loss : Symbol or list of Symbol
        Floating values of any shapes. The gradient is taken of the sum of all their elements.
    wrt : Symbol, Parameter, str, or a list of them
        Variables: of ``mx.sym.var``, ``mx.shared``, parameters of blocks (or their ``var()``), or names of variables
        that the losses read. Intermediate values are not supported.
    head_grads : Symbol or list of Symbol, optional
        Weights of the elements of each loss: one Symbol or None (ones) per loss, in the loss's shape. No gradient
        passes through these weights.

    Returns
    -------
    Symbol or list of Symbol
        One per variable, of the variable's shape and dtype; a list if wrt is a list. Zeros for a variable that the
        losses do not depend on.

    Raises
    ------
    TypeError
        If wrt holds anything other than variables.
    ValueError
        If a name is unknown, or head_grads has not one entry per loss.
    UnsupportedError
        When the graph runs, if a loss is not floating, or if an operator on the path has no gradient.

    Examples
    --------
    >>> x = mx.sym.var("x")
    >>> f = mx.function([x], mx.sym.gradient(x * x * x, x))
    >>> f(mx.nd.array([1, 2])).asnumpy()
    array([ 3., 12.], dtype=float32)
    """
    losses = _losses(loss)
    is_list = isinstance(wrt, (list, tuple))
    asked = list(wrt) if is_list else [wrt]
    variables = [variable for one in asked for variable in _variables(one, losses)]
    if not losses or not variables:
        raise HybridNetValueError(_OWNER, expected="one loss and one variable at least", given="none")
    terms = losses if head_grads is None else _weighted(losses, head_grads)
    made = _internal._gradient(*terms, *variables, num_losses=len(terms))
    grads = [made] if len(variables) == 1 else list(made)
    grads = [_like(grad, variable) for grad, variable in zip(grads, variables, strict=True)]
    return grads if is_list or len(grads) > 1 else grads[0]


def _outputs(value: Symbol) -> list[Symbol]:
    return [value] if value.num_outputs == 1 else [_core.symbol_output(value, i) for i in range(value.num_outputs)]


def _losses(loss: Any) -> list[Symbol]:
    given = list(loss) if isinstance(loss, (list, tuple)) else [loss]
    for one in given:
        if not isinstance(one, Symbol):
            raise HybridNetTypeError(
                f"{_OWNER}: loss",
                expected="a Symbol or a list of Symbols",
                given=f"a {type(one).__name__}",
                fix="arrays have autograd.record() and backward()" if hasattr(one, "asnumpy") else None,
            )
    return [output for one in given for output in _outputs(one)]


def _variables(one: Any, losses: Sequence[Symbol]) -> list[Symbol]:
    if isinstance(one, str):
        return [_by_name(one, losses)]
    variable = one.var() if not isinstance(one, Symbol) and hasattr(one, "_used_data") else one
    if isinstance(variable, Symbol):
        outputs = _outputs(variable)
        between = [output.name for output in outputs if _core.symbol_op(output) is not None]
        if not between:
            return outputs
        given = f"{between[0]!r}, which an operator computes"
    else:
        given = f"a {type(one).__name__}"
    raise HybridNetTypeError(
        f"{_OWNER}: wrt",
        expected="variables",
        given=given,
        because="rewriting may compute a loss without the values between operators",
        fix="ask for the gradient of the variables that it is computed from",
    )


def _by_name(name: str, losses: Sequence[Symbol]) -> Symbol:
    inputs = {variable.name: variable for _, variable, _ in _core.variables_of(list(losses))}
    if name not in inputs:
        raise unknown_name(f"{_OWNER}: wrt", "variable", name, inputs, HybridNetValueError)
    return inputs[name]


def _weighted(losses: Sequence[Symbol], head_grads: Any) -> list[Symbol]:
    heads = list(head_grads) if isinstance(head_grads, (list, tuple)) else [head_grads]
    if len(heads) != len(losses):
        raise HybridNetValueError(
            f"{_OWNER}: head_grads", expected=f"{len(losses)}, one per loss", given=str(len(heads))
        )
    terms = []
    for loss, head in zip(losses, heads, strict=True):
        if head is None:
            terms.append(loss)
            continue
        if not isinstance(head, Symbol):
            raise HybridNetTypeError(
                f"{_OWNER}: head_grads", expected="Symbols or None", given=f"a {type(head).__name__}"
            )
        terms.append(main_operator("elemwise_mul")(loss, main_operator("BlockGrad")(head)))
    return terms


def _like(grad: Symbol, variable: Symbol) -> Symbol:
    return grad.as_np_ndarray() if variable._has_numpy_interface else grad
