"""The arguments whose memory a hybridized block may write its results into: hybridize(donate=[...])."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from .._control_flow.nests import ARRAY, Nest
from ..errors import ParamError, unknown_name

__all__ = ["Donation", "parameters_of"]


def parameters_of(forward: Any, skipped: int = 0) -> tuple[list[str], str | None]:
    """Returns the names of the positional parameters of a function after the first ones, and the name of its *args."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(inspect.signature(forward).parameters.values())[skipped:]
    rest = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), None)
    return [p.name for p in parameters if p.kind in positional], rest


class Donation:
    """The donated arguments of a block: names of parameters of forward, or positions.

    names, rest: the parameters of forward, and the name of its *args, see parameters_of.
    Raises ParamError for a name or a position that forward does not have.
    """

    def __init__(self, owner: str, names: list[str], rest: str | None, donate: Iterable[str | int]) -> None:
        given = list(donate) if not isinstance(donate, (str, int)) else [donate]
        self._positions: set[int] = set()
        self._from: int | None = None  # the first of the arguments that a donated *args takes
        for item in given:
            if isinstance(item, str) and item == rest:
                self._from = len(names)
            elif isinstance(item, str) and item in names:
                self._positions.add(names.index(item))
            elif isinstance(item, str):
                known = names if rest is None else [*names, rest]
                raise unknown_name(f"{owner}: donate", "argument", item, known, ParamError)
            elif isinstance(item, int) and not isinstance(item, bool) and item >= 0 and (rest or item < len(names)):
                self._positions.add(item)
            else:
                raise ParamError(
                    f"{owner}: donate",
                    expected=f"names of arguments of forward, or positions from 0 to {len(names) - 1}",
                    given=repr(item),
                )

    def __bool__(self) -> bool:
        return bool(self._positions) or self._from is not None

    def _takes(self, position: int) -> bool:
        return position in self._positions or (self._from is not None and position >= self._from)

    def of_arrays(self, arguments: Nest) -> list[bool]:
        """Returns, per array of these arguments, whether it is donated."""
        return [self._takes(i) for i, argument in enumerate(arguments.children) for _ in range(_count(argument))]


def _count(nest: Nest) -> int:
    return 1 if nest is ARRAY else sum(map(_count, nest.children))
