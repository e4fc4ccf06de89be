"""Initial files for fuzzing, made from the fixtures: ``corpora.py FOLDER`` writes FOLDER/TARGET/NAME."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
TEXTS = pathlib.Path(__file__).resolve().parents[1] / "cpp/graph"
LARGEST = 64 * 1024  # larger files find nothing more and are slow to mutate


def write(folder: pathlib.Path, target: str, name: str, content: bytes) -> None:
    if len(content) > LARGEST:
        return
    (folder / target).mkdir(parents=True, exist_ok=True)
    (folder / target / name).write_bytes(content)


def main(folder: pathlib.Path) -> None:
    for case in sorted(path for path in FIXTURES.iterdir() if path.is_dir()):
        params = sorted(case.glob("*.params"))
        for file in case.glob("*.states"):
            write(folder, "states", f"{case.name}-{file.name}", file.read_bytes())
        for text in case.glob("graph.txt"):
            write(folder, "notation", case.name, text.read_bytes())
        for file in params:
            write(folder, "params", file.name, file.read_bytes())
        for graph in sorted(case.glob("*-symbol.json")):
            write(folder, "model", graph.name, graph.read_bytes())
            if params:
                write(folder, "model", f"{graph.name}+params", graph.read_bytes() + b"\0" + params[0].read_bytes())
    for target, content in (("operator", bytes(range(256))), ("c_api", bytes(range(256)) * 4)):
        write(folder, target, "bytes", content)
    write(folder, "notation", "graph", NOTATION.encode())
    for name, content in states().items():
        write(folder, "states", name, content)


def states() -> dict[str, bytes]:
    """State files of optimizers with different kinds of states, for the parameters of states_target.cc."""
    shapes = {"bias": [4], "table": [3, 2], "thin": [2, 2]}
    schedule = {"base_lr": 0.1, "warmup_steps": 1, "warmup_begin_lr": 0.0, "warmup_mode": "linear"}
    schedule["warmup_final_lr"] = 0.1
    factor = {**schedule, "step": 3, "factor": 0.5, "stop_factor_lr": 1e-8, "count": 0}
    several = {**schedule, "step": [2, 5], "factor": 0.5, "count": 2, "cur_step_ind": 1}
    decay = {**schedule, "max_update": 9, "final_lr": 0.0, "base_lr_orig": 0.1, "max_steps": 8}
    kinds: dict[str, tuple[str, int, dict[str, Any], Any]] = {
        "momentum": ("SGD", 1, {"momentum": 0.9}, ("FactorScheduler", factor)),
        "master": ("SGD", 1, {"momentum": 0.5, "multi_precision": True}, ("MultiFactorScheduler", several)),
        "adam": ("Adam", 2, {"beta1": 0.9}, ("CosineScheduler", decay)),
        "nadam": ("Nadam", 2, {"m_schedule": 0.9}, ("PolyScheduler", {**decay, "power": 2})),
        "centered": ("RMSProp", 3, {"centered": True}, None),
    }
    return {name: state_file(shapes, *kind) for name, kind in kinds.items()}


def state_file(
    shapes: dict[str, list[int]], optimizer: str, per_weight: int, settings: dict[str, Any], schedule: Any
) -> bytes:
    values = 0

    def array(shape: list[int], dtype: str) -> dict[str, Any]:
        nonlocal values
        values += int(dtype[5:]) // 8 * (shape[0] * shape[1] if len(shape) > 1 else shape[0])
        return {"shape": shape, "dtype": dtype}

    described: list[Any] = []
    for index, (name, shape) in enumerate(shapes.items()):
        is_master = name == "thin" and bool(settings.get("multi_precision"))
        dtype = "float16" if name == "thin" and not is_master else "float32"
        own = [array(shape, dtype) for _ in range(per_weight)]
        state = own[0] if per_weight == 1 else {"tuple": own}
        described.append([index, {"tuple": [state, array(shape, dtype)]} if is_master else state])
    counts = {"pairs": [[0, {"pairs": [[index, 4] for index in range(len(shapes))]}]]}
    header = {
        "states": described,
        "parameters": [[index, name] for index, name in enumerate(shapes)],
        "optimizer": {
            "class": optimizer,
            "settings": {"lr": 0.1, "wd": 0.01, **settings, "num_update": 4, "_all_index_update_counts": counts},
            "scheduler": schedule and {"class": schedule[0], "settings": schedule[1]},
        },
    }
    text = json.dumps(header).encode()
    return b"HNSTATE1" + len(text).to_bytes(8, "little") + text + bytes(values)


NOTATION = """graph
%x = input : float32(2, 3)
%w = input : float32(4, 3)
%y = FullyConnected(%x, %w, num_hidden=4, no_bias=True) : float32(2, 4)
%z = relu(%y)
output %z
"""

if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
