"""The loop of all sides: builds a case, runs it `repeat` times, answers with the seconds per call."""

from __future__ import annotations

import gc
import json
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

# Runs the work that many times and waits for the results. If only a part counts, returns that part's seconds.
Step = Callable[[int], float | None]


def serve(version: str, cases: dict[str, Callable[[], Step]]) -> None:
    """Answers requests on stdin, one line of JSON each, until stdin ends.

    {"case": NAME, "repeat": N} builds the case unless it exists and runs it; with "each": N, times every call
    separately. The names "version" and "forget" have special meanings.
    """
    ready: dict[str, Step] = {}
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line), version, cases, ready)), flush=True)


def _seconds(step: Step, repeat: int) -> float:
    start = time.perf_counter()
    part = step(repeat)
    return time.perf_counter() - start if part is None else part


def _answer(request: dict[str, Any], version: str, cases: dict[str, Any], ready: dict[str, Step]) -> dict[str, Any]:
    name = request["case"]
    if name == "version":
        return {"version": version}
    if name == "forget":  # frees memory for the next row's arrays
        ready.clear()
        gc.collect()
        return {}
    try:
        if name not in ready:
            ready[name] = cases[name]()
        if "each" in request:
            return {"each": [_seconds(ready[name], 1) for _ in range(request["each"])]}
        return {"seconds": _seconds(ready[name], request["repeat"]) / max(1, request["repeat"])}
    except Exception as error:  # the parent prints it and continues with the next case
        traceback.print_exc(file=sys.stderr)
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
