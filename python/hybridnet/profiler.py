"""Profiler: records operators, hybridized graphs, and a program's own tasks, frames, events, counters, markers.

Example::

    mx.profiler.set_config(profile_all=True, filename="profile.json")
    mx.profiler.start()
    train()
    mx.profiler.stop()
    print(mx.profiler.dumps())   # a table
    mx.profiler.dump()           # profile.json, for chrome://tracing or Perfetto
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

from . import _core
from ._public_names import dir_of
from .errors import FileError
from .errors import ValueError as HybridNetValueError
from .ndarray import waitall

__all__ = [
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "Marker",
    "Task",
    "dump",
    "dumps",
    "flame_graph",
    "pause",
    "profiler_set_config",
    "profiler_set_state",
    "resume",
    "scope",
    "set_config",
    "set_kvstore_handle",
    "set_state",
    "start",
    "stop",
]

_CONFIG: dict[str, Any] = {
    "filename": "profile.json",
    "aggregate_stats": False,
    "profile_imperative": True,
    "profile_symbolic": True,
    "profile_lines": False,
}
# Other settings of MXNet: accepted without effect.
_ACCEPTED = {
    "profile_all", "profile_lines", "profile_symbolic", "profile_imperative", "profile_memory", "profile_api",
    "filename", "continuous_dump", "dump_period", "aggregate_stats", "profile_process",
    "gpu_memory_profile_filename_prefix",
}  # fmt: skip
_CATEGORIES = {"operator": "profile_imperative", "graph": "profile_symbolic", "compile": "profile_symbolic"}


_Event = tuple[Any, ...]


class _Recorded:
    """Events (name, category, begin, end, thread, node, block, inputs), times in ns; counters; markers.

    With profile_lines events of imperative operators have a ninth part: the line of the program.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.events: list[_Event] = []
        self.counters: list[tuple[str, str, int, float]] = []
        self.markers: list[tuple[str, str, int, str, int]] = []

    def collect(self) -> None:
        """Fetches the events that the library has recorded so far."""
        with self.lock:
            self.events += _with_custom_operators(_core.profile_take())

    def keep(self, events: list[_Event]) -> None:
        """Adds events that were fetched elsewhere."""
        with self.lock:
            self.events += _with_custom_operators(events)

    def clear(self) -> None:
        with self.lock:
            self.events, self.counters, self.markers = [], [], []


def _with_custom_operators(events: list[_Event]) -> list[_Event]:
    """Renames operators that a custom operator called directly to the custom operator's name."""
    category = "Custom Operator"
    spans = [event for event in events if event[1] == category]
    if not spans:
        return events

    def named(event: _Event) -> _Event:
        name, kind, begin, end, thread, *rest = event
        around = [s for s in spans if kind == "operator" and s[4] == thread and s[2] <= begin and end <= s[3]]
        if not around:
            return event
        inner = min(around, key=lambda s: s[3] - s[2])[0].partition("::")[0]
        return (f"{inner}::{name}", category, begin, end, thread, *rest)

    return [named(event) for event in events]


_recorded = _Recorded()


