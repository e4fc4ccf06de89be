"""Loops and branches over arrays: foreach, while_loop, cond.

On arrays they are plain Python control flow. In a hybridized block, and on Symbols, their functions run once on
abstract arrays; the resulting graph has the loop or branch as one node, which runs without Python, has gradients of any
order, and is saved with the model. The functions may use any values of their closure: arrays, parameters, other blocks.

Also available as ``nd.contrib.foreach``, ``sym.contrib.foreach``, ``F.contrib.foreach``, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _tracing, errors
from ..ndarray import NDArray
from ..symbol import Symbol
from . import nests, rules
from .calls import BodyNode, Cond, Foreach, WhileLoop

__all__ = ["BodyNode", "cond", "foreach", "while_loop"]


def foreach(
    body: Callable[..., Any],
    data: Any,
    init_states: Any = None,
    length: int | None = None,
    reverse: bool = False,
    with_index: bool = False,
    checkpoint: Any = None,
    truncate_gradient: int = -1,
    detach_every: int = 0,
    unroll: int | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Runs body once per slice of data along axis 0.

    Parameters
    ----------
    body : function (x, states) -> (outs, states)
        x has the structure of data, with slices (shape of the array without axis 0; slices of a 1-d array have shape
        (1,) unless numpy shapes are on). New states must have the structure, shapes and dtypes of init_states.
    data : array or nest of arrays
        Arrays of equal length T along axis 0. May be empty if length is given.
    init_states : array, number or nest of these
        States of the first iteration. May be empty. A number becomes an array of the dtype that body returns.
    length : int, optional
        The number of iterations T, needed without data. As fourth positional argument, a string is taken as `name`
    reverse : bool, default False
        Iterates from T-1 down to 0; the outputs of iteration t are still in row t.
    with_index : bool, default False
        body is called with (t, x, states), t an int64 array.
    checkpoint : None, "sqrt", int, or function BodyNode -> bool, optional
        In a graph: the values that are kept for the gradient; the rest is recomputed. A number s: the states of every s
        iterations. "sqrt": s = sqrt(T). A function: called once for each node of the body during tracing; True keeps
        the values of the node. The states of all iterations are also kept. Saved models keep these decisions. On arrays
        everything is kept, and the function is not called.
    truncate_gradient : int, default -1
        Gradients flow through this number of last iterations only.
    detach_every : int, default 0
        Cuts the gradient of the states at every detach_every-th iteration. 0: never.
    unroll : int, optional
        A hint; accepted for graphs.
    name : str, optional
        Name of the node.

    Returns
    -------
    outs : nest of arrays of shape (T, ...)
    states : the last states, in the structure of init_states

    Raises
    ------
    TypeError, ShapeError, DTypeError
        If the body violates the rules above; the message names the line of the body.

    Examples
    --------
    >>> outs, total = mx.nd.contrib.foreach(lambda x, s: (x + s, x + s), mx.nd.arange(4), mx.nd.zeros((1,)))
    """
    if isinstance(length, str):
        length, name = None, length
    rules.check_function("foreach", body, "body")
    if length is not None:
        length = rules.check_count("foreach", "length", length, 0)
    check_gradient_options("foreach", truncate_gradient, detach_every)
    check_checkpoint("foreach", checkpoint)
    items, data_nest = rules.take_apart("foreach", data, "data")
    states, state_nest = rules.take_apart("foreach", init_states, "init_states", numbers=True)
    call = Foreach(
        body, items, data_nest, states, state_nest, length, bool(reverse), bool(with_index),
        max(int(truncate_gradient), 0), int(detach_every), checkpoint, name,
    )  # fmt: skip
    if is_traced([*items, *states]):
        from . import trace

        return trace.foreach(call)
    from . import arrays

    return arrays.foreach(call)


