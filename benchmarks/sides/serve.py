"""The loop both sides share: read a case, run it `repeat` times, answer with the seconds per call."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable

Step = Callable[[int], None]  # runs the work that many times and waits for the results


def serve(version: str, cases: dict[str, Callable[[], Step]]) -> None:
    ready: dict[str, Step] = {}
    current = None
    for line in sys.stdin:
        request = json.loads(line)
        name = request["case"]
        if name == "version":
            reply = {"version": version}
        else:
            try:
                if name != current:  # one case's arrays at a time
                    ready.clear()
                    ready[name] = cases[name]()
                    current = name
                start = time.perf_counter()
                ready[name](request["repeat"])
                reply = {"seconds": (time.perf_counter() - start) / max(1, request["repeat"])}
            except Exception as error:  # the parent shows it and goes on with the next case
                traceback.print_exc(file=sys.stderr)
                reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(reply), flush=True)
