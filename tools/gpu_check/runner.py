"""Runs the steps, each in a process of its own, prints a line for each, and writes the report."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from .outcome import Options
from .steps import STEPS, Step

__all__ = ["ROOT", "Runner", "environment", "last_lines"]

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOTAL_SECONDS = 540.0
LEAST_SECONDS = 10.0  # a step with less time left is left out
STAND_IN_FACTOR = 5  # for its limits: it runs beside other tests
MOST_FAULTS = 20  # printed for a step


class Runner:
    """Runs steps within a total time. results: one dict for each step that ran."""

    def __init__(self, options: Options, total_seconds: float = TOTAL_SECONDS) -> None:
        self.options = options
        self.factor = STAND_IN_FACTOR if options.stand_in else 1
        self.end = time.monotonic() + total_seconds * self.factor
        self.results: list[dict[str, Any]] = []

    def run(self, names: list[str]) -> bool:
        """Runs the named steps, all if none is named. Returns whether nothing is wrong."""
        for step in STEPS:
            if (step.name in names) if names else step.listed:
                self._run(step)
        return not any(result["wrong"] for result in self.results)

    def _run(self, step: Step) -> None:
        left = self.end - time.monotonic()
        start = time.monotonic()
        if step.measures and self.options.stand_in:
            result: dict[str, Any] = {"skipped": "the stand-in has no speed"}
        elif left < LEAST_SECONDS:
            result = {"skipped": f"{TOTAL_SECONDS:.0f} s are over"}
        else:
            result = self._in_a_process(step, min(step.seconds * self.factor, left))
        result = {"name": step.name, "line": "", "wrong": [], "rows": {}, "skipped": "", **result}
        result["seconds"] = round(time.monotonic() - start, 2)
        self.results.append(result)
        _print(result)

    def _in_a_process(self, step: Step, seconds: float) -> dict[str, Any]:
        """Runs a step; the process, and all that it started, ends with its limit."""
        with tempfile.TemporaryDirectory() as folder:
            answer = pathlib.Path(folder) / "result.json"
            options = dataclasses.replace(self.options, seconds=seconds * 0.9)
            command = [*_command_of(step), "--answer", str(answer)]
            command += ["--options", json.dumps(dataclasses.asdict(options))]
            with (pathlib.Path(folder) / "output").open("w+", encoding="utf-8", errors="replace") as output:
                process = subprocess.Popen(
                    command, cwd=ROOT, env=environment(options), stdout=output, stderr=output, start_new_session=True
                )
                try:
                    status = process.wait(seconds)
                except subprocess.TimeoutExpired:
                    status = None
                finally:
                    _end_group(process)
                output.seek(0)
                printed = output.read()
            if answer.exists():
                found = json.loads(answer.read_text("utf-8"))
                if status not in (0, None):
                    found["wrong"].append(f"{_ending(status)} after the step was over: {last_lines(printed)}")
                return found
        if status is None:
            return {"wrong": [f"it ran longer than {seconds:.0f} s: {last_lines(printed)}"]}
        return {"wrong": [f"{_ending(status)}: {last_lines(printed)}"]}

    def report(self) -> dict[str, Any]:
        """Returns all results for the JSON file."""
        machine = next((result["rows"] for result in self.results if result["name"] == "machine"), {})
        return {
            "date": time.strftime("%Y-%m-%d"),
            "stand_in": self.options.stand_in,
            "machine": machine,
            "wrong": sum(len(result["wrong"]) for result in self.results),
            "steps": self.results,
        }


def _command_of(step: Step) -> list[str]:
    return [sys.executable, "-m", __package__, "--step", step.name]


def environment(options: Options) -> dict[str, str]:
    """Returns the environment of a step."""
    folders = [ROOT / "tools", ROOT / "python"]
    folders += [ROOT / "tests" / "python" / "ops", ROOT / "benchmarks" / "sides"]  # samples and networks
    paths = [*map(str, folders), os.environ.get("PYTHONPATH", "")]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    found["HYBRIDNET_GPU_FALLBACK"] = "ignore"
    if options.stand_in:
        found["HYBRIDNET_CUDA_DRIVER"] = "stand-in"
        found["HNSTANDIN_MEMORY_MB"] = "64"
    return found


def _end_group(process: subprocess.Popen) -> None:
    """Ends the processes that the step has left; the step leads a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ending(status: int) -> str:
    if status < 0:
        return f"the process was ended by {signal.Signals(-status).name}"
    return f"the process exited with {status}"


def last_lines(text: str, count: int = 4) -> str:
    """Returns the end of what a process printed; before it, what the tests' driver reported."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reported = [line for line in lines if line.startswith("hnstandin:")][:2]
    kept = reported or lines[-count:]
    return " | ".join(kept)[-600:] or "it printed nothing"


def _print(result: dict[str, Any]) -> None:
    word = "WRONG" if result["wrong"] else "-" if result["skipped"] else "ok"
    text = result["line"] or (f"left out: {result['skipped']}" if result["skipped"] else "")
    print(f"{word:5}  {result['name']:14} {result['seconds']:6.1f} s  {text}", flush=True)
    for fault in result["wrong"][:MOST_FAULTS]:
        print(f"         {fault}", flush=True)
    if len(result["wrong"]) > MOST_FAULTS:
        print(f"         and {len(result['wrong']) - MOST_FAULTS} more, in the report", flush=True)
