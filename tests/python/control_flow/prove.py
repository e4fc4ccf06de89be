"""Checks control flow with thousands of random programs, in every way that they can run.

    PYTHONPATH=python:tests/python python -m control_flow.prove [--programs 5000] [--jobs 3] [--seed 0]

For each program it checks that
- arrays and hybridized graph give the same result, and so does the exported file, to the last bit, in a C++ program;
- gradients of first and second order are the same on arrays and in graphs, and agree with central differences;
- branches that are not taken run neither forwards nor backwards.

Prints the constructs of the programs and the failures; the exit status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed

from . import compare_models, program_checks, random_programs
from .random_programs import Tree


def _drawn(seed: int, count: int) -> list[Tree]:
    drawn: list[Tree] = []

    @hypothesis_seed(seed)
    @settings(
        max_examples=count, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(random_programs.programs())
    def draw(tree: Tree) -> None:
        drawn.append(tree)

    draw()
    return drawn


def distinct_programs(count: int, seed: int) -> list[Tree]:
    """Distinct programs drawn by the strategy of the tests."""
    found: dict[Tree, None] = {}
    while len(found) < count:
        found.update(dict.fromkeys(_drawn(seed, min(1000, 3 * count))))
        seed += 1_000_003
    return list(found)[:count]


def check(tree: Tree, number: int, folder: pathlib.Path) -> tuple[Counter[str], list[str]]:
    """Returns counts and failures of one program; `number` is also the seed of its arguments."""
    checks = program_checks
    found: Counter[str] = Counter()
    failures: list[str] = []

    def attempt(name: str, run: Callable[[], Any]) -> None:
        found[name] += 1
        try:
            result = run()
        except Exception:
            failures.append(f"program {number}, {name}: {traceback.format_exc(limit=-4)}\n{tree!r}")
            found[f"{name}: failed"] += 1
            return
        if isinstance(result, Counter):
            found.update({f"{name}: {key}": value for key, value in result.items()})
        elif result is not None:
            found[f"{name}: the same bits"] += int(result)

    attempt("arrays = graph", lambda: checks.same_in_graphs(tree, number, folder, f"p{number:05}"))
    for order in (1, 2):
        attempt(f"gradients of order {order}, arrays = graph", lambda o=order: checks.same_gradients(tree, number, o))
        attempt(
            f"gradients of order {order}, graph = differences",
            lambda o=order: checks.gradients_of_differences(tree, number, o),
        )
    if random_programs.constructs(tree)["Cond"]:
        attempt("branches", lambda: checks.branches_not_taken_never_run(tree, number))
    return found, failures


def _work(job: tuple[int, Tree, pathlib.Path]) -> tuple[Counter[str], list[str]]:
    number, tree, folder = job
    found = Counter({f"depth {random_programs.depth_of(tree)}": 1})
    found.update({f"construct {name}": n for name, n in random_programs.constructs(tree).items()})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The .*-th input")  # a random program need not use all inputs
        counts, failures = check(tree, number, folder)
    return found + counts, failures


def prove(programs: int, jobs: int, seed: int, folder: pathlib.Path) -> tuple[Counter[str], list[str]]:
    """Returns the counts of all checks, and the failures."""
    models = folder / "models"
    models.mkdir()
    found: Counter[str] = Counter()
    failures: list[str] = []
    work = [(number, tree, models) for number, tree in enumerate(distinct_programs(programs, seed))]
    with multiprocessing.get_context("spawn").Pool(jobs) if jobs > 1 else contextlib.nullcontext() as pool:
        for counts, wrong in pool.imap_unordered(_work, work, chunksize=10) if pool else map(_work, work):
            found.update(counts)
            failures += wrong
    good, text = compare_models.run(compare_models.build(folder), models)
    found["C++: " + text.strip().splitlines()[-1]] += 1
    if not good:
        failures.append(text)
    return found, failures


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="processes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found, failures = prove(options.programs, options.jobs, options.seed, pathlib.Path(folder))
    for name, count in sorted(found.items()):
        print(f"{count:>9}  {name}")
    for failure in failures[:20]:
        print(failure, file=sys.stderr)
    print(f"{options.programs} programs, {len(failures)} failures, {time.monotonic() - begin:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
