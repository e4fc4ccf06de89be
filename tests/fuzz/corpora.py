"""Files that fuzzing starts from, made of the fixtures: ``corpora.py FOLDER`` writes FOLDER/TARGET/NAME."""

from __future__ import annotations

import pathlib
import sys

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
TEXTS = pathlib.Path(__file__).resolve().parents[1] / "cpp/graph"
LARGEST = 64 * 1024  # larger files teach nothing more and are slow to change


def write(folder: pathlib.Path, target: str, name: str, content: bytes) -> None:
    if len(content) > LARGEST:
        return
    (folder / target).mkdir(parents=True, exist_ok=True)
    (folder / target / name).write_bytes(content)


def main(folder: pathlib.Path) -> None:
    for case in sorted(path for path in FIXTURES.iterdir() if path.is_dir()):
        params = sorted(case.glob("*.params"))
        for file in params:
            write(folder, "params", file.name, file.read_bytes())
        for graph in sorted(case.glob("*-symbol.json")):
            write(folder, "model", graph.name, graph.read_bytes())
            if params:
                write(folder, "model", f"{graph.name}+params", graph.read_bytes() + b"\0" + params[0].read_bytes())
    for target, content in (("operator", bytes(range(256))), ("c_api", bytes(range(256)) * 4)):
        write(folder, target, "bytes", content)
    write(folder, "notation", "graph", NOTATION.encode())


NOTATION = """graph
%x = input : float32(2, 3)
%w = input : float32(4, 3)
%y = FullyConnected(%x, %w, num_hidden=4, no_bias=True) : float32(2, 4)
%z = relu(%y)
output %z
"""

if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
