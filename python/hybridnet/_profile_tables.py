"""Times of a profile by block and by line of the program, as tables and as a flame graph.

Operators in bodies of loops and branches are also part of the time of the loop's own event. Each event counts with the
time that no event inside of it on the same thread takes, so that the sum is the time of all operators.
"""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ._drawing._svg import Drawing, Picture, color_of
from .errors import HybridNetError

__all__ = ["Row", "flame_graph", "rows_by", "table_of"]

_CATEGORIES = ("operator", "copy", "Custom Operator")
OUTSIDE = "(outside of blocks)"
UNKNOWN = "(line unknown)"

Event = tuple[Any, ...]  # name, category, begin, end, thread, node, block, inputs, and where if a line was recorded


@dataclass
class Row:
    """Time of a block or line: with its children and alone, in nanoseconds; operators that ran alone."""

    name: str
    count: int = 0
    total: int = 0
    own: int = 0


def own_times(events: Iterable[Event]) -> list[tuple[Event, int]]:
    """Returns the operator events, each with the time that no operator event inside of it takes."""
    chosen = [event for event in events if event[1] in _CATEGORIES]
    chosen.sort(key=lambda event: (event[4], event[2], -event[3]))
    own = [event[3] - event[2] for event in chosen]
    open_: list[int] = []
    for i, event in enumerate(chosen):
        while open_ and (chosen[open_[-1]][4] != event[4] or chosen[open_[-1]][3] <= event[2]):
            open_.pop()
        if open_:
            own[open_[-1]] -= event[3] - event[2]
        open_.append(i)
    return [(event, max(time, 0)) for event, time in zip(chosen, own, strict=True)]


# ------------------------------------------------------------------------------------------------------ lines of nodes
_INSTRUCTION = re.compile(r"^\s*\[\d+\] .*  '(?P<node>[^']*)'(?: of '(?P<block>[^']*)')?(?: (?P<where>\S.*:\d+))?$")


def _living_plans() -> Iterable[str]:
    """Yields the plan texts of the hybridized blocks, functions and executors that exist."""
    from ._function._function import Function
    from .executor import Executor
    from .gluon._traced_graph import TracedGraph

    for thing in gc.get_objects():
        if not isinstance(thing, (TracedGraph, Executor, Function)):
            continue
        with contextlib.suppress(HybridNetError, AttributeError):
            source = thing.op if isinstance(thing, TracedGraph) else thing
            yield str(source.plan_text())


def lines_of_nodes() -> dict[tuple[str, str], str]:
    """Maps (node, block) of all living plans to "file:line"; (node, "") too."""
    found: dict[tuple[str, str], str] = {}
    for text in _living_plans():
        for line in text.splitlines():
            match = _INSTRUCTION.match(line)
            if match and match["where"]:
                found[match["node"], match["block"] or ""] = match["where"]
                found.setdefault((match["node"], ""), match["where"])
    return found


def _line_of(event: Event, lines: dict[tuple[str, str], str]) -> str:
    if len(event) > 8 and event[8]:
        return str(event[8])
    node, block = event[5], event[6]
    while node:
        if found := lines.get((node, block)) or lines.get((node, "")):
            return found
        shorter = node.removesuffix("_backward")
        node = shorter if shorter != node else ""
    return UNKNOWN


# -------------------------------------------------------------------------------------------------------------- stacks
def stacks_by(events: Iterable[Event], by: str) -> list[tuple[tuple[str, ...], int]]:
    """Returns (place, own time) of each operator: parts of the block's path, or the line, and the operator's name."""
    lines = lines_of_nodes() if by == "line" else {}
    stacks = []
    for event, own in own_times(events):
        if by == "line":
            place: tuple[str, ...] = (_line_of(event, lines),)
        else:
            place = tuple(event[6].split(".")) if event[6] else (OUTSIDE,)
        stacks.append(((*place, event[0]), own))
    return stacks


def rows_by(events: Iterable[Event], by: str) -> list[Row]:
    """Returns a row per block or line, the largest time first; by: 'block' or 'line'."""
    rows: dict[str, Row] = {}
    for (*place, _), own in stacks_by(events, by):
        for depth in range(1, len(place) + 1):
            name = ".".join(place[:depth])
            row = rows.setdefault(name, Row(name))
            row.total += own
            if depth == len(place):
                row.own += own
                row.count += 1
    return sorted(rows.values(), key=lambda row: (-row.total, row.name))


def table_of(rows: Sequence[Row], by: str) -> str:
    """Returns the rows as text, with shares of the time of all operators in percent."""
    whole = sum(row.own for row in rows) or 1
    title = f"Operators by {by}"
    width = max([len(row.name) for row in rows] + [20]) + 2
    lines = ["", "Profile Statistics:", "", title, "=" * len(title)]
    lines.append(
        f"{by.capitalize():<{width}}{'Operators':>10}{'Total (ms)':>13}{'Share':>8}{'Own (ms)':>13}{'Share':>8}"
    )
    for row in rows:
        times = f"{row.total / 1e6:>13.4f}{row.total / whole:>8.1%}{row.own / 1e6:>13.4f}{row.own / whole:>8.1%}"
        lines.append(f"{row.name:<{width}}{row.count:>10}{times}")
    return "\n".join(lines) + "\n"


# --------------------------------------------------------------------------------------------------------- flame graph
class _Frame:
    def __init__(self) -> None:
        self.time = 0
        self.parts: dict[str, _Frame] = {}


def flame_graph(events: Iterable[Event], by: str) -> Picture:
    """Draws the stacks: a box is as wide as its share of the time; boxes on it are its parts."""
    root = _Frame()
    for stack, own in stacks_by(events, by):
        frame = root
        frame.time += own
        for name in stack:
            frame = frame.parts.setdefault(name, _Frame())
            frame.time += own
    depth = _depth(root)
    drawing = Drawing(1200)
    drawing.text(10, 18, f"Time of operators by {by}: {root.time / 1e6:.3f} ms")
    scale = 1180 / (root.time or 1)
    _draw(drawing, root, 10.0, depth - 1, scale, root.time or 1)
    return drawing.picture()


def _depth(frame: _Frame) -> int:
    return 1 + max((_depth(part) for part in frame.parts.values()), default=0)


def _draw(drawing: Drawing, frame: _Frame, x: float, level: int, scale: float, whole: int) -> None:
    for name, part in sorted(frame.parts.items(), key=lambda item: (-item[1].time, item[0])):
        width = part.time * scale
        tip = f"{name}: {part.time / 1e6:.4f} ms, {part.time / whole:.1%}"
        drawing.box(x, 10 + 18 * level, width, 17, color_of(name, 0, 60), name, tip)
        _draw(drawing, part, x, level - 1, scale, whole)
        x += width
