"""Checks memory and numbers with thousands of random programs, in every way that they can run.

    PYTHONPATH=python:tests/python python -m programs.prove [--programs 20000] [--jobs 2] [--seed 0] [--minutes 0]

Programs of 5 to 30 lines write in place, share memory, mix dtypes and meet special values. Each runs on arrays,
recorded and not, as a hybridized block with both allocations, from its exported file in Python and through the C
functions, and as a function with donated arguments; every value and gradient is compared with a small interpreter in
NumPy that has explicit memory. An error of the library that names the refused operation is right and is counted; a
different value or a crash is a failure.

Prints counts of runs and refusals, and the failures as small programs; the exit status is 1 if there are failures.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import executors, shrink, source, workers
from .program import Program


@dataclass
class Report:
    """Sums over all programs."""

    programs: int = 0
    ran: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)  # a program for each kind of refusal
    failures: dict[int, list[tuple[str, str]]] = field(default_factory=dict)

    def add(self, number: int, outcome: executors.Outcome) -> None:
        self.programs += 1
        self.ran += outcome.ran
        self.refused += outcome.refused
        for _, kind in outcome.refused:
            self.examples.setdefault(kind, number)
        if outcome.failures:
            self.failures[number] = outcome.failures

    def lines(self) -> Iterator[str]:
        refused: Counter[str] = Counter()
        for (executor, _), count in self.refused.items():
            refused[executor] += count
        wrong = Counter(executor for failures in self.failures.values() for executor, _ in failures)
        yield f"{'executor':>14} {'programs':>9} {'refused':>9} {'different':>9}"
        for executor in [*self.ran, *(["crash"] if wrong["crash"] else [])]:
            if executor != "compared":
                yield f"{executor:>14} {self.ran[executor]:>9} {refused[executor]:>9} {wrong[executor]:>9}"
        yield f"{self.ran['compared']} arrays compared"
        yield ""
        yield "refused:"
        kinds: Counter[str] = Counter()
        where: dict[str, Counter[str]] = {}
        for (executor, kind), count in self.refused.items():
            kinds[kind] += count
            where.setdefault(kind, Counter())[executor] += count
        for kind, count in kinds.most_common(60):
            places = ", ".join(f"{executor} {n}" for executor, n in where[kind].most_common())
            yield f"{count:>8}  {kind}  ({places}; program {self.examples[kind]})"


def prove(numbers: Iterator[int], jobs: int, seed: int, minutes: float = 0) -> Report:
    """Runs programs until the numbers end, or for some minutes."""
    report, end = Report(), time.monotonic() + 60 * minutes
    limited = itertools.takewhile(lambda _: not minutes or time.monotonic() < end, numbers)
    for number, outcome in workers.run(jobs, seed, limited):
        if outcome is not None:
            report.add(number, outcome)
    return report


def minimal(seed: int, number: int, failure: tuple[str, str], seconds: float) -> str:
    """Returns the source of a small program with the same failure."""
    program = workers.regenerate(seed, number)
    assert program is not None
    worker = workers.Worker()
    try:
        small, text = shrink.smallest(program, failure, worker.ask, seconds)
    finally:
        worker.stop()
    return describe(small, failure[0], text, f"seed {seed}, program {number}")


def describe(program: Program, executor: str, text: str, origin: str) -> str:
    """Returns the source of a failing program, with the wrong and the expected result."""
    flags = executors.HYBRIDIZE.get(executor, {})
    prepare = "" if flags is None else f"net.hybridize({', '.join(f'{k}={v}' for k, v in flags.items())})"
    code = source.make(program).text(prepare, notes=False)
    place = text.split(":")[1].strip() if text.startswith("round") else ""
    return f"# {origin}, {executor}\n# {text}\n{code}# expected: see above, {place}\n"


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--minutes", type=float, default=0, help="stop after this time")
    parser.add_argument("--show", type=int, default=10, help="failures that are made small and printed")
    parser.add_argument("--patience", type=float, default=30, help="seconds to make one failure small")
    options = parser.parse_args()
    begin = time.monotonic()
    numbers = iter(range(options.first, options.first + options.programs))
    report = prove(numbers, options.jobs, options.seed, options.minutes)
    for line in report.lines():
        print(line)
    shown: Counter[str] = Counter()
    for number, failures in sorted(report.failures.items()):
        print(f"program {number}: " + "; ".join(f"{executor}: {text[:200]}" for executor, text in failures))
    for number, failures in sorted(report.failures.items()):
        kind = shrink.signature(failures[0])
        if sum(shown.values()) < options.show and shown[kind] < 4:
            shown[kind] += 1
            print(minimal(options.seed, number, failures[0], options.patience))
    seconds = time.monotonic() - begin
    print(f"{report.programs} programs, {len(report.failures)} with differences, {seconds:.0f} s")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
