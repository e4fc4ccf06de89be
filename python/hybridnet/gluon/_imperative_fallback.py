"""Blocks that override forward and cannot be traced: warns once, with the reason and the line.

MXNet runs such blocks imperatively even if they are hybridized. If a trace reads a value, or draws from Python's or
NumPy's random numbers, a graph would be wrong: every call of it would repeat one branch or one draw.
"""

from __future__ import annotations

import inspect
import random
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from .._user_line import warn
from ..errors import TraceError
from ._own_generators import generators_of, read_state, write_state

if TYPE_CHECKING:
    from ._decisions import Decisions
    from .block import Block

__all__ = ["RandomStates", "draws_error", "warn_draws", "warn_imperative", "warn_of_decisions"]

# Lines in these files draw on behalf of the user's line, which is reported instead.
_NOT_THE_USERS = (str(Path(__file__).resolve().parents[1]), str(Path(np.__file__).parent), random.__file__, "<frozen")
# Registry of shown warnings per file: each line warns once.
_SHOWN: dict[str, dict[Any, Any]] = {}


class RandomStates:
    """The states of Python's and NumPy's global generators, and of those that block can reach, for comparing and
    restoring.
    """

    def __init__(self, block: Block) -> None:
        self.python, self.numpy = random.getstate(), np.random.get_state()
        self.own = [(generator, read_state(generator)) for generator in generators_of(block)]

    def changed(self) -> bool:
        """Whether a random number was drawn since."""
        return (
            random.getstate() != self.python
            or not _equal(np.random.get_state(), self.numpy)
            or any(not _equal(read_state(generator), state) for generator, state in self.own)
        )

    def restore(self) -> None:
        """Restores the states, so that the next run draws the same numbers."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        for generator, state in self.own:
            write_state(generator, state)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def _first_draw(trace: Callable[[], Any], before: RandomStates) -> str | None:
    """Returns file:line of the user's code whose first draw changes the states while trace() runs."""
    previous: list[tuple[FrameType, int]] = []
    found: list[str] = []

    def watch(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename.startswith(_NOT_THE_USERS):
            return None  # its lines are not watched, but those of its callees are
        if not found and previous and before.changed():
            last, line = previous[0]
            found.append(f"{last.f_code.co_filename}:{line}")
        if not found:
            previous[:] = [(frame, frame.f_lineno)]
        return None if found else watch

    outer = sys.gettrace()
    if outer is not None:  # a debugger or a coverage tool, which must not be disturbed
        return None
    sys.settrace(watch)
    try:
        trace()
    finally:
        sys.settrace(outer)
    return found[0] if found else None


def draws_error(block: Block, trace: Callable[[], Any], before: RandomStates) -> TraceError:
    """Returns the error for a trace that has drawn random numbers; runs it again to find the line."""
    before.restore()
    place = _first_draw(trace, before)
    if place is None:
        code = inspect.unwrap(type(block).forward).__code__
        place = f"{code.co_filename}:{code.co_firstlineno}"
    return TraceError(
        "random numbers of Python or NumPy are drawn while the graph is being built",
        because="the block is traced once and run many times, so each call would use the same numbers",
        fix="draw with mx.nd.random, which becomes part of the graph",
        where=place,
    )


def warn_imperative(block: Block, error: TraceError) -> None:
    """Warns that block runs imperatively because of error; the warning is attributed to the line in the error."""
    # Node names differ between blocks of one class, but a line should warn only once.
    reason = re.sub(r" of Symbol [^:]*", "", str(error.args[0]).splitlines()[0])
    text = (
        f"{type(block).__name__} is hybridized, but runs imperatively: {reason} Blocks inside it that can be traced "
        "are hybridized. hybridize(strict=True) makes this an error that says how to mend it."
    )
    _warn_at(text, error.where)


def warn_draws(block: Block, error: TraceError) -> None:
    """Warns that each call of block's graph repeats the random numbers that error reports."""
    reason = str(error.args[0]).splitlines()[0]
    _warn_at(
        f"{type(block).__name__} is hybridized: {reason} Each call computes with the same numbers. Draw with "
        "F.random, which becomes part of the graph.",
        error.where,
    )


def warn_of_decisions(block: Block, decisions: Decisions) -> None:
    """Warns about values that the graph of block contains as constants, although they may change."""
    for text, where in decisions.warnings(block):
        _warn_at(text, where)


def _warn_at(text: str, where: str | None) -> None:
    """Issues a UserWarning attributed to file:line; each line warns once."""
    file, _, line = (where or "").rpartition(":")
    if file and line.isdigit():
        warnings.warn_explicit(text, UserWarning, file, int(line), registry=_SHOWN.setdefault(file, {}))
    else:
        warn(text, UserWarning)
