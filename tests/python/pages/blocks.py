"""Python blocks of Markdown pages: finds them, runs them, and writes their output into the pages.

The Python blocks of a page are one program; each block is a file of its own, program.py, program2.py and so on, so that
messages have its lines. A text block that follows a Python block with nothing but blank lines between shows all that
the block prints: values, warnings, and the error that ends it. A block without it may print, but must not fail.

Comments in a page change this:

- ``<!-- not run: REASON -->`` directly in front of a Python block: the block is no part of the program.
- ``<!-- output varies -->`` directly after a Python block: the text below it is an example and is not compared.
- ``<!-- needs: onnx, matplotlib -->``: the page is skipped if a package is not installed.
- ``<!-- slow: REASON -->``: the test of the page has the mark slow.

``python tests/python/pages/blocks.py PAGE...`` writes the printed texts into the pages. A block that prints gets a text
block if it has none and the page has others.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PYTHON = re.compile(r"^```python\b[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"\n\s*```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: [^>]*-->\s*\Z")
VARIES = re.compile(r"\s*<!-- output varies -->")
NEEDS = re.compile(r"^<!-- needs: ([^>]*?) *-->$", re.MULTILINE)
SLOW = re.compile(r"^<!-- slow: [^>]*-->$", re.MULTILINE)
BORDER = "-- end of a block --\n"
FAILED = "-- the block failed --\n"


@dataclass(frozen=True)
class Block:
    """A block of a page: its code, the place behind it, and the place and text of the output that the page shows."""

    code: str
    end: int
    shown: str | None
    shown_span: tuple[int, int]
    varies: bool


def blocks(page: str) -> Iterator[Block]:
    """Yields the Python blocks of a page that run."""
    for found in PYTHON.finditer(page):
        if NOT_RUN.search(page, 0, found.start()):
            continue
        text = SHOWN.match(page, found.end())
        yield Block(
            code=found[1],
            end=found.end(),
            shown=text[1] if text else None,
            shown_span=text.span(1) if text else (found.end(), found.end()),
            varies=VARIES.match(page, found.end()) is not None,
        )


def needs(page: str) -> list[str]:
    """Names of the packages that a page needs."""
    return [name.strip() for line in NEEDS.findall(page) for name in line.split(",")]


def run_blocks(page: Path) -> None:
    """Runs the blocks in the current folder and prints a border after each; runs in a process of its own."""
    warnings.showwarning = lambda message, category, file, line, *_: print(
        f"{file}:{line}: {category.__name__}: {message}"
    )
    program: dict[str, object] = {"__name__": "program"}
    for number, block in enumerate(blocks(page.read_text("utf-8")), 1):
        file = Path("program.py" if number == 1 else f"program{number}.py")
        file.write_text(block.code, encoding="utf-8")
        failed = False
        try:
            exec(compile(block.code, str(file), "exec"), program)
        except Exception as error:
            failed = True
            print(f"{type(error).__name__}: {error}")
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # graphs print to the standard output of C
        print(FAILED if failed else "", end="")
        print(BORDER, end="", flush=True)


def printed(page: Path, folder: Path) -> list[tuple[str, bool]]:
    """Returns the text that each block of a page prints, and whether an error ended it."""
    paths = os.pathsep.join([str(ROOT / "python"), str(ROOT / "examples")])
    done = subprocess.run(
        [sys.executable, "-u", __file__, "--run", str(page)], cwd=folder,
        env=dict(os.environ, PYTHONPATH=paths, MPLBACKEND="Agg"),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return [(text.removesuffix(FAILED), text.endswith(FAILED)) for text in done.stdout.split(BORDER)[:-1]]


def write(page: Path) -> None:
    """Writes the printed texts into a page."""
    text = page.read_text("utf-8")
    found = list(blocks(text))
    shows = any(block.shown is not None for block in found)
    with tempfile.TemporaryDirectory() as folder:
        outputs = printed(page, Path(folder))
    for block, (output, failed) in reversed(list(zip(found, outputs, strict=True))):
        start, end = block.shown_span
        if block.shown is not None:
            text = text[:start] + output + text[end:]
        elif output and (shows or failed) and not block.varies:
            text = f"{text[: block.end]}\n\n```text\n{output}```{text[block.end :]}"
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_blocks(Path(sys.argv[2]))
    else:
        for name in sys.argv[1:]:
            write(Path(name).resolve())