# ------------------------------------------------------------------------------------------------------------- switches
def set_config(**kwargs: Any) -> None:
    """Sets options: ``filename`` of dump(), ``profile_all``, ``profile_imperative`` (operators), ``profile_symbolic``
    (hybridized graphs), ``profile_lines``, ``aggregate_stats``; others of MXNet are accepted. Raises ValueError for
    unknown ones.

    profile_lines: start() also records the line and the block of imperative operators that its thread calls, for
    ``dumps(by="line")``. The program then waits for each operator, so that only the operators' own times count.
    """
    unknown = set(kwargs) - _ACCEPTED
    if unknown:
        raise HybridNetValueError(
            "profiler.set_config", expected=str(", ".join(sorted(_ACCEPTED))), given=str(", ".join(sorted(unknown)))
        )
    if kwargs.get("profile_all"):
        kwargs = {**kwargs, "profile_imperative": True, "profile_symbolic": True}
    _CONFIG.update(kwargs)


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Starts ('run') or ends ('stop') recording, after waiting for the work pushed before."""
    if state not in ("run", "stop"):
        raise HybridNetValueError("profiler.set_state", expected="'run' or 'stop'", given=repr(state))
    waitall()
    _lines.switch(state == "run" and bool(_CONFIG["profile_lines"]))
    if state == "run":
        _core.profile_start()
    else:
        _core.profile_stop()
        _recorded.collect()


class _Lines(threading.local):
    """Whether the operators of this thread are recorded with their lines."""

    active = False
    before: Any = None

    def switch(self, on: bool) -> None:
        if on == self.active:
            return
        from ._watch import _lines as _line_watch
        from ._watch import _operators as _op_watch

        if on:
            self.before = _op_watch.begin(_line_watch.LineWatch(_recorded.keep))
        else:
            _op_watch.end(self.before)
        self.active = on


_lines = _Lines()


def start(profile_process: str = "worker") -> None:
    """Starts recording."""
    set_state("run", profile_process)


def stop(profile_process: str = "worker") -> None:
    """Ends recording."""
    set_state("stop", profile_process)


def pause(profile_process: str = "worker") -> None:
    """Pauses recording until resume()."""
    set_state("stop", profile_process)


def resume(profile_process: str = "worker") -> None:
    """Resumes recording after pause()."""
    set_state("run", profile_process)


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Sets options; the form of set_config() before MXNet 1.0."""
    set_config(filename=filename, profile_all=mode == "all", profile_symbolic=True)


def profiler_set_state(state: str = "stop") -> None:
    """Starts or ends recording; the form of set_state() before MXNet 1.0."""
    set_state(state)


def set_kvstore_handle(handle: Any) -> None:
    """Has no effect: parameter servers are not profiled."""


@contextlib.contextmanager
def scope(name: str = "<unk>:", append_mode: bool = True) -> Iterator[None]:
    """Records the time of its body as one event: ``with scope("net:"):``."""
    task = Task(Domain("scope"), name)
    task.start()
    try:
        yield
    finally:
        task.stop()


# --------------------------------------------------------------------------------------------------------------- output
def _events() -> list[_Event]:
    _recorded.collect()
    return [e for e in _recorded.events if _CONFIG.get(_CATEGORIES.get(e[1], ""), True)]


_ABOUT = ("node", "block", "inputs", "line")


def _trace() -> dict[str, Any]:
    process = os.getpid()
    events: list[dict[str, Any]] = [
        {
            "name": name,
            "cat": category,
            "ph": "X",
            "ts": begin / 1e3,
            "dur": (end - begin) / 1e3,
            "pid": process,
            "tid": thread,
            "args": {key: value for key, value in zip(_ABOUT, about, strict=False) if value},
        }
        for name, category, begin, end, thread, *about in _events()
    ]
    for domain, name, at, value in _recorded.counters:
        events.append({"name": name, "cat": domain, "ph": "C", "ts": at / 1e3, "pid": process, "args": {name: value}})
    for domain, name, at, reach, thread in _recorded.markers:
        events.append(
            {
                "name": name,
                "cat": domain,
                "ph": "i",
                "ts": at / 1e3,
                "pid": process,
                "tid": thread,
                "s": {"global": "g", "process": "p"}.get(reach, "t"),
            }
        )
    return {"traceEvents": sorted(events, key=lambda event: event["ts"]), "displayTimeUnit": "ms"}


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Writes the events to the configured file in Chrome's trace format; finished: ends recording and clears it.

    The first call prints how to open the file.

    Raises FileError if the file cannot be written.
    """
    if finished:
        set_state("stop")
    try:
        with open(_CONFIG["filename"], "w", encoding="utf-8") as file:
            json.dump(_trace(), file)
    except OSError as problem:
        raise FileError(f"profiler.dump: {_CONFIG['filename']!r} cannot be written", because=f"{problem}") from problem
    if finished:
        _recorded.clear()
    _print_hint(_CONFIG["filename"])


_hints: set[str] = set()


def _print_hint(filename: str) -> None:
    if not _hints:
        _hints.add(filename)
        print(f"profiler.dump: to see {filename!r}, open https://ui.perfetto.dev and drop the file there.")


dump_profile = dump


def _statistics(sort_by: str, ascending: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Returns category -> name -> Count, Total, Min, Max, Avg in milliseconds, in the given order."""
    groups: dict[str, dict[str, list[float]]] = {}
    for name, category, begin, end, *_ in _events():
        groups.setdefault(category, {}).setdefault(name, []).append((end - begin) / 1e6)
    tables = {}
    for category, names in sorted(groups.items()):
        rows = {
            name: {"Count": len(t), "Total": sum(t), "Min": min(t), "Max": max(t), "Avg": sum(t) / len(t)}
            for name, t in names.items()
        }
        tables[category] = _sorted_rows(rows, sort_by, ascending)
    return tables


