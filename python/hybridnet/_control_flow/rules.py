"""Checks of the arguments of foreach, while_loop and cond, and of the results of their functions.

Arrays and graphs share the checks, so that the same mistake gives the same error in both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import _core, errors
from ..ndarray import NDArray
from . import nests
from .nests import Nest, is_array, is_number

_PACKAGE = str(Path(__file__).resolve().parents[1])

Spec = tuple[tuple[int, ...], Any]


def caller_line() -> str:
    """Returns file:line of the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def line_of(function: Callable[..., Any]) -> str:
    """Returns file:line of a function, "" if it is not Python code."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def fail(
    kind: type[errors.HybridNetError],
    construct: str,
    message: str,
    *,
    expected: str = "",
    given: str = "",
    because: str = "",
    fix: str = "",
    function: Callable[..., Any] | None = None,
) -> NoReturn:
    """Raises kind with the parts of an error in their usual order. function: the one whose line is reported."""
    where = (line_of(function) if function is not None else "") or caller_line()
    raise kind(
        f"{construct}: {message}", op=construct, expected=expected, given=given, because=because, fix=fix, where=where
    )


def take_apart(construct: str, value: Any, path: str, numbers: bool = False) -> tuple[list[Any], Nest]:
    """Returns arrays and structure of an argument. None counts as an empty list."""
    arrays: list[Any] = []
    value = [] if value is None else value
    try:
        return arrays, nests.flatten(value, arrays, numbers)
    except nests.NotANest as error:
        kinds = "arrays, numbers" if numbers else "arrays"
        fail(
            errors.TypeError,
            construct,
            f"{path}{nests.path_to(error.value, value) or ''} is a {type(error.value).__name__}",
            because=f"{path} must be built of {kinds}, and lists, tuples, namedtuples and dicts of these",
            fix="convert it with mx.nd.array(...), or let the functions take it from around them",
        )


def spec_of(array: Any) -> Spec | None:
    """Returns (shape, dtype) of an array or of a Symbol in a trace; None if unknown."""
    if isinstance(array, NDArray):
        return array.shape, np.dtype(array.dtype)
    specs = _core.symbol_specs(array)
    if not specs:
        return None
    shape, dtype = specs[0]
    if shape is None or dtype is None or any(d < 0 for d in shape):
        return None
    return tuple(shape), np.dtype(dtype)


def has_open_sizes(array: Any) -> bool:
    """Whether the number of axes of a Symbol is known, but not all of their sizes."""
    specs = [] if isinstance(array, NDArray) else _core.symbol_specs(array)
    return bool(specs) and specs[0][0] is not None and any(d < 0 for d in specs[0][0])


def in_interface(like: Any, symbol: Any) -> Any:
    """Converts symbol to NumPy's interface if `like` has it."""
    return symbol.as_np_ndarray() if getattr(like, "_has_numpy_interface", False) else symbol


def describe(spec: Spec) -> str:
    """Formats a spec in the form of other errors: float32(2, 3)."""
    return f"{spec[1].name}{tuple(spec[0])}"


def answer_of(construct: str, policy: Any, node: Any) -> bool:
    """Whether policy keeps the node's values. Raises TypeError unless it returns a bool."""
    answer = policy(node)
    if not isinstance(answer, (bool, np.bool_)):
        fail(
            errors.TypeError,
            construct,
            "a function given as checkpoint must return True (keep) or False (compute again)",
            given=f"{answer!r} for the node '{node.name}' ({node.op})",
            function=policy,
        )
    return bool(answer)


def check_function(construct: str, function: Any, what: str) -> None:
    """Raises TypeError unless function is callable."""
    if not callable(function):
        fail(
            errors.TypeError,
            construct,
            f"{what} must be a function",
            given=f"a {type(function).__name__}",
            fix=f"pass {what}=lambda ...: ..., which is called with arrays",
        )


