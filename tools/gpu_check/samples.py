"""All samples of the operator registry on the GPU against the CPU, values and gradients, in worker processes.

A worker (:mod:`.sample_worker`) answers jobs, each an operator and a dtype, one at a time: a worker that crashes or
hangs is replaced, and only its job is lost.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from typing import Any

from .compare import CLASSES
from .outcome import Options, Outcome
from .runner import last_lines

__all__ = ["check_samples"]

JOB_SECONDS = 60.0  # the first job of a worker starts the driver and compiles kernels
DTYPES = ("float32", "float64", "float16", "int32", "bfloat16", "int64", "uint8", "int8", "bool")
WORST = 20


def check_samples(options: Options) -> Outcome:
    """Runs the jobs until the time is over: float32 first, so that every operator runs at least once."""
    from .sample_worker import falls_back, jobs_of

    end = time.monotonic() + options.seconds - 5
    jobs = jobs_of(DTYPES[:1] if options.stand_in else DTYPES, options.operators)
    queue, answers = iter(jobs), []
    lock = threading.Lock()

    def next_job() -> tuple[str, str] | None:
        with lock:
            return next(queue, None) if time.monotonic() < end else None

    def work() -> None:
        with Worker() as worker:
            while (job := next_job()) is not None:
                answer = worker.ask(job)
                with lock:
                    answers.append(answer)

    threads = [threading.Thread(target=work) for _ in range(options.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _summary(answers, len(jobs), falls_back({name for name, _ in jobs}))


def _summary(answers: list[dict[str, Any]], asked: int, fallbacks: list[str]) -> Outcome:
    counts = Counter(answer["kind"] for answer in answers)
    bad = sorted((a for a in answers if a["kind"] == "WRONG"), key=lambda a: (a["op"], a["dtype"]))
    measured = [a for a in answers if a["kind"] in CLASSES and a["kind"] != "exact"]
    worst = sorted(measured, key=lambda a: -a["relative"])[:WORST]
    outcome = Outcome(wrong=[f"{a['op']} {a['dtype']}: {a['note']}" for a in bad])
    words = [f"{word} {counts[word]}" for word in CLASSES]
    outcome.line = f"{', '.join(words)} of {len(answers)} (operator, dtype); {len(fallbacks)} operators fall back"
    if len(answers) < asked:
        outcome.line += f"; no time for {asked - len(answers)}"
    outcome.rows = {
        "counts": dict(counts),
        "not_run": asked - len(answers),
        "worst": worst,
        "fall_back": fallbacks,
        "answers": answers,
    }
    return outcome


class Worker:
    """A process that answers jobs."""

    def __enter__(self) -> Worker:
        self._process: subprocess.Popen | None = None
        return self

    def __exit__(self, *exception: Any) -> None:
        self._end()

    def ask(self, job: tuple[str, str]) -> dict[str, Any]:
        """Runs a job. Its answer is WRONG if the worker crashes or hangs."""
        if self._process is None:
            self._start()
        assert self._process is not None and self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
            ready, _, _ = select.select([self._process.stdout], [], [], JOB_SECONDS)
            line = self._process.stdout.readline() if ready else b""
        except BrokenPipeError:
            ready, line = [1], b""
        if line:
            answer = json.loads(line)
            if answer.pop("end", False):
                self._end()
            return answer
        note = self._last_words() if ready else f"no answer within {JOB_SECONDS:.0f} s"
        self._end()
        return {"op": job[0], "dtype": job[1], "kind": "WRONG", "relative": float("inf"), "ulps": -1, "note": note}

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.sample_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
        )

    def _last_words(self) -> str:
        assert self._process is not None
        status = self._process.wait()
        self._errors.seek(0)
        return f"the process ended with {status}: {last_lines(self._errors.read().decode(errors='replace'))}"

    def _end(self) -> None:
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
