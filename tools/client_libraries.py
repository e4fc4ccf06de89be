#!/usr/bin/env python3
"""Runs the models of libraries written for MXNet 1.9.1 on HybridNet, and counts the stages that work.

    PYTHONPATH=python python tools/client_libraries.py --library gluoncv --out result.json

The libraries must be installed (docs/migrating-from-mxnet.md explains how). Every module is imported; every model is
made with random parameters, and runs forward, hybridized and through one training step, in a separate process with a
time limit. ``--judge`` runs MXNet itself, if that is installed instead: failures there are not failures of HybridNet.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

LIBRARIES = ("gluoncv", "gluonnlp", "gluonts", "d2l")
STAGES = ("constructed", "forward", "hybridized", "equal", "trained")
# Differences between imperative and hybridized results: relative to the largest value of an output.
TOLERANCE = 1e-3
MARK = "client-libraries:"  # prefix of a child's lines for its parent


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--library", choices=LIBRARIES, required=True)
    parser.add_argument("--out", type=Path, help="write everything that was found to this JSON file")
    parser.add_argument("--only", default="", help="a regular expression: models whose name it finds")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a model (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="models at a time (default: %(default)s)")
    parser.add_argument("--judge", action="store_true", help="run MXNet, not HybridNet")
    parser.add_argument("--part", help=argparse.SUPPRESS)  # the child's task: a model, "=imports" or "=names"
    return parser.parse_args()


# --- in a child -------------------------------------------------------------------------------------------------------


def _tell(**facts: Any) -> None:
    print(MARK + json.dumps(facts), flush=True)


def _problem(error: BaseException) -> str:
    """One line: the error, and the place in the library where it occurred."""
    places = [
        f"{place.filename.partition('site-packages/')[2]}:{place.lineno}"
        for place in traceback.extract_tb(error.__traceback__)
        if "site-packages/" in place.filename
    ]
    text = " ".join(str(error).split())[:400]
    return f"{type(error).__name__}: {text}" + (f" ({places[-1]})" if places else "")


def _import_modules(library: str) -> None:
    package = importlib.import_module(library)
    for module in pkgutil.walk_packages(package.__path__, f"{library}.", onerror=lambda name: None):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
            _tell(module=module.name)
        except BaseException as error:  # some modules call sys.exit
            _tell(module=module.name, problem=_problem(error))


def _difference(first: list[Any], second: list[Any]) -> str | None:
    """The difference between two lists of outputs; None if they agree."""
    import numpy as np

    if [array.shape for array in first] != [array.shape for array in second]:
        return f"shapes differ: {[array.shape for array in first]} and {[array.shape for array in second]}"
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        one, other = one.astype("float64"), other.astype("float64")
        finite = np.isfinite(one)
        if not np.array_equal(finite, np.isfinite(other)):
            return f"output {number}: not finite at other places"
        largest = np.abs(one[finite]).max(initial=0.0)
        error = np.abs(one[finite] - other[finite]).max(initial=0.0)
        if error > TOLERANCE * largest + 1e-6:
            return f"output {number}: differs by {error:.3g}, its largest value is {largest:.3g}"
    return None


def _run_model(make: Callable[[], Any]) -> None:
    """Reports each stage that is reached; the first failure ends the run."""
    stage = STAGES[0]
    try:
        subject = make()
        _tell(stage=stage)
        stage = "forward"
        imperative = subject.forward()
        _tell(stage=stage)
        stage = "hybridized"
        subject.hybridize()
        graphs = subject.forward()
        _tell(stage=stage)
        difference = _difference(imperative, graphs)
        _tell(stage="equal", problem=difference)
        stage = "trained"
        subject.train()
        _tell(stage=stage)
    except BaseException as error:
        traceback.print_exc()
        _tell(stage=stage, problem=_problem(error))


def _child(options: argparse.Namespace) -> None:
    if not options.judge:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
        importlib.import_module("hybridnet.as_mxnet")
    if options.part == "=imports":
        _import_modules(options.library)
        return
    models = importlib.import_module(f"client_models.{options.library}").MODELS
    if options.part == "=names":
        _tell(names=list(models))
    else:
        _run_model(models[options.part])


# --- in the parent ----------------------------------------------------------------------------------------------------


def _facts(options: argparse.Namespace, part: str, limit: int) -> tuple[list[dict[str, Any]], str | None]:
    """The facts that a child reported, and the way it ended if not normally."""
    words = [sys.executable, __file__, "--library", options.library, "--part", part]
    command = [*words, "--judge"] if options.judge else words
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        output, end = ran.stdout, None if ran.returncode == 0 else f"ended with {ran.returncode}: {ran.stderr[-300:]}"
    except subprocess.TimeoutExpired as late:
        output, end = (late.stdout or b"").decode(), f"not done after {limit} s"
    return list(_lines(output)), end


def _lines(output: str) -> Iterator[dict[str, Any]]:
    for line in output.splitlines():
        if line.startswith(MARK):
            yield json.loads(line.removeprefix(MARK))


def _result(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """The stages that a model reached, and the problem that stopped it."""
    begin = time.monotonic()
    facts, end = _facts(options, name, options.limit)
    reached = [fact["stage"] for fact in facts if not fact.get("problem")]
    problems = [f"{fact['stage']}: {fact['problem']}" for fact in facts if fact.get("problem")] + ([end] if end else [])
    print(f"{name:45} {time.monotonic() - begin:6.1f} s  {'; '.join(problems) or 'good'}", flush=True)
    return {"name": name, "reached": reached, "problems": problems}


def _table(library: str, modules: list[dict[str, Any]], models: list[dict[str, Any]]) -> str:
    imported = sum("problem" not in module for module in modules)
    counts = [f"{sum(stage in model['reached'] for model in models)}" for stage in STAGES]
    return (
        f"\n| library | modules imported | models | {' | '.join(STAGES)} |\n|{'---|' * (3 + len(STAGES))}\n"
        f"| {library} | {imported} of {len(modules)} | {len(models)} | {' | '.join(counts)} |"
    )


def main() -> None:
    """Runs everything and prints the table."""
    options = _arguments()
    if options.part:
        _child(options)
        return
    modules, end = _facts(options, "=imports", 600)
    names, names_end = _facts(options, "=names", 600)
    for problem in filter(None, [end, names_end]):
        print(problem)
    for module in modules:
        if "problem" in module:
            print(f"{module['module']}: {module['problem']}")
    wanted = [name for fact in names for name in fact["names"] if re.search(options.only, name)]
    with ThreadPoolExecutor(options.jobs) as pool:
        models = list(pool.map(lambda name: _result(options, name), wanted))
    print(_table(options.library, modules, models))
    if options.out:
        options.out.write_text(json.dumps({"modules": modules, "models": models}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
