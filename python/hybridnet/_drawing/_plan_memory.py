"""Memory of plans over time: values in the arena by place and lifetime, read from ``plan_text()``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ._svg import Drawing, Picture, color_of

__all__ = ["PlanMemory", "draw", "plans_in"]

_SUMMARY = re.compile(r"^(?P<indent> *)(?:(?P<title>\w+): )?(?P<count>\d+) instructions?, arena (?P<rest>.*)$")
_BODY = re.compile(r"^ *(?P<title>\w[\w ]*):$")
_INSTRUCTION = re.compile(
    r"^ *\[(?P<number>\d+)\] (?P<op>\S+).* -> (?P<results>.*?)"
    r"  '(?P<node>[^']*)'(?: of '(?P<block>[^']*)')?(?: (?P<where>\S.*:\d+))?$"
)
_CELL = re.compile(
    r"^ *(?P<name>t\d+)  (?P<begin>\d+) to (?P<end>\d+)  instructions (?P<first>-?\d+) to (?P<last>-?\d+)"
)


@dataclass
class Cell:
    """A value in the arena: its bytes, the instructions between which it lives, and what made it."""

    name: str
    begin: int
    end: int
    first: int
    last: int
    maker: str = ""


@dataclass
class PlanMemory:
    """One plan: forward, backward, or the body of a loop or branch."""

    title: str
    summary: str
    instructions: int
    cells: list[Cell] = field(default_factory=list)
    makers: dict[int, str] = field(default_factory=dict)  # text of each instruction

    def live_bytes(self) -> list[int]:
        """Returns the bytes of the values that live at each instruction."""
        counts = [0] * max(self.instructions, 1)
        for cell in self.cells:
            for i in range(max(cell.first, 0), min(cell.last, len(counts) - 1) + 1):
                counts[i] += cell.end - cell.begin
        return counts


def plans_in(text: str) -> list[PlanMemory]:
    """Returns the plans of a plan text, those of bodies included, in the order of the text."""
    plans: list[PlanMemory] = []
    open_: list[tuple[int, PlanMemory]] = []
    body = ""
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if match := _SUMMARY.match(line):
            while open_ and open_[-1][0] >= indent:
                open_.pop()
            outer = f"{open_[-1][1].title}, " if open_ else ""
            title = match["title"] or f"{outer}{body or 'plan'}"
            plan = PlanMemory(title, f"{match['count']} instructions, arena {match['rest']}", int(match["count"]))
            plans.append(plan)
            open_.append((indent, plan))
            continue
        while open_ and open_[-1][0] >= indent:
            open_.pop()
        if not open_:
            continue
        _read_line(line, open_[-1][1])
        if (found := _BODY.match(line)) and found["title"] != "arena":
            body = found["title"]
    for plan in plans:
        for cell in plan.cells:
            cell.maker = plan.makers.get(cell.first, "")
    return plans


def _read_line(line: str, plan: PlanMemory) -> None:
    if match := _INSTRUCTION.match(line):
        place = f"'{match['node']}'" + (f" of '{match['block']}'" if match["block"] else "")
        plan.makers[int(match["number"])] = f"{match['op']} {place} {match['where'] or ''}".rstrip()
    elif match := _CELL.match(line):
        begin, end, first, last = (int(match[key]) for key in ("begin", "end", "first", "last"))
        plan.cells.append(Cell(match["name"], begin, end, first, last))


def bytes_text(count: float) -> str:
    """Returns "64 bytes", "1.5 KiB", "20 MiB"."""
    units = ["bytes", "KiB", "MiB", "GiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    return f"{count:.0f} {units[0]}" if units[0] == "bytes" or count >= 100 else f"{count:.1f} {units[0]}"


_WIDTH, _LEFT, _ARENA, _CURVE = 1000, 90, 220, 70


def draw(plans: list[PlanMemory]) -> Picture:
    """Draws a panel per plan that has values in the arena: places over instructions, and the bytes that live."""
    drawing = Drawing(_WIDTH)
    y = 20.0
    shown = [plan for plan in plans if plan.cells]
    if not shown:
        drawing.text(10, y, "No plan keeps values in an arena.")
    for plan in shown:
        y = _panel(drawing, plan, y) + 30
    return drawing.picture()


def _panel(drawing: Drawing, plan: PlanMemory, y: float) -> float:
    drawing.text(10, y, f"{plan.title}: {plan.summary}")
    size = max(cell.end for cell in plan.cells)
    step = (_WIDTH - _LEFT - 20) / max(plan.instructions, 1)
    top = y + 12
    for cell in sorted(plan.cells, key=lambda cell: cell.begin):
        first, last = max(cell.first, 0), min(cell.last, plan.instructions - 1)
        height = max((cell.end - cell.begin) / size * _ARENA, 1.0)
        tip = f"{cell.name}: {bytes_text(cell.end - cell.begin)} at {cell.begin}, instructions {first} to {last}"
        tip += f", by {cell.maker}" if cell.maker else ""
        label = f"{cell.name} {cell.maker.partition(' ')[0]}"
        drawing.box(
            _LEFT + first * step, top + cell.begin / size * _ARENA, (last - first + 1) * step, height,
            color_of(cell.maker or cell.name), label, tip,
        )  # fmt: skip
    drawing.text(_LEFT - 6, top + 10, "0", "end")
    drawing.text(_LEFT - 6, top + _ARENA, bytes_text(size), "end")
    drawing.line([(_LEFT, top), (_LEFT, top + _ARENA), (_WIDTH - 20, top + _ARENA)])
    return _curve(drawing, plan, top + _ARENA + 14, step)


def _curve(drawing: Drawing, plan: PlanMemory, top: float, step: float) -> float:
    """Draws the bytes that live at each instruction, with the largest one named."""
    live = plan.live_bytes()
    peak = max(live) or 1
    bottom = top + _CURVE
    points: list[tuple[float, float]] = [(_LEFT, bottom)]
    for i, count in enumerate(live):
        height = bottom - count / peak * _CURVE
        points += [(_LEFT + i * step, height), (_LEFT + (i + 1) * step, height)]
    drawing.line([*points, (_LEFT + len(live) * step, bottom)], "#c33", 1.5)
    drawing.line([(_LEFT, top), (_LEFT, bottom), (_WIDTH - 20, bottom)])
    at = live.index(max(live))
    drawing.text(_LEFT - 6, top + 10, bytes_text(max(live)), "end")
    drawing.text(_LEFT, bottom + 14, f"most live memory: instruction {at}, {plan.makers.get(at, '')}".rstrip(" ,"))
    return bottom + 14
