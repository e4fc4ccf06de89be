"""Greedy decoding and beam search with GPT-2-small beside ONNX Runtime, CTranslate2, OpenVINO: milliseconds a word.

    python benchmarks/decode.py [--only PART,PART] [--rounds 5]

The prompt has 16 words, 128 follow. Names of rows: the type of the weights, the batch, and the rows of the caches of
keys and values. "beams 4" is a beam search for one sequence, whose caches are reordered by the beams' parents after
each word; the words are those of the best beam. Every side has the same weights and a process of its own; the sides
take turns. The last column has the share of the words that each side chooses as the first one does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "sides"))

import numpy as np  # noqa: E402
from decode_net import CASES, TOKENS  # noqa: E402
from run import Side  # noqa: E402

SIDES = {"hybridnet loop": "", "hybridnet step": "step ", "onnxruntime": "", "ctranslate2": "", "openvino": ""}


def shares(case: str, names: list[str], folder: str) -> list[str]:
    def of(side: str) -> np.ndarray:
        return np.load(Path(folder) / f"{side} {case}.npy")

    ours = of(names[0])
    return [f"{(of(name) == ours).mean():.2f}" for name in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="float32", help="parts of the names of rows, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sides", default=",".join(SIDES))
    args = parser.parse_args()
    chosen = args.sides.split(",")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DECODE_WORDS"] = folder
        processes: dict[str, Side] = {}
        for side in chosen:
            program = side.split()[0]
            processes[program] = processes.get(program) or Side(f"decode_{program}")
        print("| row | " + " | ".join(chosen) + " | equal words |\n|" + "---|" * (len(chosen) + 2), flush=True)
        for case in CASES:
            if not any(part in case for part in args.only.split(",")):
                continue
            times: dict[str, list[float]] = {side: [] for side in chosen}
            failed: dict[str, str] = {}
            for turn in range(args.rounds + 1):  # the first one builds and warms up
                for side in chosen:
                    if side in failed:
                        continue
                    answer = processes[side.split()[0]].ask(case=SIDES[side] + case, repeat=1)
                    if "error" in answer:
                        failed[side] = answer["error"]
                    elif turn > 0:
                        times[side].append(answer["seconds"] / TOKENS * 1e3)
            for side, error in failed.items():
                print(f"{side}: {error}", file=sys.stderr)
            if len(failed) == len(chosen):
                continue
            worked = [side for side in chosen if side not in failed]
            figures = [
                f"{statistics.median(times[side]):.1f} ({min(times[side]):.1f})" if side in worked else "-"
                for side in chosen
            ]
            print(f"| {case} | " + " | ".join(figures) + f" | {' '.join(shares(case, worked, folder))} |", flush=True)
            for process in processes.values():
                process.ask(case="forget")
        for process in processes.values():
            process.close()


if __name__ == "__main__":
    main()
