"""The time of ONNX files in HybridNet, ONNX Runtime and OpenVINO.

    python benchmarks/onnx_files.py FOLDER|FILE... [--only PART,PART] [--threads 2] [--rounds 9] [--rows N]
                                    [--sizes 224,64,48,1] [--openvino PYTHON] [--limit SECONDS]

Each runtime runs in a separate process and the three take turns; figures are medians over the rounds. Inputs are random
(whole numbers: 0 and 1). --rows: the size of an open first axis; the other open axes get the first of --sizes with
which ONNX Runtime runs the file; files that it does not run, or runs longer than --limit for one call, are left out
with a message. OpenVINO computes in float32. --openvino: the interpreter of an environment that has it, if it is not in
this one; without it, that column is empty.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from run import Program, Side, take_turns, unit

HERE = Path(__file__).resolve().parent
RUNTIMES = ("hybridnet", "onnxruntime", "openvino")
LABELS = {"hybridnet": "HybridNet", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
DTYPES = {
    "float": "float32", "double": "float64", "float16": "float16", "bool": "bool",
    **{name: name for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")},
}  # fmt: skip


class FileSide(Side):
    """One runtime with one file in a separate process."""

    def __init__(self, runtime: str, threads: int, file: Path, inputs: Path, python: str = sys.executable) -> None:
        env = dict(os.environ, HYBRIDNET_NUM_THREADS=str(threads))
        env["PYTHONPATH"] = os.pathsep.join([str(HERE.parent / "python"), env.get("PYTHONPATH", "")])
        command = [python, str(HERE / "sides" / "onnx_file.py"), runtime, str(threads), str(file), str(inputs)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)


def measured(sides: dict[str, FileSide], rounds: int) -> tuple[dict[str, Program], str]:
    """The programs that ran, by the names of their sides, and a remark on other load."""
    programs = [Program(name, side, "run") for name, side in sides.items()]
    working, remark = take_turns(programs, rounds)
    for side in sides.values():
        side.close()
    return {program.label: program for program in working}, remark


def draw(shape: Sequence[int], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if dtype.startswith("float"):
        return rng.uniform(0, 1, shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def candidates(given: Sequence[tuple[str, Sequence[object], str]], rows: int, sizes: Sequence[int]) -> Iterator[dict]:
    """Inputs for all combinations of the sizes; axes of one name have one size."""
    names = list(
        dict.fromkeys(
            str(size or f"{name}/{axis}")
            for name, shape, _ in given
            for axis, size in enumerate(shape)
            if axis and not isinstance(size, int)
        )
    )
    for chosen in itertools.islice(itertools.product(sizes, repeat=len(names)), 64):
        known = dict(zip(names, chosen))
        yield {
            name: draw(
                [
                    size if isinstance(size, int) else known[str(size or f"{name}/{axis}")] if axis else rows
                    for axis, size in enumerate(shape)
                ],
                dtype,
            )
            for name, shape, dtype in given
        }


def write_inputs(file: Path, path: Path, rows: int, sizes: Sequence[int]) -> str:
    """Writes inputs with which ONNX Runtime runs the file; returns why there are none, or an empty string."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    given = [
        (x.name, x.shape, DTYPES.get(x.type.removeprefix("tensor(").rstrip(")"), "")) for x in session.get_inputs()
    ]
    if not all(dtype for *_, dtype in given):
        return f"inputs of the types {', '.join(x.type for x in session.get_inputs())}"
    reason = ""
    for inputs in candidates(given, rows, sizes):
        try:
            session.run(None, inputs)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            continue
        np.savez(path, **inputs)
        return ""
    return reason


def interpreter(given: str | None) -> str | None:
    """The interpreter that has OpenVINO."""
    python = given or sys.executable
    found = subprocess.run([python, "-c", "import openvino"], capture_output=True)
    if found.returncode:
        print(f"OpenVINO is not installed for {python}, its column stays empty", file=sys.stderr)
    return None if found.returncode else python


def row(name: str, programs: dict[str, Program], remark: str) -> str:
    cells = [name]
    ours = programs.get("hybridnet")
    for runtime in RUNTIMES:
        one = programs.get(runtime)
        cells.append(unit(one.median) if one else "-")
        if runtime != "hybridnet":
            cells.append(f"{ours.median / one.median:.2f} ({ours.least / one.least:.2f})" if one and ours else "")
    return f"| {' | '.join([*cells, remark])} |"


def mean_ratio(rows: Sequence[dict[str, Program]], runtimes: Sequence[str]) -> str:
    """The geometric mean of the ratios to the fastest of the runtimes, over the files that all of them run."""
    logs = [
        math.log(row["hybridnet"].median / min(row[runtime].median for runtime in runtimes))
        for row in rows
        if all(runtime in row for runtime in ("hybridnet", *runtimes))
    ]
    return f"{math.exp(sum(logs) / len(logs)):.3f} over {len(logs)} files" if logs else "no files"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="files, or folders with files *.onnx")
    parser.add_argument("--only", default="", help="files whose path contains one of these (comma between)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--sizes", default="224,64,48,1", help="tried for open axes (comma between)")
    parser.add_argument("--openvino", metavar="PYTHON", help="an interpreter that has OpenVINO")
    parser.add_argument("--limit", type=float, default=5, help="of one call, in seconds")
    args = parser.parse_args()
    files = [file for path in args.paths for file in (sorted(path.rglob("*.onnx")) if path.is_dir() else [path])]
    pythons = {"hybridnet": sys.executable, "onnxruntime": sys.executable, "openvino": interpreter(args.openvino)}
    columns = ("file", "HybridNet", "ONNX Runtime", "ratio", "OpenVINO", "ratio", "remark")
    print(f"| {' | '.join(columns)} |\n|" + "---|" * len(columns))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "inputs.npz"
        for file in files:
            if not any(part in str(file) for part in args.only.split(",")):
                continue
            reason = write_inputs(file, inputs, args.rows, [int(size) for size in args.sizes.split(",")])
            if reason:
                print(f"{file.name} is left out: {reason}", file=sys.stderr)
                continue
            sides = {
                runtime: FileSide(runtime, args.threads, file, inputs, python)
                for runtime, python in pythons.items()
                if python
            }
            reply = sides["onnxruntime"].ask(case="run", repeat=1)
            if reply.get("seconds", 0) > args.limit:
                print(f"{file.name} is left out: one call takes {json.dumps(reply)}", file=sys.stderr)
                for side in sides.values():
                    side.close()
                continue
            programs, remark = measured(sides, args.rounds)
            rows.append(programs)
            print(row(f"{file.parent.name}/{file.name}", programs, remark), flush=True)
    print(f"\nHybridNet / ONNX Runtime: {mean_ratio(rows, ['onnxruntime'])}")
    if pythons["openvino"]:
        print(f"HybridNet / OpenVINO: {mean_ratio(rows, ['openvino'])}")
        print(f"HybridNet / the faster one: {mean_ratio(rows, ['onnxruntime', 'openvino'])}")


if __name__ == "__main__":
    main()
