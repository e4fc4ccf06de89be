"""The time from a bare interpreter to the first prediction, by phases, compared with torch.compile and jax.jit.

    python benchmarks/cold_start.py [--only PART,PART] [--sides hybridnet,torch,jax] [--rounds 5] [--isa WORD] [--write]

Every figure comes from a separate process: first one with empty caches on disk, then a second one that finds the files
of the first (HYBRIDNET_CACHE, TORCHINDUCTOR_CACHE_DIR, JAX_COMPILATION_CACHE_DIR). Figures are medians over the rounds;
the peers' compilers take minutes and run once. "trace + compile" is all work between a network with its values and a
program that can run: for HybridNet trace, rewrite and link. Its first run is separate, since it also packs weights.
--write keeps the rows in benchmarks/COLD_START.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from run import ISA_CAPS, unit
from sections import Section, instruction_sets, keep, machine, peer_versions, stamp

HERE = Path(__file__).resolve().parent
NETWORKS = {"resnet50": "ResNet-50", "bert": "BERT-base, 1x128", "layers": "1,000 distinct layers"}
GOALS = {"resnet50": 0.15, "bert": 0.25, "layers": 1.0}  # seconds of trace + compile
SECOND_GOAL = 0.05  # seconds, for a second process
LABELS = {"hybridnet": "HybridNet", "torch": "torch.compile", "jax": "jax.jit"}
PHASES = ("import", "build", "trace", "rewrite", "link", "run")
COLUMNS = (
    "network",
    "trace + compile",
    "goal",
    "met",
    "second process",
    "goal of it",
    "met by it",
    *PHASES,
    "measured",
)
HEAD = """# Cold start

Written by `python benchmarks/cold_start.py --write`, which says how it is measured: every process is new. The phases
are those of the first process. The second process finds the caches on disk that the first has filled."""


def start(side: str, network: str, folder: Path, env: dict[str, str]) -> str:
    command = [sys.executable, str(HERE / "sides" / "cold_side.py"), side, network, str(folder)]
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(side: str, network: str, rounds: int, isa: str, folder: Path) -> list[dict[str, float]]:
    """Medians of each phase in seconds: of processes without a cache, and of processes with one."""
    found: list[list[dict[str, float]]] = [[], []]
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            env = dict(os.environ, **ISA_CAPS[isa])
            env["PYTHONPATH"] = os.pathsep.join([str(HERE.parent / "python"), env.get("PYTHONPATH", "")])
            env |= {"HYBRIDNET_CACHE": cache, "TORCHINDUCTOR_CACHE_DIR": cache, "JAX_COMPILATION_CACHE_DIR": cache}
            env |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
            if side == "hybridnet" and not (folder / f"{network}.params").exists():
                start("write", network, folder, env)
            for times in found:
                times.append(json.loads(start(side, network, folder, env)))
    return [{phase: statistics.median(one[phase] for one in times) for phase in times[0]} for times in found]


def name_of(side: str, network: str) -> str:
    return f"{NETWORKS[network]}, {LABELS[side]}"


def row(side: str, network: str, first: dict[str, float], second: dict[str, float], measured: str) -> str:
    cells = []
    for times, goal in ((first, GOALS[network]), (second, SECOND_GOAL)):
        taken = times["trace + compile"]
        ours = side == "hybridnet"
        cells += [unit(taken), unit(goal) if ours else "", ("yes" if taken <= goal else "NO") if ours else ""]
    cells += [unit(first[phase]) if phase in first else "" for phase in PHASES]
    return f"| {' | '.join([name_of(side, network), *cells, measured])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="networks whose name has one of these parts")
    parser.add_argument("--sides", default=",".join(LABELS))
    parser.add_argument("--rounds", type=int, default=5, help="of HybridNet's processes")
    parser.add_argument("--isa", choices=ISA_CAPS, default="best")
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/COLD_START.md")
    args = parser.parse_args()
    sides = [side for side in args.sides.split(",") if side == "hybridnet" or importlib.util.find_spec(side)]
    print(f"| {' | '.join(COLUMNS)} |\n|" + "---|" * len(COLUMNS))
    measured, order = stamp(), tuple(name_of(side, network) for network in NETWORKS for side in LABELS)
    title = f"{machine()}: {instruction_sets(dict(os.environ, **ISA_CAPS[args.isa]))}"
    with tempfile.TemporaryDirectory() as folder:
        for network in (name for name in NETWORKS if any(part in name for part in args.only.split(","))):
            for side in sides:
                rounds = args.rounds if side == "hybridnet" else 1
                first, second = measure(side, network, rounds, args.isa, Path(folder))
                line = row(side, network, first, second, measured)
                print(line, flush=True)
                if args.write:
                    keep(HERE / "COLD_START.md", HEAD, Section(title, peer_versions(), COLUMNS, (line,), order))


if __name__ == "__main__":
    main()
