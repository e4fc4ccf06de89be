"""Checked arguments of scan: sequences and outputs with their taps, and the results of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from .. import errors, ndarray, symbol
from ..ndarray import NDArray
from ..symbol import Symbol
from . import rules
from .nests import is_array


def rows(array: Any, begin: int, end: int | None) -> Any:
    """Returns rows begin to end of an array."""
    if begin == 0 and end is None:
        return array
    if isinstance(array, NDArray):
        return ndarray.slice_axis(array, axis=0, begin=begin, end=end)
    return rules.in_interface(array, symbol.slice_axis(array, axis=0, begin=begin, end=end))


def row(array: Any, number: int) -> Any:
    """Returns one row of an array in the form of foreach: (1,) for a vector, or () with numpy shapes."""
    if isinstance(array, NDArray):
        return array[number]
    return rules.in_interface(array, symbol.squeeze(rows(array, number, number + 1), axis=0))


def row_at(array: Symbol, index: Symbol) -> Symbol:
    """Returns the row at index, of shape (1,), which is read at run time."""
    return rules.in_interface(array, symbol.squeeze(symbol.take(array, index, axis=0), axis=0))


def turned_around(array: Symbol) -> Symbol:
    """Returns the rows in reverse order."""
    return rules.in_interface(array, symbol.flip(array, axis=0))


@dataclass
class Sequence:
    """One item of sequences: step t reads row t + tap for each tap, from the first step for which all rows exist."""

    array: Any
    taps: list[int]
    path: str

    @property
    def before(self) -> int:
        """The number of rows before row t that the smallest tap needs."""
        return max(0, -min(self.taps))

    @property
    def after(self) -> int:
        return max(0, max(self.taps))

    def size(self) -> int | None:
        """The number of steps that the rows suffice for; None if the length is unknown."""
        spec = rules.spec_of(self.array)
        return None if spec is None else max(0, spec[0][0] - self.before - self.after)

    def views(self, front: int, back: int) -> list[Any]:
        """Returns, per tap, the rows of the steps, without the first `front` and the last `back` of them."""
        made = []
        for tap in self.taps:
            behind = self.after - tap + back
            made.append(rows(self.array, tap + self.before + front, -behind if behind else None))
        return made


@dataclass
class Output:
    """One item of outputs_info. Without taps, no value of the output is carried."""

    path: str
    initial: Any = None
    taps: list[int] = field(default_factory=list)
    depth: int = 0  # number of previous values that are carried

    def __post_init__(self) -> None:
        self.depth = -min(self.taps, default=0)


class Until:
    """The result of until(condition)."""

    def __init__(self, condition: Any) -> None:
        self.condition = condition


def until(condition: Any) -> Until:
    """Ends a scan: returned by its function after the outputs, it makes the first step with nonzero condition the last.

    Parameters
    ----------
    condition : array of one element, or number

    Examples
    --------
    >>> scan(lambda h: (2 * h, until(2 * h > 10)), outputs_info=mx.nd.ones((1,)), n_steps=100)  # 2, 4, 8, 16
    """
    return Until(condition)


def _fail(kind: type[errors.HybridNetError], message: str, **details: Any) -> NoReturn:
    rules.fail(kind, "scan", message, **details)


def _items(value: Any) -> list[Any]:
    """Returns None, one item or several of them, as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _check_keys(item: dict[str, Any], allowed: tuple[str, str], path: str) -> None:
    if unknown := [key for key in item if key not in allowed]:
        _fail(
            errors.ParamError,
            path,
            expected=f"a dict with the keys {allowed[0]!r} and {allowed[1]!r}",
            given=f"the key {unknown[0]!r}",
        )


def _check_taps(taps: Any, path: str, expected: str, allowed: Callable[[int], bool]) -> list[int]:
    taps = list(taps) if isinstance(taps, (list, tuple, range)) else [taps]
    integers = all(isinstance(tap, (int, np.integer)) and not isinstance(tap, bool) for tap in taps)
    if not taps or not integers or not all(allowed(tap) for tap in taps):
        _fail(errors.ParamError, f"taps of {path}", expected=expected, given=repr(taps))
    return [int(tap) for tap in taps]


