"""Runs numbered programs in processes of their own: a crash or a hang is a failure of the program."""

from __future__ import annotations

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

TESTS = pathlib.Path(__file__).resolve().parents[1]
_PER_CAUSE = 2  # programs of one cause that a process makes smaller


@dataclass
class Found:
    """Counts of outcomes by kind and cause, a sample of each, and the failures."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    samples: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    failures: list[tuple[int, str, str, str, str]] = field(default_factory=list)

    def add(self, number: int, kind: str, cause: str, text: str, source: str) -> None:
        self.counts[kind, cause] += 1
        self.samples.setdefault((kind, cause), (number, text))
        if source:
            self.failures.append((number, kind, cause, text, source))

    def report(self) -> str:
        """Returns the failures with their programs, and a table of all outcomes."""
        lines: list[str] = []
        for number, kind, cause, text, source in sorted(self.failures, key=lambda f: (f[1], f[2], len(f[4]))):
            lines += [f"--- case {number}: {kind}: {cause}", source, text]
        total = sum(self.counts.values())
        kinds = Counter[str]()
        for (kind, _), count in self.counts.items():
            kinds[kind] += count
        lines += ["", *[f"{count:>7} {count / total:6.1%}  {kind}" for kind, count in kinds.most_common()], ""]
        for (kind, cause), count in sorted(self.counts.items(), key=lambda item: (item[0][0], -item[1])):
            if kind != "equal":
                number, text = self.samples[kind, cause]
                first = text.split("\n")[0][:200]
                lines.append(f"{count:>7} {count / total:6.1%}  {kind}: {cause}; case {number}: {first}")
        return "\n".join(lines)


class _Worker:
    """A process that runs every `step`-th case from `first` on, and is started anew behind a case that ends it."""

    def __init__(self, seed: int, first: int, step: int, end: int, shrink: float) -> None:
        self.seed, self.next, self.step, self.end, self.shrink = seed, first, step, end, shrink
        self.process: subprocess.Popen[bytes] | None = None
        self.buffer = b""
        self.begun = time.monotonic()

    def start(self) -> None:
        path = os.pathsep.join([str(TESTS), *sys.path])
        numbers = [self.seed, self.next, self.step, self.end, self.shrink]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "autograph_prove.workers", *map(str, numbers)],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.begun, self.buffer = time.monotonic(), b""

    def read(self, found: Found) -> bool:
        """Takes what the process wrote; false at its end."""
        assert self.process is not None and self.process.stdout is not None
        chunk = os.read(self.process.stdout.fileno(), 1 << 16)
        *whole, self.buffer = (self.buffer + chunk).split(b"\n")
        for line in whole:
            self.begun = time.monotonic()
            number, *parts = json.loads(line)
            found.add(number, *parts)
            self.next = number + self.step
        return bool(chunk)

    def stop(self) -> int:
        assert self.process is not None and self.process.stdout is not None
        self.process.kill()
        status = self.process.wait()
        self.process.stdout.close()
        return status


def run(count: int, seed: int, jobs: int, shrink: float) -> Found:
    """Runs the cases 0 to `count` - 1."""
    from . import programs

    found = Found()
    retried: set[int] = set()
    workers = [_Worker(seed, first, jobs, count, shrink) for first in range(min(jobs, count))]
    for worker in workers:
        worker.start()
    while workers:
        ready, _, _ = select.select([w.process.stdout for w in workers if w.process is not None], [], [], 0.5)
        for worker in list(workers):
            assert worker.process is not None
            ended = worker.process.stdout in ready and not worker.read(found)
            late = time.monotonic() - worker.begun > 90 + shrink
            if not ended and not late:
                continue
            status = worker.process.wait() if ended else worker.stop()
            if late and worker.next < count and worker.next not in retried:
                retried.add(worker.next)  # the machine may have been busy
                worker.start()
                continue
            if worker.next < count:
                kind = "hang" if late else f"crash ({signal.Signals(-status).name if status < 0 else status})"
                found.add(worker.next, kind, kind, "", programs.program_of(worker.next, seed).source)
                worker.next += worker.step
            if worker.next < count:
                worker.start()
            else:
                workers.remove(worker)
    return found


def main(arguments: list[str]) -> None:
    """The process of a worker."""
    from . import programs

    seed, first, step, end = map(int, arguments[:4])
    shrink = float(arguments[4])
    seen: Counter[tuple[str, str]] = Counter()
    for number in range(first, end, step):
        outcome, source = programs.case(number, seed)
        text = outcome.text
        if outcome.is_failure:
            seen[outcome.kind, outcome.cause] += 1
            if seen[outcome.kind, outcome.cause] <= _PER_CAUSE:
                smaller, source = programs.case(number, seed, shrink)
                text = smaller.text
            else:
                source = ""
        parts = [number, outcome.kind, outcome.cause, text, source if outcome.is_failure else ""]
        print(json.dumps(parts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
