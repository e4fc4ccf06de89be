"""Loops and branches taken apart: what a :class:`View` offers beside what C++ gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _core
from ..errors import ValueError as HybridNetValueError
from ._handles import Node

__all__ = ["Slot", "View"]

View = _core.rewrite.View

_SIDES = ("outer_input", "inner_input", "inner_output", "outer_output")


@dataclass(frozen=True)
class Slot:
    """One value that passes between a loop and its body.

    Attributes
    ----------
    outer : Entry or None
        What the loop reads in the graph around: the array of rows, the first value, or the invariant.
    inner : Entry or None
        The input of the body that receives it; None where only the test of a while_loop reads it.
    given : Entry or None
        What the body gives: the next value of a carry, or a row of an output.
    output : int or None
        Which output of the node it becomes; None for outputs that were added to the view.
    """

    outer: Any
    inner: Any
    given: Any
    output: int | None


def _group(kind: str, what: str) -> property:
    def slots(self: Any) -> list[Slot]:
        return [
            Slot(outer, inner, given, output if output >= 0 else None)
            for outer, inner, given, output in self.loop_rows(kind)
        ]

    return property(slots, doc=what)


def _index_map(self: Any, source: str, target: str, body: str | None = None) -> dict[int, int]:
    """Which number on one side belongs to which on another, for the node as it is in the graph.

    source, target : {"outer_input", "inner_input", "inner_output", "outer_output"}
        Inputs and outputs of the node, and of its body.
    body : str, optional
        Of branches: "then" (default) or "else".

    Sequences, carries and invariants have an outer and an inner input; carries and outputs an inner and an outer
    output. Raises ValueError for other words.
    """
    for side in (source, target):
        if side not in _SIDES:
            raise HybridNetValueError("View.index_map", expected=", ".join(_SIDES), given=repr(side))
    names = list(self.bodies)
    if body is not None and body not in names:
        raise HybridNetValueError("View.index_map, body", expected=", ".join(names), given=repr(body))
    chosen = names.index(body or ("do" if self.is_loop else "then"))
    a, b = _SIDES.index(source) + 1, _SIDES.index(target) + 1
    return {row[a]: row[b] for row in self.index_rows(chosen) if row[a] >= 0 and row[b] >= 0}


def _view(self: Any) -> Any:
    """This loop or branch taken apart (a View): its bodies as graphs to edit, its slots by group.

    Raises ValueError for nodes without bodies, UnsupportedError for those whose shapes only the run tells.
    """
    return View.of(self)


View.seqs = _group("seqs", "Slots of which each iteration gets a row.")
View.carries = _group("carries", "Slots that pass from iteration to iteration.")
View.invs = _group("invs", "Slots that each iteration gets unchanged.")
View.outs = _group("outs", "Values of the body whose rows are stacked.")
View.index_map = _index_map
View.__repr__ = lambda self: f"<View of {self.node!r}>"
Node.view = _view
