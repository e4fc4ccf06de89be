"""Memory of inference beside ONNX Runtime: what a process holds that loads a network from files and predicts.

    python benchmarks/memory.py [--only SUBSTRING] [--isa WORD] [--folder FOLDER] [--checkout FOLDER]

Each side runs in a process of its own. Resident and proportional size are read after the import, after loading, after
the first prediction and after ten, and the peak at the end. The ways to load are those that users have: Gluon with
load_parameters, SymbolBlock.imports, the C ABI (from a bare interpreter, which has no NumPy), and a network with
initial values of its own. The peer's figure is the ratio's denominator: resident size after the first prediction.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("resnet50", "mobilenet", "bert")
SIDES = ("onnxruntime", "imports", "gluon", "initialized", "c")
PHASES = ("import", "load", "first", "tenth")


def measure(side: str, name: str, prefix: Path, checkout: Path, isa: str) -> dict[str, dict[str, float]]:
    """{phase: {"rss", "pss", "peak"}} in MiB."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(checkout / "python"), str(HERE / "sides")]))
    if isa:
        env["HYBRIDNET_MAX_ISA"] = isa
    command = [sys.executable, str(HERE / "sides" / "memory_side.py"), side, name, str(prefix)]
    run = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return {line["phase"]: line for line in map(json.loads, run.stdout.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--isa", default="", help="HYBRIDNET_MAX_ISA")
    parser.add_argument("--folder", help="where the files are kept for the next run")
    parser.add_argument("--checkout", type=Path, default=HERE.parent, help="of HybridNet, built")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.folder or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        print(
            f"{'network':10} {'side':12}"
            + "".join(f" {title:>8}" for title in ("import", "load", "first", "PSS", "tenth", "peak"))
            + "  ratio"
        )
        for name in (name for name in NAMES if options.only in name):
            prefix = folder / name
            if not Path(f"{prefix}.onnx").exists():
                measure("write", name, prefix, options.checkout, "")
            peer = 0.0
            for side in options.sides.split(","):
                found = measure(side, name, prefix, options.checkout, options.isa)
                first = found["first"]["rss"]
                peer = first if side == "onnxruntime" else peer
                columns = [found["import"]["rss"], found["load"]["rss"], first, found["first"]["pss"],
                           found["tenth"]["rss"], found["tenth"]["peak"]]  # fmt: skip
                text = " ".join(f"{value:8.0f}" for value in columns)
                print(f"{name:10} {side:12} {text}  {first / peer:.2f}" if peer else f"{name:10} {side:12} {text}")


if __name__ == "__main__":
    main()
