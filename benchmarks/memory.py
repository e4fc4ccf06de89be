"""The memory of a process in inference compared with ONNX Runtime, and in training compared with PyTorch.

    python benchmarks/memory.py [--only PART,PART] [--isa WORD] [--folder FOLDER] [--checkout FOLDER] [--write]

Each side runs in a separate process; figures are MiB. Inference: the resident size after the first prediction of a
network loaded from files, relative to ONNX Runtime's, whose files are written by torch.onnx. The networks are loaded in
all ways that users have: Gluon with load_parameters, SymbolBlock.imports, the C ABI (from a bare interpreter, which has
no NumPy), and a network with initial values of its own. Training: the peak of the process after ten steps, relative to
PyTorch's.
--write keeps the rows in benchmarks/MEMORY.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from run import ISA_CAPS
from sections import Section, instruction_sets, keep, machine, peer_versions, stamp

HERE = Path(__file__).resolve().parent
INFERENCE = {"resnet50": "ResNet-50 b1", "mobilenet": "MobileNet b1", "bert": "BERT-base 1x128"}
TRAINING = {
    "resnet18_train": "ResNet-18 b8 training",
    "bert_train": "BERT-base 8x128 training",
    "lstm_train": "LSTM 2x256, 35x32, training",
}
# The peer comes first.
LABELS = {
    "onnxruntime": "ONNX Runtime", "imports": "SymbolBlock.imports", "gluon": "Gluon, load_parameters",
    "initialized": "Gluon, own values", "c": "C ABI", "torch": "PyTorch", "train": "Gluon, hybridized",
}  # fmt: skip
INFERENCE_SIDES, TRAINING_SIDES = ("onnxruntime", "imports", "gluon", "initialized", "c"), ("torch", "train")
INFERENCE_GOAL, TRAINING_GOAL = 1.1, 0.7
COLUMNS = ("work", "import", "load", "first", "its PSS", "tenth", "peak", "ratio", "goal", "met", "measured")
HEAD = """# Memory

Written by `python benchmarks/memory.py --write`, which says how it is measured. MiB of the resident size after each
phase. The ratio is that of the size after the first prediction, in training of the peak; the peer's row is first."""
Phases = dict[str, dict[str, float]]


def start(script: str, arguments: list[str], checkout: Path, isa: str) -> str:
    env = dict(os.environ, **ISA_CAPS[isa])
    env["PYTHONPATH"] = os.pathsep.join([str(checkout / "python"), str(HERE / "sides"), env.get("PYTHONPATH", "")])
    command = [sys.executable, str(HERE / "sides" / script), *arguments]
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(side: str, name: str, folder: Path, checkout: Path, isa: str) -> Phases:
    """Returns {phase: {"rss", "pss", "peak"}} in MiB."""
    lines = start("memory_side.py", [side, name, str(folder)], checkout, isa).splitlines()
    return {line["phase"]: line for line in map(json.loads, lines)}


def row_name(side: str, name: str) -> str:
    return f"{(INFERENCE | TRAINING)[name]}, {LABELS[side]}"


def row(side: str, name: str, found: Phases, peer: Phases | None, measured: str) -> str:
    """peer: the phases of the peer; None for the peer itself, and if it is not installed."""
    first, last = found["first"], found["tenth"]
    values = [found["import"]["rss"], found["load"]["rss"], first["rss"], first["pss"], last["rss"], last["peak"]]
    verdict = ["", "", ""]
    if peer is not None:
        trains = name in TRAINING
        ratio = last["peak"] / peer["tenth"]["peak"] if trains else first["rss"] / peer["first"]["rss"]
        goal = TRAINING_GOAL if trains else INFERENCE_GOAL
        verdict = [f"{ratio:.2f}", str(goal), "yes" if ratio <= goal else "NO"]
    cells = [row_name(side, name), *(f"{value:.0f}" for value in values), *verdict, measured]
    return f"| {' | '.join(cells)} |"


def write_files(name: str, folder: Path, checkout: Path) -> None:
    if not (folder / f"{name}.params").exists():
        start("memory_side.py", ["write", name, str(folder)], checkout, "best")
    if importlib.util.find_spec("torch") and not (folder / f"{name}.onnx").exists():
        start("export_onnx.py", [name, str(folder / f"{name}.onnx")], checkout, "best")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="networks whose name contains one of these (comma between)")
    parser.add_argument("--isa", choices=ISA_CAPS, default="best")
    parser.add_argument("--folder", type=Path, help="where the files are kept for the next run")
    parser.add_argument("--checkout", type=Path, default=HERE.parent, help="of HybridNet, built")
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/MEMORY.md")
    options = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|" + "---|" * len(COLUMNS))
    measured = stamp()
    names = [(side, name) for name in INFERENCE for side in INFERENCE_SIDES]
    names += [(side, name) for name in TRAINING for side in TRAINING_SIDES]
    order = tuple(row_name(side, name) for side, name in names)
    title = f"{machine()}: {instruction_sets(dict(os.environ, **ISA_CAPS[options.isa]))}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*INFERENCE, *TRAINING):
            if not any(part in name for part in options.only.split(",")):
                continue
            if name in INFERENCE:
                write_files(name, folder, options.checkout)
            peer = None
            for side in INFERENCE_SIDES if name in INFERENCE else TRAINING_SIDES:
                if side == "torch" and not importlib.util.find_spec("torch"):
                    continue
                if side == "onnxruntime" and not (folder / f"{name}.onnx").exists():
                    continue
                found = measure(side, name, folder, options.checkout, options.isa)
                line = row(side, name, found, peer, measured)
                print(line, flush=True)
                if options.write:
                    keep(HERE / "MEMORY.md", HEAD, Section(title, peer_versions(), COLUMNS, (line,), order))
                peer = found if side in ("torch", "onnxruntime") else peer


if __name__ == "__main__":
    main()
