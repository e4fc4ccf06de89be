"""The state that a branch or body changes: names, contents of containers, attributes, and arrays written in place."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from ._convert import Site
from ._errors import ConversionError, Place, refusal
from ._journal import Frame, note_attribute, note_contents, restore_contents, saved_contents
from ._jumps import GENERATED
from ._structure import UNDEFINED, Structure, describe, put_together, take_apart

__all__ = ["Again", "Cell", "Plan", "State", "binding_place", "carried_memories", "shown_name"]


_PRIVATE = 4
_SEQUENCES = (list, dict, deque)  # their contents are taken apart; other containers are one object


class NeedsFilledList(BaseException):
    """A branch appends to a list from outside of the loop around it: the loop must fill the list."""

    def __init__(self, container: list[Any]) -> None:
        super().__init__("a list is filled")
        self.container = container


class RestartTrace(BaseException):
    """The whole trace must start again, with a loop over range() as a loop of the graph from its first iteration."""

    def __init__(self, site: Site) -> None:
        super().__init__(str(site.place))
        self.site = site


class Again(BaseException):
    """The branch or body must be traced again, with the plan that was changed."""


class _Refused(threading.local):
    """The array from outside whose write was refused last, the number of loops that are being traced, and the loops
    over range() that run as plain Python and may end early.
    """

    def __init__(self) -> None:
        self.memory: Any = None
        self.loops = 0
        self.ranges: list[Site] = []


_refused = _Refused()


def forget_refused_write() -> None:
    """Called when a trace begins or ends: an array of one trace has no meaning in another."""
    _refused.memory = None


@dataclass
class Plan:
    """Facts about the state that are found while a construct is traced, and that the next attempt uses."""

    containers: dict[int, Any] = field(default_factory=dict)
    attributes: dict[tuple[int, str], tuple[Any, str]] = field(default_factory=dict)
    memories: list[Any] = field(default_factory=list)
    casts: dict[tuple[Any, str], Any] = field(default_factory=dict)  # (cell, path) -> type that the leaf must have
    varying: set[tuple[Any, str]] = field(default_factory=set)  # numbers that differ between iterations
    invariant: set[tuple[Any, str]] = field(default_factory=set)  # arrays that the body binds to themselves
    rebound: set[str] = field(default_factory=set)  # names that augmented assignments bind to new arrays
    optional: dict[Any, tuple[int, list[Any]]] = field(default_factory=dict)  # list -> items in both branches, others
    filled: set[int] = field(default_factory=set)  # lists to which each iteration appends
    placeholders: dict[str, Any] = field(default_factory=dict)  # generated name -> (structure, specs)
    learned: set[int] = field(default_factory=set)  # phases whose containers are known
    shares: bool = False  # whether variables of the loop share memory after an iteration
    attempts: int = 0

    def again(self) -> Again:
        """Counts an attempt; returns the exception that starts the next one."""
        self.attempts += 1
        return Again()


@dataclass(frozen=True)
class Cell:
    """One part of the state. key: a name, the id of a container, or (id, attribute)."""

    key: Any
    text: str
    holder: Any = None

    @property
    def is_generated(self) -> bool:
        return isinstance(self.key, str) and self.key.startswith(GENERATED)


class State:
    """The state of one construct: reads and writes its cells."""

    def __init__(
        self,
        site: Site,
        get: Callable[[], tuple[Any, ...]] | None,
        set_: Callable[[Any], None] | None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.site = site
        self._get, self._set = get, set_
        self.options = options or {}
        self.plan = Plan()
        self.before = self.names()
        # Names whose arrays nothing else refers to: the name, self.before, this loop and the call hold a reference.
        self.private = {name for name, value in self.before.items() if sys.getrefcount(value) <= _PRIVATE}

    def names(self) -> dict[str, Any]:
        """Returns the values of the names that the construct binds."""
        return dict(zip(self.site.names, self._get(), strict=True)) if self._get else {}

    def set_names(self, values: dict[str, Any]) -> None:
        """Assigns the names."""
        if self._set:
            self._set(tuple([values[name] for name in self.site.names]))

    def cells(self) -> list[Cell]:
        """Returns the parts of the state whose values pass to later code."""
        found = [Cell(name, repr(shown_name(name))) for name in self.site.names if name in self.site.live]
        found += [Cell(("contents", key), f"a {type(c).__name__}", c) for key, c in self.plan.containers.items()]
        found += [
            Cell(("attribute", *key), f"attribute {name!r} of a {type(owner).__name__}", owner)
            for key, (owner, name) in self.plan.attributes.items()
        ]
        return found

    def value(self, cell: Cell, names: dict[str, Any]) -> Any:
        """Returns the value of a cell now."""
        if isinstance(cell.key, str):
            return names[cell.key]
        if cell.key[0] == "contents":
            contents = saved_contents(cell.holder)
            return contents if isinstance(contents, (list, dict)) else [contents]
        return getattr(cell.holder, cell.key[2], UNDEFINED)

    def assign(self, values: dict[Any, Any]) -> None:
        """Assigns all cells; names without a value in `values` keep those of before."""
        self.set_names({**self.before, **{key: value for key, value in values.items() if isinstance(key, str)}})
        for cell in self.cells():
            if isinstance(cell.key, str) or cell.key not in values:
                continue
            if cell.key[0] == "contents":
                note_contents(cell.holder)
                value = values[cell.key]
                restore_contents(cell.holder, value if isinstance(cell.holder, _SEQUENCES) or not value else value[0])
            else:
                note_attribute(cell.holder, cell.key[2])
                object.__setattr__(cell.holder, cell.key[2], values[cell.key])

    def learn(self, frame: Frame, phase: int = 0) -> None:
        """Adds containers and attributes that the run of a frame changed to the plan; raises Again if there are new.

        phase: the number of the branch. Containers that only its second run changes were made in that run.
        """
        new = False
        self._check_globals()
        self._check_nonlocals(frame)
        for key, (container, _) in frame.contents.items():
            if key not in frame.fresh and key not in self.plan.containers and phase not in self.plan.learned:
                self.plan.containers[key] = container
                new = True
        for key, (owner, name, _) in frame.attributes.items():
            if key[0] in frame.fresh or key in self.plan.attributes:
                continue
            if getattr(owner, "_children", None) is not None:
                raise refusal(
                    "HN106",
                    f"the attribute {name!r} of the block {getattr(owner, 'name', '')!r} is assigned in this construct",
                    self.site.place,
                    because="it becomes part of the graph, and a graph cannot assign attributes of Python objects",
                    fix="carry the value in a local variable and return it, or keep it in a parameter",
                )
            self.plan.attributes[key] = (owner, name)
            new = True
        self.plan.learned.add(phase)
        if new:
            raise self.plan.again()

    def _check_nonlocals(self, frame: Frame) -> None:
        """Refuses assignments to names of enclosing functions that are not part of the state of this construct."""
        for get, _, names, before in frame.nonlocals:
            for name, old, new in zip(names, before, get(), strict=True):
                if old is not new and name not in self.site.names:
                    raise refusal(
                        "HN108",
                        f"a function that this construct calls assigns the nonlocal name {name!r}",
                        self.site.place,
                        because="the construct becomes part of the graph, which cannot assign variables of Python",
                        fix="return the value, or carry it in a variable of this function",
                    )

    def _check_globals(self) -> None:
        names = self.names() if self.site.outer else {}
        for name in self.site.outer:
            if names[name] is not self.before[name]:
                raise refusal(
                    "HN108",
                    f"the global name {name!r} is assigned in this construct",
                    binding_place(self.site, name),
                    self.site.place,
                    because="it becomes part of the graph, and a graph cannot assign variables of Python",
                    fix="assign a local name and return its value",
                )

    def retry_for_memory(self, error: BaseException) -> bool:
        """Whether the error is a write to an array from outside, which the next attempt carries."""
        memory = _core.refused_memory()
        memory = _refused.memory if memory is None else memory
        _refused.memory = memory  # another construct around this one may have to carry it
        if memory is None or self.plan.attempts > 50 or "is written to in place inside" not in str(error):
            return False
        number = _core.memory_root(memory)[1]
        if any(_core.memory_root(known)[1] == number for known in self.plan.memories):
            return False
        self.plan.memories.append(memory)
        _refused.memory = None
        self.plan.again()
        return True


def shown_name(name: str) -> str:
    """Returns the name for messages: generated names stand for returned values and jumps."""
    if not name.startswith(GENERATED):
        return name
    return "the returned value" if "value" in name else "a flag of break, continue or return"


def binding_place(site: Site, name: str) -> Place:
    """Returns the place of the first statement of a construct that binds the name."""
    for bound, line, column in site.lines:
        if bound == name:
            return Place(site.place.file, line, column, site.place.construct)
    return site.place


@contextmanager
def carried_memories(memories: Sequence[Any], slots: Sequence[Any] | None = None) -> Any:
    """Lets the open body write to arrays from outside. slots: their values in the body; None: those of now."""
    starts = [_core.traced_value(memory) for memory in memories] if slots is None else slots
    opened = 0
    try:
        for memory, start in zip(memories, starts, strict=True):
            _core.carry_memory(memory, start)
            opened += 1
        yield
    finally:
        for _ in range(opened):
            _core.release_memory()


def sharing_undecided(place: Place, name: str = "") -> str:
    """Returns the reason why an array that a loop or branch returns cannot be written to in place."""
    what = f"{name}: " if name else ""
    where = f"{what}{place.construct} at {place}"
    return f"whether it shares memory with another one is known only when the graph runs ({where})"


@contextmanager
def traced_loop() -> Iterator[None]:
    """Surrounds the attempts to trace a loop."""
    _refused.loops += 1
    try:
        yield
    finally:
        _refused.loops -= 1


@contextmanager
def plain_range(site: Site) -> Iterator[None]:
    """Surrounds a loop over range() that runs as plain Python."""
    _refused.ranges.append(site)
    try:
        yield
    finally:
        _refused.ranges.pop()


def innermost_range() -> Site | None:
    """Returns the innermost loop over range() that runs as plain Python and may end early."""
    return _refused.ranges[-1] if _refused.ranges else None


def inside_loop() -> bool:
    """Whether a loop is being traced."""
    return _refused.loops > 0


def apart(value: Any) -> tuple[Structure, list[Any]]:
    """Returns structure and leaves of a value."""
    leaves: list[Any] = []
    return take_apart(value, leaves), leaves


def together(structure: Structure, leaves: Sequence[Any], like: Any = None) -> Any:
    """Builds a value; containers that are equal to those of `like`, item by item, are not copied."""
    return put_together(structure, iter(leaves), like)


def other_type(
    site: Site, cell: Cell, path: str, one: Any, two: Any, when: tuple[str, ...], fix: str
) -> ConversionError:
    """Returns error HN103, or HN105 for returned values: a value has two types."""
    name = cell.key if isinstance(cell.key, str) else ""
    is_return = cell.is_generated and "value" in name
    code = "HN105" if is_return else "HN103"
    subject = "the returned value" if is_return else cell.text + path
    return refusal(
        code,
        f"{subject} is {describe(one)} {when[0]} and {describe(two)} {when[1]}",
        site.place,
        *([binding_place(site, name)] if name and not cell.is_generated else []),
        because="later code runs once for the graph, whichever path is taken",
        fix=fix,
    )
