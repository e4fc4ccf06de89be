"""The variation of timings of the same work: between processes, and between calls next to a busy thread.

    python benchmarks/stability.py [--only PART,PART] [--processes 12] [--calls 5000] [--isa WORD] [--write]

Processes: a row of cases.py runs in many processes, one after the other; the median times of the processes are shown in
order. A row is bistable if they form two groups with a gap of more than GAP between them, and neither group is a single
process. Calls: small calls are timed one by one, each with the wait for its result, while another process keeps one
core busy; the 99th percentile may be at most twice the median. PyTorch's figures are shown for comparison.
--write keeps the rows in benchmarks/STABILITY.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cases import CASES, Case
from run import ISA_CAPS, Program, Side, chosen, unit
from sections import Section, instruction_sets, keep, machine, peer_versions, stamp

HERE = Path(__file__).resolve().parent
ROUNDS = 5  # in each process
GAP = 0.15  # relative to the median
ROWS = (
    "dot_32",
    "mlp_train",
    "lenet_train",
    "mobilenet_infer_1",
    "lstm_foreach",
    "lstm_fused",
    "while_1000",
    "cond_call",
)
CALLS = ("add_scalar", "multiply_add", "dot_32", "record_backward", "cond_call")
PROCESS_COLUMNS = (
    "work",
    "processes",
    "least",
    "median",
    "most",
    "most / least",
    "bistable",
    "all, in order",
    "measured",
)
CALL_COLUMNS = (
    "work",
    "quiet: median",
    "99th",
    "busy core: median",
    "99th / median",
    "met",
    "PyTorch's, busy core",
    "measured",
)
HEAD = """# Stability of timings

Written by `python benchmarks/stability.py --write`, which says how it is measured."""


def two_groups(values: list[float]) -> bool:
    """True if the sorted values have a gap of more than GAP with two or more values on both sides."""
    gaps = [(values[i] - values[i - 1]) / statistics.median(values) for i in range(2, len(values) - 1)]
    return any(gap > GAP for gap in gaps)


def of_processes(case: Case, mode: str, processes: int, env: dict[str, str]) -> list[float]:
    """The median time of each process, sorted."""
    medians = []
    for _ in range(processes):
        program = Program(mode, Side("hybridnet", env=env), f"{case.name}/{mode}")
        if program.prepare():
            for _ in range(ROUNDS):
                program.measure()
            medians.append(program.median)
        program.side.close()
    return sorted(medians)


def process_row(case: Case, mode: str, medians: list[float], measured: str) -> str:
    spread = [unit(medians[0]), unit(statistics.median(medians)), unit(medians[-1])]
    ratio, groups = f"{medians[-1] / medians[0]:.2f}", "YES" if two_groups(medians) else "no"
    cells = [f"{case.what}, {mode}", str(len(medians)), *spread, ratio, groups, " ".join(map(unit, medians)), measured]
    return f"| {' | '.join(cells)} |"


@contextmanager
def busy_core() -> Iterator[None]:
    """Runs another process that computes without a pause."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def percentiles(side: Side, key: str, calls: int) -> tuple[float, float]:
    """The median and the 99th percentile of single calls in seconds, after as many warm-up calls."""
    for _ in range(2):
        each = side.ask(case=key, each=calls)["each"]
    return statistics.median(each), statistics.quantiles(each, n=100)[98]


def call_row(case: Case, sides: dict[str, Side], calls: int, measured: str) -> str:
    key = f"{case.name}/{case.modes[0]}"
    quiet = percentiles(sides["hybridnet"], key, calls)
    with busy_core():
        median, late = percentiles(sides["hybridnet"], key, calls)
        theirs = percentiles(sides["torch"], f"{case.name}/eager", calls) if "torch" in sides else None
    met = "yes" if late <= 2 * median else "NO"
    peer = f"{unit(theirs[0])}, 99th {unit(theirs[1])} ({theirs[1] / theirs[0]:.1f})" if theirs else "-"
    cells = [case.what, unit(quiet[0]), unit(quiet[1]), unit(median), f"{late / median:.2f}", met, peer, measured]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name has one of these parts (comma between)")
    parser.add_argument("--processes", type=int, default=12, help="of each row; 0 leaves them out")
    parser.add_argument("--calls", type=int, default=5000, help="of each small call; 0 leaves them out")
    parser.add_argument("--isa", choices=ISA_CAPS, default="best")
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/STABILITY.md")
    args = parser.parse_args()
    env, measured = dict(os.environ, **ISA_CAPS[args.isa]), stamp()
    where = f"{machine()}: {instruction_sets(env)}"

    def wanted(names: tuple[str, ...]) -> list[Case]:
        return [case for case in chosen(args.only) if case.name in names]

    def show(what: str, columns: tuple[str, ...], rows: Iterator[str], order: tuple[str, ...]) -> None:
        print(f"| {' | '.join(columns)} |\n|" + "---|" * len(columns))
        for line in rows:
            print(line, flush=True)
            if args.write:
                new = Section(f"{where}, {what}", peer_versions(), columns, (line,), order)
                keep(HERE / "STABILITY.md", HEAD, new)

    if args.processes:
        modes = [(case, mode) for case in wanted(ROWS) for mode in case.modes]
        lines = (process_row(c, m, of_processes(c, m, args.processes, env), measured) for c, m in modes)
        order = tuple(f"{case.what}, {mode}" for case in CASES for mode in case.modes)
        show("from process to process", PROCESS_COLUMNS, lines, order)
    if args.calls:
        names = ("hybridnet", "torch") if importlib.util.find_spec("torch") else ("hybridnet",)
        sides = {name: Side(name, env=env) for name in names}
        lines = (call_row(case, sides, args.calls, measured) for case in wanted(CALLS))
        show("single calls", CALL_COLUMNS, lines, tuple(case.what for case in CASES))
        for side in sides.values():
            side.close()


if __name__ == "__main__":
    main()
