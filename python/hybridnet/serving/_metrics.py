"""Counts and histograms of a server, in the text format of Prometheus (version 0.0.4).

All methods run on the thread of the event loop, so nothing is locked. A request costs one dictionary entry and two
additions.
"""

from __future__ import annotations

import platform
import resource
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from ..libinfo import __version__
from ..runtime import isa

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Histogram:
    """Counts of values up to each bound; the last count is that of larger values."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = list(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> Iterable[str]:
        total = 0
        for bound, count in zip([*map(_number, self._bounds), "+Inf"], self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {_number(self._sum)}"
        yield f"{name}_count {total}"


class Metrics:
    """The measurements of one application.

    batch: the limit of rows of a shared call. waiting, running: the numbers of requests in the queue and of calls.
    """

    def __init__(self, batch: int) -> None:
        self._started = time.time()
        self._requests: dict[tuple[str, int], int] = {}
        self._errors: dict[str, int] = {}
        self._latency = _Histogram(_SECONDS)
        self._rows = _Histogram(_powers(batch))
        self._shared = 0
        self.waiting = 0
        self.running = 0

    def note_request(self, path: str, status: int) -> None:
        """Counts an answer. path: one of the application's, so that clients cannot add names."""
        key = path, status
        self._requests[key] = self._requests.get(key, 0) + 1

    def note_prediction(self, seconds: float) -> None:
        """Adds the time of an answered prediction, the reading of its body included."""
        self._latency.add(seconds)

    def note_error(self, kind: str) -> None:
        """Counts an answer that is an error, by its class."""
        self._errors[kind] = self._errors.get(kind, 0) + 1

    def note_call(self, rows: int, requests: int) -> None:
        """Counts a call of the model and its rows, which belong to one request or more."""
        self._rows.add(rows)
        self._shared += requests > 1

    def text(self) -> str:
        """Returns all measurements."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        parts: list[str] = []

        def add(name: str, kind: str, description: str, lines: Iterable[str]) -> None:
            parts.extend((f"# HELP {name} {description}", f"# TYPE {name} {kind}", *lines))

        requests = (
            f'hybridnet_requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(self._requests.items())
        )
        errors = (f'hybridnet_errors_total{{class="{kind}"}} {count}' for kind, count in sorted(self._errors.items()))
        add("hybridnet_requests_total", "counter", "Answers by path and status.", requests)
        add("hybridnet_errors_total", "counter", "Answers that are errors, by class.", errors)
        for name, histogram, text in (
            ("hybridnet_request_seconds", self._latency, "Time from a request for a prediction to its answer."),
            ("hybridnet_batch_rows", self._rows, "Rows of a call of the model."),
        ):
            add(name, "histogram", text, histogram.lines(name))
        for name, kind, value, text in (
            ("hybridnet_shared_calls_total", "counter", self._shared, "Calls that several requests shared."),
            ("hybridnet_queue_length", "gauge", self.waiting, "Requests that wait for a call."),
            ("hybridnet_running_calls", "gauge", self.running, "Calls of the model that run."),
            ("process_start_time_seconds", "gauge", self._started, "Start of the server, in seconds since 1970."),
            ("process_cpu_seconds_total", "counter", usage.ru_utime + usage.ru_stime, "Time of processors."),
            ("process_resident_memory_bytes", "gauge", _resident(), "Memory that is in use."),
        ):
            add(name, kind, text, [f"{name} {_number(value)}"])
        labels = {"version": __version__, "isa": isa().partition(" ")[0], "python": platform.python_version()}
        joined = ",".join(f'{key}="{value}"' for key, value in labels.items())
        add("hybridnet_build_info", "gauge", "Versions of this server.", [f"hybridnet_build_info{{{joined}}} 1"])
        return "\n".join(parts) + "\n"


def _powers(limit: int) -> list[float]:
    """Returns 1, 2, 4 ... and the limit."""
    bounds = []
    bound = 1
    while bound < limit:
        bounds.append(float(bound))
        bound *= 2
    return [*bounds, float(limit)]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0
