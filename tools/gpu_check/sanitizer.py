"""NVIDIA's compute-sanitizer over the kernels: reads and writes out of bounds, and races in shared memory."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from .outcome import Options, Outcome

__all__ = ["memcheck", "racecheck"]


def memcheck(options: Options) -> Outcome:
    """Finds reads and writes out of bounds or misaligned."""
    return _watch(options, "memcheck", "--leak-check=no")


def racecheck(options: Options) -> Outcome:
    """Finds threads of a block that use shared memory without a barrier between."""
    return _watch(options, "racecheck", "--racecheck-report=analysis")


def program() -> str | None:
    """Returns the path of compute-sanitizer: of PATH, of a toolkit, or of a package from pip."""
    found = shutil.which("compute-sanitizer")
    if found:
        return found
    packages = pathlib.Path(sysconfig.get_paths()["purelib"])
    places = [*pathlib.Path("/usr/local").glob("cuda*/bin"), *pathlib.Path("/opt/cuda").glob("bin")]
    places += [*packages.glob("nvidia/*/bin"), *packages.glob("nvidia/*/compute-sanitizer")]
    return next((str(place / "compute-sanitizer") for place in places if (place / "compute-sanitizer").is_file()), None)


def _watch(options: Options, tool: str, *arguments: str) -> Outcome:
    path = program() if not options.stand_in else None
    if path is None:
        reason = "the stand-in has checks of its own" if options.stand_in else "compute-sanitizer was not found"
        return Outcome(skipped=reason)
    with tempfile.TemporaryDirectory() as folder:
        answer = pathlib.Path(folder) / "answer.json"
        command = [path, "--tool", tool, *arguments, "--print-limit", "20", sys.executable, "-m", __package__]
        command += ["--step", "kernels", "--answer", str(answer), "--options", json.dumps({"seconds": options.seconds})]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=options.seconds, check=False
        )
        ran = json.loads(answer.read_text("utf-8")) if answer.exists() else {"wrong": ["the program did not end"]}
    return _outcome(tool, done.stdout + done.stderr, ran)


def _outcome(tool: str, output: str, ran: dict) -> Outcome:
    outcome = Outcome(line=ran.get("line", ""), wrong=[f"under {tool}: {fault}" for fault in ran["wrong"]])
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", output)
    outcome.expect(summary is not None, f"compute-sanitizer gave no summary: {' | '.join(output.splitlines()[-4:])}")
    if summary is not None:
        outcome.line = f"{summary[1]}; {outcome.line}"
        if not re.match(r"0 (errors|hazards)", summary[1]):
            lines = [line.removeprefix("========= ").strip() for line in output.splitlines() if line.startswith("====")]
            outcome.wrong += [line for line in lines if line][:20]
    outcome.rows = {"output": output[-4000:]}
    return outcome
