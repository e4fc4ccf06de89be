#!/usr/bin/env python3
"""Writes the tables of rewrites in docs/graph-passes.md from the pipeline (src/passes/pipelines.cc).

The text between the two marks of the document is replaced. ``--check`` writes nothing and exits with 1 if the document
differs from the pipeline. Needs a built package; ``tools/dev gen`` calls it with the right path.
"""

from __future__ import annotations

import sys
from typing import Any

from generated_file import ROOT, check_requested, write_or_compare

sys.path.insert(0, str(ROOT / "python"))

from hybridnet import _core

TARGET = ROOT / "docs" / "graph-passes.md"
BEGIN = "<!-- written by tools/gen_pipeline.py from src/passes/pipelines.cc: begin -->\n"
END = "<!-- written by tools/gen_pipeline.py: end -->\n"
GRAPHS = {
    "forward": "The forward graph, before differentiation",
    "joint": "Forward and backward nodes in one graph, before it is cut in two",
    "parts": "The forward part and the backward part, each by itself",
}
VALUES = {"same": "same bits", "rounding": "rounding", "unsafe": "`fast_math`"}


def code(names: list[str]) -> str:
    """Names formatted as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def row_of(row: dict[str, Any], first_stage: str) -> str:
    """One rewrite as a row of a table; first_stage: the stage whose table describes it."""
    text = row["what"] if row["stage"] == first_stage else f"as in `{first_stage}`: {row['what']}"
    values = VALUES[row["values"]]
    return (
        f"| `{row['name']}` | {text} | {code(row['after'])} | {row['why']} | {values} | {code(sorted(row['tags']))} |"
    )


def generate() -> str:
    """The text between the marks."""
    rows = _core.pipeline_rows()
    first_stages: dict[str, str] = {}
    for row in rows:
        first_stages.setdefault(row["name"], row["stage"])
    lines = []
    graph = None
    for stage in _core.pipeline_stages():
        if stage["graph"] != graph:
            graph = stage["graph"]
            lines += [f"### {GRAPHS[graph]}", ""]
        way = "together, until none fires" if stage["equilibrium"] else "one after the other"
        lines += [f"**`{stage['name']}`**: {stage['what']}. Its rules run {way}.", ""]
        lines += [
            "| Rewrite | What it does | Stands behind | Because | Values | Tags |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [row_of(row, first_stages[row["name"]]) for row in rows if row["stage"] == stage["name"]]
        lines.append("")
    return "\n" + "\n".join(lines)


def main() -> int:
    """Writes or checks the document; returns the exit status."""
    check = check_requested(__doc__)
    present = TARGET.read_text(encoding="utf-8")
    before, _, rest = present.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or END not in rest:
        print(f"{TARGET.relative_to(ROOT)} lacks the marks around its tables:\n{BEGIN}{END}Fix: put them back.")
        return 1
    wanted = before + BEGIN + generate() + END + after
    return write_or_compare(TARGET, present, wanted, "pipeline", check)


if __name__ == "__main__":
    sys.exit(main())
