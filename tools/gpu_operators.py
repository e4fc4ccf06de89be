#!/usr/bin/env python3
"""Writes docs/gpu-operators.md, how near each operator on a GPU is to the CPU, and its counts in docs/gpu.md.

gpu_operators.py [FOLDER]   measures with the tests' driver and NVRTC (tests/python/device/ptx_sweep.py), some 15
                            minutes on two cores, unless FOLDER has the results of a run with --folder FOLDER
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, GUIDE = ROOT / "docs" / "gpu-operators.md", ROOT / "docs" / "gpu.md"
SWEEP = ROOT / "tests" / "python" / "device" / "ptx_sweep.py"
BEGIN, END = "<!-- classes of operators -->\n", "<!-- end of the classes -->"
SAME, NEAR, ROUNDING, LIBRARY, ON_CPU = "same bits", "few ulp", "rounding", "library", "CPU with copies"
CLASSES = {
    SAME: "the bits of the CPU",
    NEAR: "within 4 ulp: functions of CUDA's library in place of the C library's, short sums",
    ROUNDING: "sums and products: within the rounding of terms in another order",
    LIBRARY: "products, which cuBLASLt computes if it is there and they are large; figures of our kernel",
    ON_CPU: "the CPU runs them, their inputs and outputs are copied",
}
MOST_ULPS = 4
MAIN_DTYPES = ("float32", "float64")
TITLE = """# Operators on GPUs

Written by `tools/gpu_operators.py`; do not edit. How near the results of each public operator on `mx.gpu(0)` are to the
CPU's, over all samples of the registry, values and gradients. [gpu.md](gpu.md#numbers) says what is promised.

Kernels ran on the tests' driver, compiled by g++; NVRTC's PTX of the same kernels was translated to C++ and repeated
their launches. No hardware was used.

- `=`: the same bits; `2 ulp`: at most so many units in the last place; `3e-08`: the largest error relative to the
  largest value. Values come before the semicolon, gradients after it; without one there are none.
- CUDA's functions: NVIDIA's library computes part of it, such as `log` of float64, with other last bits than the C
  library.
- CPU in part: one of the operators that it is composed of runs on the CPU.

"""


@dataclass(frozen=True)
class Row:
    """One operator. cells: its figures in float32, float64 and in other dtypes."""

    name: str
    kind: str
    cells: tuple[str, str, str]
    remarks: str

    def text(self) -> str:
        return f"| `{self.name}` | {self.kind} | {' | '.join(self.cells)} | {self.remarks} |"


def main() -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else made)
        if not (folder / "texts.jsonl").exists():
            subprocess.run([sys.executable, str(SWEEP), "--folder", str(folder)], check=True)
        operators, texts = (_lines(folder / name) for name in ("operators.jsonl", "texts.jsonl"))
    rows = rows_of(operators, texts)
    PAGE.write_text(page(rows), "utf-8")
    before, _, rest = GUIDE.read_text("utf-8").partition(BEGIN)
    GUIDE.write_text(before + BEGIN + counts(rows) + END + rest.partition(END)[2], "utf-8")
    return 0


def _lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def rows_of(operators: list[dict], texts: list[dict]) -> list[Row]:
    """The rows of the page: results of ptx_sweep.py in words."""
    inexact = {each["text"] for each in texts if not is_exact(each)}
    return [_row(each, not inexact.isdisjoint(each["texts"])) for each in sorted(operators, key=lambda o: o["name"])]


def is_exact(compared: dict) -> bool:
    """True if NVRTC's PTX gave the bits of g++, and does not use an estimate; fmod corrects its estimate."""
    corrects = re.search(r"\bMod\b|values\.cuh", compared["text"])
    return not any(compared["values"].values()) and (bool(corrects) or not compared["estimates"])


def _row(operator: dict, has_functions: bool) -> Row:
    found = operator["differences"]
    others = [f"{dtype} {_cell(pair)}" for dtype, pair in found.items() if dtype not in MAIN_DTYPES]
    cells = (*(_cell(found[dtype]) if dtype in found else "" for dtype in MAIN_DTYPES), ", ".join(others))
    remarks = ["CUDA's functions"] if has_functions else []
    kind = _kind(operator, has_functions)
    if operator["fallbacks"] and kind != ON_CPU:
        remarks.append("CPU in part")
    return Row(operator["name"], kind, cells, ", ".join(remarks))


def _kind(operator: dict, has_functions: bool) -> str:
    if operator["runs"] == ON_CPU:
        return ON_CPU
    if operator["library"]:
        return LIBRARY
    figures = [each for pair in operator["differences"].values() for each in pair if each]
    if any(each["ulps"] > MOST_ULPS for each in figures):
        return ROUNDING
    return NEAR if has_functions or any(_differs(each) for each in figures) else SAME


def _differs(figure: dict) -> bool:
    return figure["kind"] != "exact" or bool(figure["note"])


def _cell(pair: list[dict | None]) -> str:
    return "; ".join(_figure(each) for each in pair if each)


def _figure(figure: dict) -> str:
    if figure["kind"] == "WRONG":
        raise ValueError(f"a difference that is none of rounding: {figure}")
    if not _differs(figure):
        return "="
    return f"{figure['ulps']} ulp" if 0 <= figure["ulps"] <= MOST_ULPS else f"{figure['relative']:.0e}"


def page(rows: list[Row]) -> str:
    head = "| operator | class | float32 | float64 | other dtypes | |\n|---|---|---|---|---|---|\n"
    return TITLE + counts(rows) + "\n" + head + "".join(row.text() + "\n" for row in rows)


def counts(rows: list[Row]) -> str:
    """The table of classes, with the number of operators in each."""
    numbers = Counter(row.kind for row in rows)
    lines = [f"| {kind} | {numbers[kind]} | {meaning} |" for kind, meaning in CLASSES.items()]
    return "\n".join(["| class | operators | |", "|---|---:|---|", *lines]) + "\n"


def read_rows() -> list[Row]:
    """The rows of the page as it is."""
    found = []
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("| `"):
            name, kind, *cells, remarks = (cell.strip() for cell in line.strip("|").split("|"))
            found.append(Row(name.strip("`"), kind, (cells[0], cells[1], cells[2]), remarks))
    return found


if __name__ == "__main__":
    sys.exit(main())
