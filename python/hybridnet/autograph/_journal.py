"""Records which objects of the program change while a branch or body is traced, so that their changes can be undone.

Each run of a branch or body opens a Frame. Converted code reports every write into a list, dict, set or attribute. The
first write saves the contents. Objects that were made during the run are only known to it, and are not recorded.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np

__all__ = ["Frame", "frames", "note_attribute", "note_contents", "note_fresh", "restore_contents", "saved_contents"]

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()


class _Local(threading.local):
    def __init__(self) -> None:
        self.frames: list[Frame] = []


_local = _Local()


def frames() -> list[Frame]:
    """Returns the open frames of this thread, outermost first."""
    return _local.frames


class Frame:
    """One run of a branch or body."""

    def __init__(self) -> None:
        self.fresh: dict[int, Any] = {}
        # id -> (container, its contents before the first write)
        self.contents: dict[int, tuple[Any, Any]] = {}
        # (id, name) -> (object, name, value before)
        self.attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}

        # (reads the values, assigns them, names, values before) of names of enclosing functions
        self.nonlocals: list[tuple[Any, Any, tuple[str, ...], tuple[Any, ...]]] = []

    def __enter__(self) -> Frame:
        _local.frames.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _local.frames.pop()
        if _local.frames:
            _local.frames[-1].fresh.update(self.fresh)

    def undo(self) -> None:
        """Restores all recorded objects."""
        for _, assign, _, values in reversed(self.nonlocals):
            assign(values)
        for container, before in self.contents.values():
            restore_contents(container, before)
        for owner, name, before in self.attributes.values():
            if before is MISSING:
                owner.__dict__.pop(name, None)
            else:
                object.__setattr__(owner, name, before)


def note_fresh(value: Any) -> Any:
    """Records that value was made just now. Returns it."""
    if _local.frames:
        _local.frames[-1].fresh[id(value)] = value
    return value


def is_fresh(value: Any) -> bool:
    """Whether value was made during the innermost run."""
    return bool(_local.frames) and id(value) in _local.frames[-1].fresh


def note_contents(container: Any) -> None:
    """Called before the contents of a container change."""
    for frame in reversed(_local.frames):
        if id(container) in frame.fresh:
            return
        if id(container) not in frame.contents:
            frame.contents[id(container)] = (container, saved_contents(container))


def note_change(container: Any, before: Any) -> None:
    """Called after the contents of a container may have changed. before: a copy of its contents."""
    now = saved_contents(container)
    if isinstance(container, np.ndarray):
        same = bool(np.array_equal(now, before, equal_nan=now.dtype.kind == "f"))
    elif isinstance(container, dict):
        same = list(now) == list(before) and all(now[key] is before[key] for key in now)
    elif isinstance(container, (set, bytearray)):
        same = now == before
    else:
        same = len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))
    if same:
        return
    for frame in reversed(_local.frames):
        if id(container) in frame.fresh:
            return
        frame.contents.setdefault(id(container), (container, before))


def note_nonlocals(get: Any, assign: Any, names: tuple[str, ...]) -> None:
    """Called when a function begins that assigns names of enclosing functions."""
    if _local.frames:
        values = get()
        for frame in _local.frames:
            frame.nonlocals.append((get, assign, names, values))


def note_attribute(owner: Any, name: str) -> None:
    """Called before an attribute is assigned."""
    for frame in reversed(_local.frames):
        if id(owner) in frame.fresh:
            return
        if (id(owner), name) not in frame.attributes:
            frame.attributes[id(owner), name] = (owner, name, getattr(owner, name, MISSING))


def is_container(value: Any) -> bool:
    """Whether value is a container whose changes are recorded."""
    return isinstance(value, (list, dict, set, deque, bytearray)) or type(value) is np.ndarray


def saved_contents(container: Any) -> Any:
    """Returns a copy of the container's contents."""
    if isinstance(container, dict):
        return dict(container)
    if isinstance(container, (set, bytearray)):
        return type(container)(container)
    if isinstance(container, np.ndarray):
        return container.copy()
    return list(container)


def restore_contents(container: Any, contents: Any) -> None:
    """Replaces the container's contents."""
    if isinstance(container, np.ndarray):
        container[...] = contents
    elif isinstance(container, (list, bytearray)):
        container[:] = contents
    else:
        container.clear()
        (container.extend if isinstance(container, deque) else container.update)(contents)
