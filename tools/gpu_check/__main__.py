"""``python -m gpu_check``: the command, and the processes of its steps."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import re
import sys
import time
import traceback

from .outcome import Options, Outcome
from .runner import ROOT, Runner
from .steps import STEPS, find

DESCRIPTION = """Checks HybridNet on the GPU of this machine: card and driver, memory, order of streams, exits, sharing
with other libraries, training, speed, the samples of every operator against the CPU, compute-sanitizer. At most 9
minutes; a step that crashes or hangs loses only itself. Exits with 1 if something is wrong, and its lines say what."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="tools/dev gpu-check", description=DESCRIPTION)
    names = ", ".join(step.name for step in STEPS if step.listed)
    made.add_argument("--stand-in", action="store_true", help="on the tests' driver, without a GPU: small, no speed")
    made.add_argument("--only", default="", help=f"steps with commas between: {names}")
    made.add_argument("--operators", type=int, default=0, help="run the samples of only so many operators")
    made.add_argument("--report", type=pathlib.Path, help="JSON file for all results")
    made.add_argument("--commit-report", action="store_true", help="write benchmarks/gpu/DATE-CARD.json")
    made.add_argument("--step", help=argparse.SUPPRESS)
    made.add_argument("--answer", type=pathlib.Path, help=argparse.SUPPRESS)
    made.add_argument("--options", default="{}", help=argparse.SUPPRESS)
    return made


def main() -> int:
    command = parser()
    args = command.parse_args()
    if args.step:
        return run_step(args.step, Options(**json.loads(args.options)), args.answer)
    if args.commit_report and args.stand_in:
        command.error("--commit-report keeps results of GPUs, not of the stand-in")
    chosen = [name.strip() for name in args.only.split(",") if name.strip()]
    unknown = set(chosen) - {step.name for step in STEPS}
    if unknown:
        command.error(f"unknown steps: {', '.join(sorted(unknown))}")
    runner = Runner(Options(stand_in=args.stand_in, operators=args.operators))
    start = time.monotonic()
    good = runner.run(chosen)
    write_report(runner, args.report, args.commit_report)
    count = sum(len(result["wrong"]) for result in runner.results)
    verdict = "nothing is wrong" if good else f"{count} faults: see the lines above"
    print(f"gpu-check: {verdict} ({time.monotonic() - start:.0f} s)")
    return 0 if good else 1


def write_report(runner: Runner, path: pathlib.Path | None, commit: bool) -> None:
    report = runner.report()
    paths = [path] if path else []
    if commit:
        card = re.sub(r"[^a-z0-9]+", "-", str(report["machine"].get("card", "unknown")).lower()).strip("-")
        paths.append(ROOT / "benchmarks" / "gpu" / f"{report['date']}-{card}.json")
    for target in paths:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
        print(f"report: {target}")


def run_step(name: str, options: Options, answer: pathlib.Path) -> int:
    """Runs one step in this process."""
    try:
        outcome = find(name).function()(options)
    except Exception as error:
        traceback.print_exc()
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())
        outcome = Outcome(
            wrong=[f"{type(error).__name__} in {pathlib.Path(place.filename).name}:{place.lineno}: {text}"]
        )
    if options.stand_in:
        from .stand_in import reports

        outcome.wrong += reports()
    answer.write_text(json.dumps(dataclasses.asdict(outcome), default=str), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
