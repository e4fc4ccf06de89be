#!/usr/bin/env python3
"""Writes the measured rows of README.md from benchmarks/RESULTS.md, so that no number is typed by hand.

  readme_rows.py           writes the section of README.md between the two marks
  readme_rows.py --check   exit code 1 and a difference if the section is not current

The rows come from the latest section of RESULTS.md that has all of ROWS and whose peers ran with the same instruction
set. Of several modes of a library the fastest counts. The last sentence counts all rows of all such sections.
"""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
BEGIN = "<!-- written by tools/readme_rows.py from benchmarks/RESULTS.md -->\n"
END = "<!-- end of the rows -->"
ROWS = {  # name in RESULTS.md: name in README.md
    "x+1, 4x4": "`x + 1`, 4 x 4 numbers",
    "MLP 784-512-512-10 training step, batch 128": "MLP 784-512-512-10, training step, batch 128",
    "ResNet-50 inference, batch 1": "ResNet-50, prediction",
    "BERT-base inference, 1x128 tokens": "BERT-base, prediction of 128 tokens",
    "LSTM 2x256 by foreach over cells, batch 32, length 35, forward and backward": (
        "LSTM as a loop over cells, forward and backward"
    ),
    "while_loop of 1,000 tiny iterations": "`while` with 1,000 small iterations",
}
PEERS = {"PyTorch": ("PyTorch", "torch.compile"), "JAX": ("jax",), "ONNX Runtime": ("ONNX Runtime",)}
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
MEASURED = re.compile(r"^(?P<name>.*?) ?(?P<time>[\d.]+ (?:ns|us|ms|s)) \([^)]*\)(?:: .*)?$")


class ResultsError(Exception):
    """RESULTS.md has no section from which the rows can be taken."""


@dataclass(frozen=True)
class Row:
    """One benchmark: times as text, HybridNet's and those of the peers by name, ratio to the best peer, day."""

    own: str
    peers: dict[str, str]
    ratio: float
    day: str


def seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * UNITS[unit]


def side(cell: str) -> tuple[str, str]:
    """Splits "PyTorch 4.5 us (4.1 us): 0.3" into the name and the median; the name may be empty."""
    found = MEASURED.match(cell.strip())
    if found is None:
        raise ResultsError(f"RESULTS.md: {cell!r} is no measured time")
    return found["name"], found["time"]


def read_row(line: str) -> tuple[str, Row]:
    name, own, best, ratio, _, _, others, measured = (cell.strip() for cell in line.strip().strip("|").split("|"))
    peers = dict([side(best)])
    for other in filter(None, others.split("; ")):
        peer, time = side(other)
        if any(peer.startswith(word) for words in PEERS.values() for word in words):
            peers[peer] = time
    return name, Row(side(own)[1], peers, float(ratio.split()[0]), measured.split()[0])


def sections(results: str) -> list[tuple[str, str, dict[str, Row]]]:
    """Title, versions and rows of each section with current columns, and peers on the same instruction set."""
    found = []
    for section in results.split("\n## ")[1:]:
        title, versions, table = (part.strip() for part in section.split("\n\n")[:3])
        lines = table.splitlines()
        if "best peer" in lines[0] and "(not capped)" not in table:
            found.append((title, versions, dict(map(read_row, lines[2:]))))
    return found


def fastest(row: Row, words: tuple[str, ...]) -> str:
    """The time of the fastest mode of a library; an empty text if it was not measured."""
    times = [time for name, time in row.peers.items() if name.startswith(words)]
    return min(times, key=seconds, default="")


def table(rows: dict[str, Row]) -> list[str]:
    lines = [f"| work | HybridNet | {' | '.join(PEERS)} | time / best peer |", "|---|---|" + "---|" * (len(PEERS) + 1)]
    for name, title in ROWS.items():
        row = rows[name]
        cells = [title, f"**{row.own}**", *(fastest(row, words) for words in PEERS.values()), f"{row.ratio:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def rendered(results: str) -> str:
    """The section of README.md without its marks. Raises ResultsError if no section of RESULTS.md has all rows."""
    found = sections(results)
    complete = [section for section in found if set(ROWS) <= set(section[2])]
    if not complete:
        raise ResultsError("RESULTS.md: no section has all rows of tools/readme_rows.py; run `tools/dev bench --write`")
    title, versions, rows = max(reversed(complete), key=lambda section: max(row.day for row in section[2].values()))
    ratios = [row.ratio for _, _, part in found for row in part.values()]
    ahead = sum(ratio <= 1 for ratio in ratios)
    lines = [
        *table(rows),
        "",
        f"Medians on {title.split(':')[0]}; {versions}.",
        "The last column is below 1 where HybridNet is faster. Of each library the fastest",
        "mode counts, `torch.compile` and `jax.jit` included.",
        f"On {len(found)} machines HybridNet is at or ahead of the best peer in {ahead} of {len(ratios)} rows:",
        "[benchmarks/RESULTS.md](benchmarks/RESULTS.md) has all of them.",
    ]
    return "\n".join(lines) + "\n"


def with_rows(readme: str, results: str) -> str:
    """README.md with current rows. Raises ResultsError without the marks."""
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ResultsError(f"README.md: expected the marks {BEGIN.strip()!r} and {END!r}")
    return head + begin + rendered(results) + end + tail


def main(arguments: list[str]) -> int:
    before = README.read_text(encoding="utf-8")
    try:
        after = with_rows(before, RESULTS.read_text(encoding="utf-8"))
    except ResultsError as error:
        print(f"readme_rows.py: {error}", file=sys.stderr)
        return 1
    if arguments == ["--check"]:
        difference = difflib.unified_diff(before.splitlines(), after.splitlines(), "README.md", "current", lineterm="")
        print("\n".join(difference), end="")
        return int(before != after)
    README.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
