"""Runs numbered cases in processes of their own, with limits on time and memory: a crash or a hang is a finding."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

TESTS = pathlib.Path(__file__).resolve().parents[1]
MOST_MEMORY = 6 << 30  # address space of a worker above its first size; more raises MemoryError


@dataclass(frozen=True)
class Finding:
    """A case that is neither right nor refused."""

    number: int
    kind: str
    text: str


class _Worker:
    """A process that runs every `step`-th case from `first` on, and is started anew behind a case that ends it."""

    def __init__(self, what: str, seed: int, first: int, step: int, end: int) -> None:
        self.what, self.seed, self.next, self.step, self.end = what, seed, first, step, end
        self.process: subprocess.Popen[bytes] | None = None
        self.buffer = b""
        self.ended = False
        self.begun = time.monotonic()
        self.current: int | None = None

    def start(self) -> None:
        path = os.pathsep.join([str(TESTS), *sys.path])
        command = [sys.executable, "-m", "onnx_prove.workers", self.what, str(self.seed)]
        self.process = subprocess.Popen(
            [*command, str(self.next), str(self.step), str(self.end)],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.begun, self.buffer, self.current, self.ended = time.monotonic(), b"", None, False

    def lines(self) -> Iterator[dict]:
        assert self.process is not None and self.process.stdout is not None
        chunk = os.read(self.process.stdout.fileno(), 1 << 16)
        self.ended = not chunk
        self.buffer += chunk
        *whole, self.buffer = self.buffer.split(b"\n")
        for line in whole:
            yield json.loads(line)

    def stop(self) -> int:
        assert self.process is not None and self.process.stdout is not None
        if not self.ended:
            self.process.kill()
        status = self.process.wait()
        self.process.stdout.close()
        self.process = None
        return status


def run(what: str, count: int, seed: int, jobs: int, limit: float) -> tuple[Counter[str], list[Finding]]:
    """Counts of outcomes, and the findings, of the cases 0 to `count` - 1. limit: seconds of one case."""
    outcomes: Counter[str] = Counter()
    findings: list[Finding] = []
    workers = [_Worker(what, seed, first, jobs, count) for first in range(jobs)]
    waiting = [worker for worker in workers if worker.next < count]
    for worker in waiting:
        worker.start()
    while waiting:
        ready, _, _ = select.select([worker.process.stdout for worker in waiting], [], [], 0.5)
        for worker in list(waiting):
            if worker.process.stdout in ready:
                _take(worker, outcomes, findings)
            late = time.monotonic() - worker.begun > limit + (20 if worker.current is None else 0)
            if late or worker.ended:
                _end(worker, not worker.ended, outcomes, findings)
                if worker.next >= count:
                    waiting.remove(worker)
                else:
                    worker.start()
    return outcomes, findings


def _take(worker: _Worker, outcomes: Counter[str], findings: list[Finding]) -> None:
    for line in worker.lines():
        worker.begun = time.monotonic()
        if "begin" in line:
            worker.current = line["begin"]
            continue
        outcomes[line["outcome"]] += 1
        if line["text"]:
            findings.append(Finding(line["number"], line["outcome"], line["text"]))
        worker.current, worker.next = None, line["number"] + worker.step


def _end(worker: _Worker, late: bool, outcomes: Counter[str], findings: list[Finding]) -> None:
    status = worker.stop()
    if worker.current is None and worker.next >= worker.end:
        return
    number = worker.next if worker.current is None else worker.current
    kind = "hang" if late else f"crash ({signal.Signals(-status).name if status < 0 else status})"
    outcomes[kind] += 1
    findings.append(Finding(number, kind, f"case {number} ended its process"))
    worker.next = number + worker.step


# ---------------------------------------------------------------------------------------------------- in the process
def high_water() -> int:
    """The largest resident memory in bytes since the last call of :func:`forget_high_water`."""
    text = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.split("VmHWM:")[1].split()[0]) * 1024


def forget_high_water() -> None:
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _limit_memory() -> None:
    import resource

    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(arguments: list[str]) -> None:
    what, seed, first, step, end = arguments[0], *map(int, arguments[1:])
    case: Callable[[int, int], tuple[str, str]]
    if what == "files":
        from onnx_prove.files import case
    else:
        from onnx_prove.graphs import case
    _limit_memory()
    for number in range(first, end, step):
        print(json.dumps({"begin": number}), flush=True)
        outcome, text = case(number, seed)
        print(json.dumps({"number": number, "outcome": outcome, "text": text}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
