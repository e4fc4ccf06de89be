"""The operators that run in 16 bits, in 32 bits, and in the widest type of their inputs: each operator declares it.

``TARGET``, ``FLOAT32``, ``WIDEST`` and ``LOSSES`` are tuples of names, ``CONDITIONAL`` one of (operator, parameter,
values). They are collected from the registry when one of them is first read.
"""

from __future__ import annotations

import functools
from typing import Any

from ... import _core
from ..._lazy_names import no_attribute
from ..._public_names import dir_of

__all__ = ["CONDITIONAL", "FLOAT32", "LOSSES", "TARGET", "WIDEST"]

TARGET: tuple[str, ...]  # fast in 16 bits: matrix products
FLOAT32: tuple[str, ...]  # overflow or lose too much accuracy in 16 bits
CONDITIONAL: tuple[tuple[str, str, tuple[str, ...]], ...]  # in 32 bits for some values of a parameter
WIDEST: tuple[str, ...]  # have several inputs that must have the same type
LOSSES: tuple[str, ...]  # have outputs that are predictions; their backward pass starts a new gradient


@functools.cache
def _collected() -> dict[str, tuple[Any, ...]]:
    named: dict[str, list[Any]] = {name: [] for name in __all__}
    lists = {"half": "TARGET", "float": "FLOAT32", "widest": "WIDEST"}
    for name, _, _ in _core.op_names():
        operator = _core.describe_op(name)
        for parameter, values in operator["amp_choices"]:
            named["CONDITIONAL"].append((name, parameter, tuple(values)))
        if operator["amp"] in lists and not operator["amp_choices"]:
            named[lists[operator["amp"]]].append(name)
        if operator["predicts"]:
            named["LOSSES"].append(name)
    return {name: tuple(found) for name, found in named.items()}


@functools.cache
def written_inputs() -> dict[str, int]:
    """Operators that write one of their inputs into a copy of the first one: name or alias -> number of that input."""
    found: dict[str, int] = {}
    for name, aliases, _ in _core.op_names():
        written = _core.describe_op(name)["written_input"]
        if written > 0:
            found.update(dict.fromkeys((name, *aliases), written))
    return found


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _collected()[name]
    raise no_attribute(__name__, name)


__dir__ = dir_of(__name__)
