"""Programs of docs/python-control-flow.md and docs/errors/ run, and print the text that the pages show.

The Python blocks of a page are one program; each block is a file of its own, program.py, program2.py and so on, so that
messages have its lines. The text block after a block shows all that it prints: values, warnings, and the error that
ends it. ``python tests/python/autograph/test_docs.py`` writes the printed texts into the pages.
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
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ERRORS = ROOT / "docs" / "errors"
PAGES = [ROOT / "docs" / "python-control-flow.md", *sorted(ERRORS.glob("*.md"))]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BORDER = "-- end of a block --\n"


def blocks(page: str) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    """Yields each Python block of a page with the text block after it, None if there is none."""
    found = list(BLOCK.finditer(page))
    for block, following in zip(found, [*found[1:], None]):
        if block[1] == "python":
            yield block, following if following is not None and following[1] == "text" else None


def run_blocks(page: Path) -> None:
    """Runs the blocks in the current folder and prints a border after each; runs in a process of its own."""
    warnings.showwarning = lambda message, category, file, line, *_: print(
        f"{file}:{line}: {category.__name__}: {message}"
    )
    program: dict[str, object] = {"__name__": "program"}
    for number, (block, _) in enumerate(blocks(page.read_text("utf-8")), 1):
        file = Path("program.py" if number == 1 else f"program{number}.py")
        file.write_text(block[2], encoding="utf-8")
        try:
            exec(compile(block[2], str(file), "exec"), program)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # graphs print to the standard output of C
        print(BORDER, end="", flush=True)


def printed(page: Path, folder: Path) -> list[str]:
    """Returns the text that each block of a page prints."""
    done = subprocess.run(
        [sys.executable, "-u", __file__, str(page)], cwd=folder, env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout.split(BORDER)[:-1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_of_a_page_print_the_text_that_it_shows(page: Path, tmp_path: Path) -> None:
    shown = [text[2] if text else "" for _, text in blocks(page.read_text("utf-8"))]
    assert shown
    found = printed(page, tmp_path)
    for number, (text, wanted) in enumerate(zip(found, shown, strict=True), 1):
        assert text == wanted, f"block {number} of {page.name} prints\n{text}"


def test_each_code_has_a_page_with_its_error_and_a_program_without() -> None:
    from hybridnet.autograph import CODES

    assert [page.stem for page in PAGES[1:]] == sorted(CODES)
    for page in PAGES[1:]:
        text = page.read_text("utf-8")
        assert text.startswith(f"# {page.stem}: {CODES[page.stem]}\n")
        shown = [following[2] if following else "" for _, following in blocks(text)]
        assert f"[{page.stem}]" in shown[0] and "Error: [" not in shown[-1], page.stem


def test_the_page_links_all_codes() -> None:
    text = PAGES[0].read_text("utf-8")
    assert all(f"(errors/{page.name})" in text for page in PAGES[1:])


def write() -> None:
    """Writes the printed texts into the pages."""
    for page in PAGES:
        text = page.read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder:
            found = printed(page, Path(folder))
        for (block, following), shown in reversed(list(zip(blocks(text), found, strict=True))):
            if following is not None:
                text = text[: following.start(2)] + shown + text[following.end(2) :]
            elif shown:
                text = f"{text[: block.end()]}\n\n```text\n{shown}```{text[block.end() :]}"
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_blocks(Path(sys.argv[1]))
    else:
        write()