def check_choice(construct: str, name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raises an error unless value is one of allowed."""
    if value not in allowed:
        fail(errors.ParamError, construct, name, expected=" or ".join(repr(a) for a in allowed), given=repr(value))


def check_count(construct: str, name: str, value: Any, minimum: int) -> int:
    """Returns value. Raises an error unless it is an integer >= minimum."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < minimum:
        fail(errors.ParamError, construct, name, expected=f"an integer of at least {minimum}", given=repr(value))
    return int(value)


def check_structure(
    construct: str,
    expected: Nest,
    given: Nest,
    path: str,
    function: Callable[..., Any],
    because: str,
    model: str = "the initial ones",
) -> None:
    """Raises an error unless both nests have the same structure. model: describes the expected one."""
    if found := nests.mismatch(expected, given, path):
        where, wanted, got = found
        fail(
            errors.TypeError,
            construct,
            f"{where} has another structure than {model}",
            expected=wanted,
            given=got,
            because=because,
            fix=f"return {path} built as {model}: same lists, keys and lengths",
            function=function,
        )


def fail_rule(construct: str, broken: tuple[str, ...], function: Callable[..., Any]) -> NoReturn:
    """Raises the error of a violated rule as reported by the library (src/graph/control/rules.h)."""
    kind, message, expected, given, because, fix = broken
    fail(
        getattr(errors, kind), construct, message, expected=expected, given=given, because=because, fix=fix,
        function=function,
    )  # fmt: skip


def check_kept_spec(
    construct: str,
    path: str,
    before: Spec | None,
    after: Spec | None,
    function: Callable[..., Any],
    free: Sequence[Any] = (),
) -> None:
    """Raises an error unless a state keeps dtype and shape. free: sizes that may change are None (shape_invariants)."""
    if before is None or after is None or before == after:
        return
    may_change = [size is None for size in free]
    broken = _core.control_carry_rule(path, before, after, may_change, construct == "while_loop")
    if broken:
        fail_rule(construct, broken, function)


def check_same_specs(
    construct: str,
    paths: Sequence[str],
    first: Sequence[Spec | None],
    now: Sequence[Spec | None],
    function: Callable[..., Any],
) -> None:
    """Raises an error unless outputs of all iterations have equal specs, because they are stacked."""
    for path, one, other in zip(paths, first, now, strict=True):
        if one is not None and other is not None and one != other:
            fail_rule(construct, _core.control_row_rule(path, one, other), function)


def split_step(construct: str, result: Any, function: Callable[..., Any]) -> tuple[Any, Any]:
    """Splits the result of a body into (outputs, states)."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        given = f"a {type(result).__name__}" + (f" of {len(result)}" if isinstance(result, (tuple, list)) else "")
        fail(
            errors.TypeError,
            construct,
            "the function must return a pair (outputs, states)",
            given=given,
            fix="return outs, states; either part may be an empty list",
            function=function,
        )
    return result[0], result[1]


def truth(construct: str, pred: Any, function: Callable[..., Any] | None = None) -> bool:
    """Whether an array of one element, or a number, is nonzero. Waits for the array."""
    if is_number(pred):
        return bool(pred != 0)
    check_pred(construct, pred, function)
    return bool(pred.asnumpy().reshape(())[()] != 0)


def check_pred(construct: str, pred: Any, function: Callable[..., Any] | None = None) -> None:
    """Raises an error unless a condition is an array of one element."""
    if not is_array(pred):
        fail(
            errors.TypeError,
            construct,
            "the condition must be an array of one element or a bool",
            given=f"a {type(pred).__name__}",
            fix="compare arrays (x.sum() > 0), or convert it with mx.nd.array(...)",
            function=function,
        )
    spec = spec_of(pred)
    if spec is not None and int(np.prod(spec[0], dtype=np.int64)) != 1:
        fail(
            errors.ShapeError,
            construct,
            "the condition must have one element",
            given=describe(spec),
            because="it decides once for the whole array",
            fix="reduce it with .max() (any) or .min() (all), or choose element by element with where",
            function=function,
        )


def leading_size(construct: str, data: Sequence[Any], paths: Sequence[str], length: int | None) -> int | None:
    """Returns the number of iterations: the size of all data along axis 0, or length; None if unknown."""
    size, owner = length, "length"
    for array, path in zip(data, paths, strict=True):
        spec = spec_of(array)
        if spec is None:
            continue
        if not spec[0]:
            fail(
                errors.ShapeError,
                construct,
                f"{path} has no axis to iterate over",
                given=describe(spec),
                fix="pass it to the body by closure, or as a state",
            )
        if size is not None and size != spec[0][0]:
            fail(
                errors.ShapeError,
                construct,
                f"{path} has another length than {owner}",
                expected=str(size),
                given=describe(spec),
                because="the loop takes one slice along axis 0 of each per iteration",
                fix="cut the longer ones to the common length",
            )
        if size is None:
            size, owner = spec[0][0], path
    if size is None and not data:
        fail(
            errors.ValueError,
            construct,
            "the number of iterations is not known",
            because="data is empty",
            fix="pass length=, or data with a leading axis",
        )
    return size
