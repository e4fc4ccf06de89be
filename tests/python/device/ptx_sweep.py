"""Every kernel that the samples of the registry use, as NVRTC compiles it, against g++'s build of the same text.

All samples run on the tests' driver, which records each launch; NVRTC compiles the texts, their PTX is translated to
C++ (the package ptx), and repeats the launches. By hand, some 15 minutes on two cores:

  python tests/python/device/ptx_sweep.py [--architecture sm_80 ...] [--folder FOLDER] [OPERATOR ...]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

import hybridnet as mx
from kernel_texts import facts_in, family, merged
from ptx import KernelFault, PtxProgram, nvrtc
from recorded import Apart, Launch, launches_of, repeat
from stand_in import ENVIRONMENT

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
KERNELS_OF_A_MODULE = 6  # more share the headers of a module; the functions of many take g++ minutes
OPERATORS, TEXTS = "operators.jsonl", "texts.jsonl"  # a Measured, a Compared in each line


@dataclass
class Compared:
    """One text. differing: launches with other bits, values: and how many values in them, ulps: and how far apart they
    are. estimates: its PTX has instructions that estimate. spilled: bytes of registers. Most are by architecture."""

    text: str
    family: str
    launches: int = 0
    differing: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    ulps: dict[str, int] = field(default_factory=dict)
    spilled: dict[str, int] = field(default_factory=dict)
    estimates: bool = False
    faults: list[str] = field(default_factory=list)


def record(operators: Iterable[str], folder: Path) -> list[dict]:
    """Runs samples with the tests' driver, which writes their launches into a folder; returns what was measured."""
    program = (
        "import json, os, sys, operator_classes as c\n"
        "names = sys.argv[1:] or c.public_names()\n"
        "for one in c.measure_all(names, len(os.sched_getaffinity(0))): print(json.dumps(one), flush=True)"
    )
    own = {
        "HYBRIDNET_GPU_FALLBACK": "warn",
        "HNSTANDIN_RECORD": str(folder),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]),
    }
    done = subprocess.run(
        [sys.executable, "-c", program, *operators],
        env={**os.environ, **ENVIRONMENT, **own},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def recorded_launches(folder: Path) -> dict[str, list[Launch]]:
    """The launches of each text; equal ones once."""
    found: dict[str, dict[Launch, None]] = defaultdict(dict)
    for file in sorted(folder.glob("*.launches")):
        for launch in launches_of(file):
            found[launch.text].setdefault(launch)
    return {text: list(launches) for text, launches in found.items()}


def compare_module(texts: list[str], launches: list[list[Launch]], architectures: tuple[str, ...]) -> list[Compared]:
    """Compiles texts together for each architecture, and repeats their launches with each PTX that is another."""
    results = [Compared(text, family(text), len(own)) for text, own in zip(texts, launches, strict=True)]
    known: dict[str, list[list[Apart]]] = {}  # PTX: what differs in each launch of each text
    options = (*nvrtc.EXACT_OPTIONS, "--ptxas-options=-v")
    for architecture in architectures:
        compiled = nvrtc.compile(merged(texts), mx._core.kernel_headers(), architecture, options)
        for fact in facts_in(compiled, texts):
            result = results[texts.index(fact.text)]
            result.spilled[architecture] = max(result.spilled.get(architecture, 0), fact.spilled)
            result.estimates = result.estimates or fact.estimates
        ptx = re.sub(r"^(//.*|\.version.*|\.target.*)$", "", compiled.ptx, flags=re.MULTILINE)
        if ptx not in known:
            program = PtxProgram(compiled.ptx, allow_approximate=True)
            known[ptx] = [_repeat_all(results[i], launches[i], program, i) for i in range(len(texts))]
        for result, apart in zip(results, known[ptx], strict=True):
            result.differing[architecture] = sum(each.values > 0 for each in apart)
            result.values[architecture] = sum(each.values for each in apart)
            result.ulps[architecture] = max((each.ulps for each in apart), default=0)
    return results


def _repeat_all(result: Compared, launches: list[Launch], program: PtxProgram, number: int) -> list[Apart]:
    """The differences of each launch of a text; faults are noted."""
    found = []
    for launch in launches:
        try:
            found.append(repeat(launch, program, f"{launch.entry}_{number}"))
        except KernelFault as fault:
            result.faults.append(str(fault))
    return found


def compare_all(
    launches: dict[str, list[Launch]], architectures: tuple[str, ...] = ARCHITECTURES
) -> Iterator[Compared]:
    """Compares all texts, those of one family together."""
    families: dict[str, list[str]] = defaultdict(list)
    for text in sorted(launches):
        families[family(text)].append(text)
    modules = [
        members[first : first + KERNELS_OF_A_MODULE]
        for members in families.values()
        for first in range(0, len(members), KERNELS_OF_A_MODULE)
    ]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn")) as pool:
        waiting = [pool.submit(compare_module, part, [launches[t] for t in part], architectures) for part in modules]
        for one in waiting:
            yield from one.result()


def summary(results: list[Compared]) -> list[str]:
    """Lines of figures: in all, of texts that differ, and of families that spill."""
    launches = sum(each.launches for each in results)
    lines = [f"{len(results)} texts, {launches} launches, {sum(len(each.faults) for each in results)} faults"]
    for architecture in results[0].differing:
        texts = [each for each in results if each.differing[architecture]]
        values, most = (
            sum(each.values[architecture] for each in texts),
            max((each.ulps[architecture] for each in texts), default=0),
        )
        lines.append(f"{architecture}: {values} values of {len(texts)} texts differ, by at most {most} ulp")
        families = Counter(each.family for each in texts)
        lines.append("  families: " + ", ".join(f"{name} {count}" for name, count in sorted(families.items())))
        spilled: dict[str, int] = {}
        for each in results:
            spilled[each.family] = max(spilled.get(each.family, 0), each.spilled[architecture])
        lines.append(
            "  bytes spilled: " + ", ".join(f"{name} {count}" for name, count in sorted(spilled.items()) if count)
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--architecture", nargs="+", default=ARCHITECTURES)
    parser.add_argument("--folder", type=Path, help="for operators.jsonl, texts.jsonl and the launches; default: none")
    parser.add_argument("operators", nargs="*", help="default: all")
    args = parser.parse_args()
    if reason := nvrtc.available():
        sys.exit(reason)
    with tempfile.TemporaryDirectory(prefix="launches") as made:
        folder = args.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        measured = record(args.operators, folder)
        (folder / OPERATORS).write_text("".join(json.dumps(each) + "\n" for each in measured), "utf-8")
        results = []
        with (folder / TEXTS).open("w", encoding="utf-8", buffering=1) as texts:
            for each in compare_all(recorded_launches(folder), tuple(args.architecture)):
                results.append(each)
                texts.write(json.dumps(asdict(each)) + "\n")
    print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
