"""Views of loops and branches: Python methods of :class:`View`, which C++ defines."""

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
    """A value that is passed between a loop and its body.

    Attributes
    ----------
    outer : Entry or None
        The value that the loop reads from outside: the array of rows, the initial value, or the invariant.
    inner : Entry or None
        The body's input for it; None if only the condition of a while_loop reads it.
    given : Entry or None
        The body's result for it: the next value of a carry, or a row of an output.
    output : int or None
        The index of the node's output; None for outputs that were added to the view.
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
    """Maps indices on one side to those on another, for the node in the graph.

    source, target : {"outer_input", "inner_input", "inner_output", "outer_output"}
        Inputs and outputs of the node, and of its body.
    body : str, optional
        For branches: "then" (default) or "else".

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
    """Returns a View of this loop or branch: its bodies as graphs to edit, its slots by group.

    Raises ValueError for nodes without bodies, UnsupportedError for those with shapes known only at run time.
    """
    return View.of(self)


View.seqs = _group("seqs", "Slots that each iteration gets one row of.")
View.carries = _group("carries", "Slots that pass from iteration to iteration.")
View.invs = _group("invs", "Slots that each iteration gets unchanged.")
View.outs = _group("outs", "Values of the body whose rows are stacked.")
View.index_map = _index_map
View.__repr__ = lambda self: f"<View of {self.node!r}>"
Node.view = _view