def while_loop(
    cond: Callable[..., Any],
    func: Callable[..., Any],
    loop_vars: Any,
    max_iterations: Any = None,
    exact: bool = False,
    has_outputs: bool = True,
    shape_invariants: dict[int, tuple[int | None, ...]] | None = None,
    on_limit: str = "stop",
    return_count: bool = False,
    checkpoint: Any = None,
    name: str | None = None,
) -> Any:
    """Runs func as long as cond is true.

    Parameters
    ----------
    cond : function (*loop_vars) -> array of one element
        Called before every iteration; nonzero means continue.
    func : function (*loop_vars) -> (outs, loop_vars)
        Returns loop_vars alone with has_outputs=False. New variables keep shapes and dtypes.
    loop_vars : array, number or nest of these, at least one
        The items of a list or tuple are separate arguments.
    max_iterations : int, or integer array of one element
        Maximum number of iterations. None: needs exact=True or no outputs. An array is read when the loop runs; an
        array from outside of a hybridized block is read during tracing. In a graph, without an int, the number of rows
        of the outputs is known only after each run.
    exact : bool, default False
        Outputs have one row per iteration, instead of max_iterations rows padded with zeros.
    has_outputs : bool, default True
    shape_invariants : dict from position of a variable to a tuple with None for sizes that may change, optional
        For these variables one size may change between iterations; other sizes, and the number of axes, are fixed.
    on_limit : "stop", "warn" or "raise"
        Behavior when max_iterations ends the loop while cond is still true: none, a UserWarning, a ValueError. In a
        graph this happens when the loop runs: the error is raised at the first read of its results.
    return_count : bool, default False
        Also return the number of iterations.
    checkpoint : None, "sqrt", int, or function BodyNode -> bool, optional
        In a graph: the values that are kept for the gradient; the rest is recomputed, once per level of segments. A
        number s: the variables at the beginning of segments of s iterations; "sqrt": of segments of at most 32. If
        there are more than 64 segments, they are nested, so that at most 64 copies of the variables are kept, whatever
        max_iterations is. While the gradient of a segment is computed, all its values are kept; with a function (called
        as in foreach) its variables and the values for which it returned True.
    name : str, optional
        As fifth positional argument, a string is taken as the name (MXNet's order).

    Returns
    -------
    outs : nest of arrays (left out with has_outputs=False)
    loop_vars : the last variables
    count : int64 array of one element, with return_count=True

    Raises
    ------
    ValueError
        If a required limit is missing.
    TypeError, ShapeError, DTypeError
        If a function violates the rules above.
    """
    if isinstance(exact, str):
        exact, name = False, exact
    rules.check_function("while_loop", cond, "cond")
    rules.check_function("while_loop", func, "func")
    rules.check_choice("while_loop", "on_limit", on_limit, ("stop", "warn", "raise"))
    check_checkpoint("while_loop", checkpoint)
    states, nest = rules.take_apart("while_loop", loop_vars, "loop_vars", numbers=True)
    if not states:
        rules.fail(errors.ValueError, "while_loop", "loop_vars must hold at least one array", fix="carry a counter")
    limit = _checked_limit(max_iterations, exact, has_outputs)
    spread = nest.kind in ("list", "tuple", "namedtuple")
    call = WhileLoop(
        cond, func, states, nest, spread, limit, bool(exact), bool(has_outputs), on_limit, checkpoint, name=name
    )
    call.free_sizes = _free_sizes(call, shape_invariants)
    if is_traced([*states, limit]):
        from . import trace

        outs, final, count = trace.while_loop(call)
    else:
        from . import arrays

        outs, final, count = arrays.while_loop(call)
    result = (outs, final) if has_outputs else (final,)
    if return_count:
        return (*result, count)
    return result if has_outputs else final


def cond(
    pred: Any,
    then_func: Callable[..., Any],
    else_func: Callable[..., Any],
    inputs: Any = (),
    strict_shape: bool = False,
    name: str | None = None,
) -> Any:
    """Runs then_func if pred is nonzero, else else_func. The other one does not run, nor does its gradient.

    Parameters
    ----------
    pred : array of one element, number or bool
        On arrays it is read at once; in a graph it is read in each run. A Python bool selects the branch during
        tracing.
    then_func, else_func : function (*inputs) -> nest of arrays
        Both return the same structure and dtypes.
    inputs : sequence, default ()
        Arguments of both functions. As fourth positional argument, a string is taken as `name` (MXNet's order).
    strict_shape : bool, default False
        Whether outputs with different sizes are refused.
    name : str, optional

    Returns the result of the chosen function.

    Raises
    ------
    TypeError, ShapeError, DTypeError
        If pred does not have exactly one element, or (in a graph) the branches do not match.
    """
    if isinstance(inputs, str):
        name, inputs = inputs, ()
    rules.check_function("cond", then_func, "then_func")
    rules.check_function("cond", else_func, "else_func")
    if not isinstance(inputs, (list, tuple)):
        inputs = (inputs,)
    if callable(pred) and not rules.is_array(pred):
        pred = pred(*inputs)
    call = Cond(pred, then_func, else_func, inputs, bool(strict_shape), name)
    if rules.is_number(pred):
        outs, nest = call.branch(bool(pred != 0))
        return nests.restore(nest, outs)
    rules.check_pred("cond", pred)
    if is_traced([pred]):
        from . import trace

        return trace.cond(call)
    from . import arrays

    return arrays.cond(call)


