"""The time in ONNX Runtime of networks that HybridNet exports beside the same networks that PyTorch exports.

    python benchmarks/onnx_export.py [--only PART,PART] [--threads 1,2] [--rounds 7] [--fixed] [--folder FOLDER]

Both export for any batch size; --fixed: for the batch size of the row. PyTorch has two exporters, "dynamo" (the newer
one) and "script". Each file runs in a separate process, which is started three times, and the files take turns; figures
are medians over the rounds, with the ratio of the least times in brackets. --folder keeps the files, and uses those
that are there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from onnx_files import FileSide, measured
from run import Program, unit

HERE = Path(__file__).resolve().parent
GOAL = 1.05
STARTS = 3  # processes for each file: the place of its memory changes times by some percent
EXPORTERS = ("dynamo", "script")
COLUMNS = ("network", "threads", "ours", "dynamo", "ratio", "script", "ratio", "met", "remark")
# The batch sizes of each network.
NETWORKS = {
    "mlp": (1, 32), "vgg": (1,), "resnet18": (1,), "resnet50": (1,), "mobilenet_v2": (1,), "densenet121": (1,),
    "unet": (1,), "bert": (1, 8), "lstm": (1, 8), "gru": (1, 8),
}  # fmt: skip


def write_files(names: list[str], size: str, folder: Path) -> None:
    for side, exporter in (("hybridnet", "ours"), ("torch", "script")):
        missing = [name for name in names if not (folder / f"{name}.{exporter}.onnx").exists()]
        if missing:
            env = dict(os.environ)
            env["PYTHONPATH"] = os.pathsep.join([str(HERE.parent / "python"), env.get("PYTHONPATH", "")])
            script = str(HERE / "sides" / f"export_pairs_{side}.py")
            command = [sys.executable, script, str(folder), size, *missing]
            done = subprocess.run(command, env=env, capture_output=True, text=True)
            if done.returncode:
                print(f"{side} wrote no files: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)


def write_inputs(name: str, batch: int, path: Path) -> None:
    shapes = {"mlp": (784,), "vgg": (3, 64, 64), "unet": (3, 128, 128), "lstm": (35, 256), "gru": (35, 256)}
    rng = np.random.default_rng(0)
    if name == "bert":
        np.savez(path, data=rng.integers(0, 30522, (batch, 128)))
    else:
        np.savez(path, data=rng.standard_normal((batch, *shapes.get(name, (3, 224, 224))), dtype="float32"))


def row(name: str, batch: int, threads: int, folder: Path, rounds: int) -> str:
    inputs = folder / f"{name}.{batch}.npz"
    write_inputs(name, batch, inputs)
    files = {exporter: folder / f"{name}.{exporter}.onnx" for exporter in ("ours", *EXPORTERS)}
    programs: dict[str, Program] = {}
    remarks = []
    for _ in range(STARTS):
        sides = {key: FileSide("onnxruntime", threads, file, inputs) for key, file in files.items() if file.exists()}
        found, remark = measured(sides, rounds)
        for key, program in found.items():
            if key in programs:
                program.times += programs[key].times
            programs[key] = program
        remarks += [remark] if remark else []
    cells, ratios = [f"{name} b{batch}", str(threads)], []
    ours = programs.get("ours")
    cells.append(unit(ours.median) if ours else "failed")
    for exporter in EXPORTERS:
        peer = programs.get(exporter)
        if peer and ours:
            ratios.append(ours.median / peer.median)
            cells += [unit(peer.median), f"{ratios[-1]:.2f} ({ours.least / peer.least:.2f})"]
        else:
            cells += ["-", ""]
    met = "" if not ratios else "yes" if max(ratios) <= GOAL else "NO"
    return f"| {' | '.join([*cells, met, max(remarks, default='')])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="networks whose name contains one of these (comma between)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (comma between)")
    parser.add_argument("--rounds", type=int, default=7, help="of each of three starts")
    parser.add_argument("--fixed", action="store_true", help="export for one batch size")
    parser.add_argument("--folder", type=Path, help="where the files are kept for the next run")
    args = parser.parse_args()
    names = [name for name in NETWORKS if any(part in name for part in args.only.split(","))]
    print(f"| {' | '.join(COLUMNS)} |\n|" + "---|" * len(COLUMNS))
    with tempfile.TemporaryDirectory() as scratch:
        for batch in sorted({batch for name in names for batch in NETWORKS[name]}):
            chosen = [name for name in names if batch in NETWORKS[name]]
            size = str(batch) if args.fixed else "open"
            folder = (args.folder or Path(scratch)) / size
            folder.mkdir(parents=True, exist_ok=True)
            write_files(chosen, size, folder)
            for name in chosen:
                for threads in map(int, args.threads.split(",")):
                    print(row(name, batch, threads, folder, args.rounds), flush=True)


if __name__ == "__main__":
    main()
