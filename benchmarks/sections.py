"""Files of results: one section per machine and instruction set, so that a run here keeps the rows of other machines.

A section is a heading, a line with the versions of the peers, and a table whose first column names the row. A run of
some rows replaces those rows; a run with other versions, whose figures are not comparable, replaces the section.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path

__all__ = ["Section", "instruction_sets", "keep", "machine", "merged", "peer_versions", "stamp"]

HERE = Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Section:
    """rows: lines of the table, each beginning with "| NAME |". order: the names of all possible rows."""

    title: str
    versions: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    order: tuple[str, ...]


def name_of(row: str) -> str:
    return row.split("|")[1].strip()


def _kept_rows(body: str, new: Section) -> dict[str, str]:
    """The rows of an earlier run that remain: none if its versions or columns differ."""
    paragraphs = [paragraph for paragraph in body.split("\n\n") if paragraph.strip()]
    if len(paragraphs) != 2 or paragraphs[0].strip() != new.versions:
        return {}
    header, _, *rows = paragraphs[1].strip().splitlines()
    return {name_of(row): row for row in rows} if header == _line(new.columns) else {}


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _rendered(new: Section, kept: dict[str, str]) -> str:
    rows = kept | {name_of(row): row for row in new.rows}
    lines = [_line(new.columns), "|" + "---|" * len(new.columns), *(rows[name] for name in new.order if name in rows)]
    return f"{new.versions}\n\n" + "\n".join(lines)


def merged(text: str, head: str, new: Section) -> str:
    """The file's text with the section inserted, or its rows replaced; head: the text before the first section."""
    bodies = {}
    for part in text.split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        bodies[title.strip()] = body.strip()
    bodies[new.title] = _rendered(new, _kept_rows(bodies.get(new.title, ""), new))
    return head.strip() + "\n" + "".join(f"\n## {title}\n\n{body}\n" for title, body in sorted(bodies.items()))


def keep(path: Path, head: str, new: Section) -> None:
    path.write_text(merged(path.read_text("utf-8") if path.exists() else "", head, new), encoding="utf-8")


def machine() -> str:
    """A description such as "AMD EPYC (family 25, model 1), 2 cores"."""
    fields = {}
    for line in reversed(Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()):
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    cores = len(os.sched_getaffinity(0))
    if "model name" not in fields:
        return f"{platform.processor() or platform.machine()}, {cores} cores"
    return f"{fields['model name']} (family {fields['cpu family']}, model {fields['model']}), {cores} cores"


def instruction_sets(env: dict[str, str]) -> str:
    """The instruction sets that HybridNet's kernels use, such as "avx2 (Highway AVX2, oneDNN AVX2)"."""
    code = "import hybridnet; print(hybridnet.runtime.isa())"
    paths = os.pathsep.join([str(HERE.parent / "python"), env.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env | {"PYTHONPATH": paths}, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def peer_versions() -> str:
    """The versions of all installed peers, even if they take no part, so that partial runs have the same versions."""
    peers = [name for name in ("torch", "jax", "onnxruntime", "openvino") if importlib.util.find_spec(name) is not None]
    versions = [f"{name} {importlib.metadata.version(name)}" for name in peers]
    return ", ".join([f"Python {platform.python_version()}", *versions])


def stamp() -> str:
    """The day and commit of a measurement; "-changed" if the library or the programs differ from the commit."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=HERE.parent, capture_output=True, text=True)
        return done.stdout.strip()

    measured = ("src", "include", "python", "CMakeLists.txt", "benchmarks/sides")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *measured)
    return f"{datetime.date.today()} {git('rev-parse', '--short', 'HEAD')}{'-changed' if changed else ''}".strip()