# -------------------------------------------------------------------------------------------------------------- checks
def is_traced(values: list[Any]) -> bool:
    """Whether a loop over these values becomes part of a graph."""
    return _tracing.current() is not None or any(isinstance(value, Symbol) for value in values)


def check_gradient_options(construct: str, truncate_gradient: Any, detach_every: Any) -> None:
    """Checks truncate_gradient and detach_every of a loop over rows."""
    if not isinstance(truncate_gradient, (int, np.integer)) or (truncate_gradient < 1 and truncate_gradient != -1):
        rules.fail(
            errors.ParamError,
            construct,
            "truncate_gradient",
            expected="-1 or at least 1",
            given=repr(truncate_gradient),
        )
    rules.check_count(construct, "detach_every", detach_every, 0)


def check_checkpoint(construct: str, checkpoint: Any) -> None:
    """Checks the checkpoint argument of a loop."""
    if checkpoint is None or callable(checkpoint) or (isinstance(checkpoint, str) and checkpoint == "sqrt"):
        return
    if isinstance(checkpoint, (bool, str)) or not isinstance(checkpoint, (int, np.integer)) or checkpoint < 1:
        rules.fail(
            errors.ParamError,
            construct,
            "checkpoint",
            expected="None, 'sqrt', an integer of at least 1, or a function that selects the values to keep",
            given=repr(checkpoint),
        )


def _checked_limit(limit: Any, exact: bool, has_outputs: bool) -> Any:
    if limit is None:
        if exact or not has_outputs:
            return None
        rules.fail(
            errors.ValueError,
            "while_loop",
            "max_iterations should be specified",
            because="the outputs have max_iterations rows",
            fix="give max_iterations, or exact=True, or has_outputs=False",
        )
    if isinstance(limit, (NDArray, Symbol)):
        spec = rules.spec_of(limit)
        if spec is not None and int(np.prod(spec[0], dtype=np.int64)) != 1:
            rules.fail(
                errors.ShapeError,
                "while_loop",
                "max_iterations",
                expected="one element",
                given=rules.describe(spec),
                fix="pass one limit for the whole loop",
            )
        return limit
    if isinstance(limit, (float, np.floating)) and float(limit).is_integer():
        limit = int(limit)
    return rules.check_count("while_loop", "max_iterations", limit, 0)


def _free_sizes(call: WhileLoop, invariants: dict[int, tuple[int | None, ...]] | None) -> list[Any]:
    count = len(call.states)
    sizes: list[Any] = [()] * count
    for position, shape in (invariants or {}).items():
        if not isinstance(position, int) or not 0 <= position < count:
            rules.fail(
                errors.ParamError,
                "while_loop",
                "shape_invariants",
                expected=f"positions from 0 to {count - 1}",
                given=repr(position),
            )
        sizes[position] = _checked_sizes(call, position, shape)
    return sizes


def _checked_sizes(call: WhileLoop, position: int, shape: Any) -> tuple[int | None, ...]:
    """Checks the sizes in shape_invariants for one variable: one per axis, equal to its own size or None."""
    given = f"{shape!r} for {call.state_paths()[position]}"
    if not isinstance(shape, (tuple, list)) or not all(size is None or isinstance(size, int) for size in shape):
        rules.fail(
            errors.ParamError, call.construct, "shape_invariants", expected="a tuple of sizes and None", given=given
        )
    state = call.states[position]
    spec = None if rules.is_number(state) else rules.spec_of(state)
    own = shape if spec is None else spec[0]
    if len(own) != len(shape) or any(b is not None and a != b for a, b in zip(own, shape, strict=True)):
        rules.fail(
            errors.ShapeError,
            call.construct,
            "shape_invariants",
            expected=f"a shape that {own} fits",
            given=given,
            because="a variable starts with its given shape",
            fix="write None for the sizes that change, the variable's own for the others",
        )
    return tuple(shape)