def _sorted_rows(rows: dict[str, dict[str, float]], sort_by: str, ascending: bool) -> dict[str, dict[str, float]]:
    return dict(sorted(rows.items(), key=lambda row: row[1][sort_by.capitalize()], reverse=not ascending))


def _memory(sort_by: str, ascending: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Returns the memory statistics of the CPU array pool, in the form of the time statistics."""
    found = _core.memory_statistics(1, 0)
    rows = {}
    for name, key in (("in use", "in_use"), ("at most in use", "peak_in_use"), ("pooled", "pooled")):
        size = found[key] / 1024
        rows[name] = {"Count": 1, "Total": size, "Min": size, "Max": size, "Avg": size}
    return {"cpu": _sorted_rows(rows, sort_by, ascending)}


def dumps(
    reset: bool = False,
    format: str = "table",
    sort_by: str = "total",
    ascending: bool = False,
    by: str = "operator",
) -> str:
    """Returns times per name: ``format`` 'table' or 'json', ``sort_by`` 'total', 'avg', 'min', 'max' or 'count'.

    by='block' and by='line' sum up the operators of each block and of each line of the program, with shares in percent,
    the largest first: in total, with the blocks inside, and the block's own. Lines of operators in graphs are those of
    plans that still exist; lines of imperative operators need ``set_config(profile_lines=True)``.

    reset: clear the events afterwards. Raises ValueError for other formats and keys.
    """
    _check_by("dumps", by, ("operator", "block", "line"))
    if format not in ("table", "json"):
        raise HybridNetValueError("profiler.dumps", expected="format 'table' or 'json'", given=repr(format))
    if sort_by not in ("total", "avg", "min", "max", "count"):
        raise HybridNetValueError(
            "profiler.dumps", expected="sort_by 'total', 'avg', 'min', 'max' or 'count'", given=repr(sort_by)
        )
    waitall()
    if by != "operator":
        return _dumps_by(by, format, reset)
    tables = _statistics(sort_by, ascending)
    if reset:
        _recorded.clear()
    if format == "json":
        return json.dumps(
            {"Time": tables, "Memory": _memory(sort_by, ascending), "Unit": {"Time": "ms", "Memory": "kB"}}
        )
    lines = ["", "Profile Statistics:"]
    columns = ("Total", "Min", "Max", "Avg")
    for category, rows in tables.items():
        lines += ["", category, "=" * len(category)]
        lines.append(f"{'Name':<40}{'Total Count':>12}" + "".join(f"{f'{c} (ms)':>14}" for c in columns))
        for name, row in rows.items():
            lines.append(f"{name:<40}{row['Count']:>12.0f}" + "".join(f"{row[c]:>14.4f}" for c in columns))
    return "\n".join(lines) + "\n"


def _check_by(function: str, by: str, known: tuple[str, ...]) -> None:
    if by not in known:
        expected = f"by {', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise HybridNetValueError(f"profiler.{function}", expected=expected, given=repr(by))


def _dumps_by(by: str, format: str, reset: bool) -> str:
    from ._profile_tables import rows_by, table_of

    rows = rows_by(_events(), by)
    if reset:
        _recorded.clear()
    if format == "table":
        return table_of(rows, by)
    listed = {row.name: {"Count": row.count, "Total": row.total / 1e6, "Own": row.own / 1e6} for row in rows}
    return json.dumps({"Time": {by: listed}, "Unit": {"Time": "ms"}})


def flame_graph(filename: str | None = None, by: str = "block") -> Any:
    """Returns a picture of the time of operators by block or by line; filename (``.svg``): also writes it.

    Each box is as wide as its share of the time; the boxes above it are its parts, the operators at the top. Browsers
    show name, time and share of the box under the pointer. Raises ValueError for another ``by`` than 'block' and
    'line', FileError if the file cannot be written.
    """
    _check_by("flame_graph", by, ("block", "line"))
    from ._profile_tables import flame_graph as drawn

    waitall()
    picture = drawn(_events(), by)
    if filename is not None:
        picture.save(filename)
    return picture


# -------------------------------------------------------------------------------------------------------- custom events
class Domain:
    """A group name for tasks, frames, counters and markers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """Creates a Task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """Creates a Frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> Counter:
        """Creates a Counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """Creates a Marker of this domain."""
        return Marker(self, name)


class _Span:
    """A time span; recorded when it ends while the profiler runs. Usable with ``with``."""

    def __init__(self, name: str, category: str) -> None:
        self.name, self._category = name, category
        self._begin: int | None = None

    def start(self) -> None:
        """Starts the span now."""
        self._begin = _core.profile_now() if _core.profile_active() else None

    def stop(self) -> None:
        """Ends the span now."""
        if self._begin is not None and _core.profile_active():
            event = (self.name, self._category, self._begin, _core.profile_now(), threading.get_native_id(), "", "", "")
            with _recorded.lock:
                _recorded.events.append(event)
        self._begin = None

    def __enter__(self) -> _Span:
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def __str__(self) -> str:
        return self.name


class Task(_Span):
    """A unit of work in a domain."""

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, domain.name)


class Frame(_Span):
    """One of a series of similar units of work in a domain, such as the processing of an image."""

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, domain.name)


class Event(_Span):
    """A unit of work without a domain."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "event")


class Counter:
    """A number that changes over time; its values are recorded while the profiler runs."""

    def __init__(self, domain: Domain, name: str, value: float | None = None) -> None:
        self.name, self._domain, self._value = name, domain.name, 0.0
        if value is not None:
            self.set_value(value)

    def set_value(self, value: float) -> None:
        """Sets the number to value."""
        self._value = value
        if _core.profile_active():
            with _recorded.lock:
                _recorded.counters.append((self._domain, self.name, _core.profile_now(), value))

    def increment(self, delta: float = 1) -> None:
        """Adds delta."""
        self.set_value(self._value + delta)

    def decrement(self, delta: float = 1) -> None:
        """Subtracts delta."""
        self.set_value(self._value - delta)

    def __iadd__(self, delta: float) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> Counter:
        self.decrement(delta)
        return self

    def __str__(self) -> str:
        return self.name


class Marker:
    """A point in time."""

    def __init__(self, domain: Domain, name: str) -> None:
        self.name, self._domain = name, domain.name

    def mark(self, scope: str = "process") -> None:
        """Records the current time. scope: 'global', 'process', 'thread', 'task' or 'marker'."""
        if scope not in ("global", "process", "thread", "task", "marker"):
            raise HybridNetValueError(
                "Marker.mark", expected="scope 'global', 'process', 'thread', 'task' or 'marker'", given=repr(scope)
            )
        if _core.profile_active():
            with _recorded.lock:
                _recorded.markers.append(
                    (self._domain, self.name, _core.profile_now(), scope, threading.get_native_id())
                )


__dir__ = dir_of(__name__)