def _check_array(value: Any, path: str, also: str = "") -> None:
    if not is_array(value):
        _fail(
            errors.TypeError,
            path,
            expected=f"an array{also}",
            given=f"a {type(value).__name__}",
            fix="convert it with mx.nd.array(...)",
        )


def check_sequences(given: Any) -> list[Sequence]:
    """Checks the sequences argument: an array, a dict of input and taps, or a list of these."""
    checked = []
    for i, item in enumerate(_items(given)):
        path = f"sequences[{i}]"
        array, taps = item, [0]
        if isinstance(item, dict):
            _check_keys(item, ("input", "taps"), path)
            array = item.get("input")
            if item.get("taps") is not None:
                taps = _check_taps(item["taps"], path, "at least one integer", lambda _: True)
        _check_array(array, path, ", or a dict with the keys 'input' and 'taps'")
        spec = rules.spec_of(array)
        if spec is not None and not spec[0]:
            rules.leading_size("scan", [array], [path], None)
        checked.append(Sequence(array, taps, path))
    return checked


def check_outputs(given: Any) -> list[Output] | None:
    """Checks the outputs_info argument: None, an initial value, a dict of initial and taps, or a list of these.

    None for the whole argument, or an empty list, leaves the number of outputs to the function.
    """
    items = _items(given)
    checked = []
    for i, item in enumerate(items):
        path = f"outputs_info[{i}]"
        initial, taps = item, [-1]
        if isinstance(item, dict):
            _check_keys(item, ("initial", "taps"), path)
            initial = item.get("initial")
            if item.get("taps") is not None:
                taps = _check_taps(
                    item["taps"], path, "negative integers: -1 is the step before this one", lambda tap: tap < 0
                )
            if initial is None and "taps" in item:
                _fail(
                    errors.ValueError,
                    f"{path} has taps but no 'initial'",
                    because="the first steps read values from before the first step",
                    fix="give the initial values, oldest first",
                )
        if initial is None:
            checked.append(Output(path))
            continue
        checked.append(_with_initial(path, initial, taps))
    return checked or None


def _with_initial(path: str, initial: Any, taps: list[int]) -> Output:
    output = Output(path, initial, taps)
    if output.depth == 1 and rules.is_number(initial):
        return output
    _check_array(initial, path, " (or, with the single tap -1, a number)")
    spec = rules.spec_of(initial)
    if output.depth > 1 and spec is not None and (not spec[0] or spec[0][0] != output.depth):
        _fail(
            errors.ShapeError,
            f"the initial values of {path}",
            expected=f"{output.depth} rows, oldest first",
            given=rules.describe(spec),
            because=f"the oldest tap is {min(taps)}",
            fix="stack the values from before the first step along axis 0",
        )
    return output


def check_non_sequences(given: Any) -> list[Any]:
    """Checks the non_sequences argument: arrays, numbers and parameters."""
    items = _items(given)
    for i, item in enumerate(items):
        if not (is_array(item) or rules.is_number(item) or hasattr(item, "set_data")):
            _check_array(item, f"non_sequences[{i}]", ", a number or a Parameter")
    return [item.data() if hasattr(item, "set_data") else item for item in items]


@dataclass
class Returned:
    """The result of a function given to scan."""

    outs: list[Any]
    updates: list[tuple[Any, Any]]
    stop: Any  # the condition of until, or None


def take_result_apart(result: Any, function: Callable[..., Any]) -> Returned:
    """Parses outs, (outs, updates), (outs, until(c)), (outs, updates, until(c)), and these without outs."""
    if isinstance(result, NDArray):
        return Returned([result], [], None)
    parts = list(result) if isinstance(result, (list, tuple)) else [] if result is None else [result]
    updates: list[tuple[Any, Any]] = []
    stop = None
    while parts and isinstance(parts[-1], (dict, Until)):
        last = parts.pop()
        if isinstance(last, dict):
            updates.extend(last.items())
        else:
            stop = last.condition
    if len(parts) == 1 and (parts[0] is None or isinstance(parts[0], (list, tuple))):
        parts = _items(parts[0])
    for i, part in enumerate(parts):
        if not is_array(part):
            _fail(
                errors.TypeError,
                f"output {i} is a {type(part).__name__}",
                expected="arrays, then a dict of updates, then until(condition); the last two may be left out",
                fix="return one array, or a list of arrays",
                function=function,
            )
    return Returned(parts, updates, stop)
