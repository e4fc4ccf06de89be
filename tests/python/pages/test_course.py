"""A person follows docs/course/, part 1 to 7, by copy and paste, in one folder that is empty at first.

The Python blocks of a part are one program, as on all pages (blocks.py). Here its ``sh`` blocks run as well, in bash,
and its ``cpp`` and ``java`` blocks become the files that their first lines name. A ``text`` block directly after any of
them shows all that it prints; output of ``sh`` blocks without one is not compared, but they must not fail. A block that
needs a package of OPTIONAL or a compiler that is not installed is left out, as a reader without it does: no later block
needs it. The pages for people who know PyTorch or Keras run in the same way.
``python tests/python/pages/test_course.py`` writes the printed texts into all of these pages.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from blocks import BORDER, ROOT, SHOWN, VARIES

DOCS = ROOT / "docs"
PARTS = sorted((DOCS / "course").glob("[0-9]*.md"))
FOR_NEWCOMERS = [DOCS / "from-pytorch.md", DOCS / "from-keras.md"]
STEP = re.compile(r"^```(python|sh|cpp|java)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONAL = {"matplotlib", "onnx", "pandas", "uvicorn"}
LEFT_OUT, EXIT_CODE = "-- left out: no ", "-- exit code "
JAVA_SOURCES = ROOT / "java" / "src" / "main" / "java"
NATIVE_JAVA = ROOT / "python" / "hybridnet" / "libhybridnet_jni.so"


@dataclass(frozen=True)
class Step:
    """A block that a reader runs or writes to a file, and the output that the page shows."""

    kind: str
    text: str
    end: int
    shown: str | None
    shown_span: tuple[int, int]

    @property
    def is_compared(self) -> bool:
        return self.kind != "sh" or self.shown is not None


def steps(page: str) -> Iterator[Step]:
    for found in STEP.finditer(page):
        shown = None if VARIES.match(page, found.end()) else SHOWN.match(page, found.end())
        span = shown.span(1) if shown else (found.end(), found.end())
        yield Step(found[1], found[2], found.end(), shown[1] if shown else None, span)


# --- the reader, in a process of its own ------------------------------------------------------------------------------
def run_python(number: int, text: str, program: dict[str, object], left_out: list[str]) -> None:
    """Runs a step. left_out: the packages for lack of which earlier steps were left out; a step may need theirs."""
    file = Path("program.py" if number == 1 else f"program{number}.py")
    file.write_text(text, encoding="utf-8")
    try:
        exec(compile(text, str(file), "exec"), program)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        left_out.append(error.name)
        print(f"{LEFT_OUT}{error.name}")
    except Exception as error:
        if left_out and isinstance(error, NameError):
            print(f"{LEFT_OUT}{left_out[0]}, so that no step made {error.name}")
            return
        print(f"{type(error).__name__}: {error}")


def missing_tool(text: str) -> str | None:
    """Returns the tool that a shell block needs and this machine lacks."""
    if re.search(r"^c\+\+ ", text, re.MULTILINE) and shutil.which("c++") is None:
        return "C++ compiler"
    if re.search(r"^java ", text, re.MULTILINE) and not os.environ.get("CLASSPATH"):
        return "JDK"
    if "hybridnet serve" in text and subprocess.run([sys.executable, "-c", "import uvicorn"], check=False).returncode:
        return "uvicorn"
    return None


def run_shell(text: str) -> None:
    if tool := missing_tool(text):
        print(f"{LEFT_OUT}{tool}")
        return
    command = ["bash", "-e", "-o", "pipefail", "-c", text]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
    print(done.stdout, end="")
    if done.returncode != 0:
        print(f"{EXIT_CODE}{done.returncode}")


def write_source(text: str) -> None:
    """Writes a program to the file that its first line names."""
    name = re.match(r"// ([\w.]+)\n", text)
    assert name is not None, f"the first line names no file:\n{text}"
    Path(name[1]).write_text(text, encoding="utf-8")


def follow(page: Path) -> None:
    """Takes the steps of a page in the current folder and prints a border after each."""
    warnings.showwarning = lambda message, category, file, line, *_: print(
        f"{file}:{line}: {category.__name__}: {message}"
    )
    program: dict[str, object] = {"__name__": "program"}
    count = 0
    left_out: list[str] = []
    for step in steps(page.read_text("utf-8")):
        if step.kind == "python":
            run_python(count := count + 1, step.text, program, left_out)
        elif step.kind == "sh":
            run_shell(step.text)
        else:
            write_source(step.text)
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # graphs print to the standard output of C
        print(BORDER, end="", flush=True)


# --- the machine of the reader ----------------------------------------------------------------------------------------
def make_commands(folder: Path) -> None:
    """Writes the commands ``python``, ``python3`` and ``hybridnet`` of an environment into a folder."""
    folder.mkdir()
    for name, words in (("python", ""), ("python3", ""), ("hybridnet", " -m hybridnet")):
        file = folder / name
        file.write_text(f'#!/bin/sh\nexec {sys.executable}{words} "$@"\n')
        file.chmod(file.stat().st_mode | stat.S_IEXEC)


def make_classes(folder: Path) -> str:
    """Compiles java/ into a folder and returns it; an empty text without a JDK, or without the native library."""
    if shutil.which("javac") is None or not NATIVE_JAVA.exists():
        return ""
    sources = [str(source) for source in sorted(JAVA_SOURCES.rglob("*.java"))]
    subprocess.run(["javac", "--release", "17", "-d", str(folder), *sources], check=True, timeout=200)
    return str(folder)


def environment_of(folder: Path) -> dict[str, str]:
    """Returns the variables of the shell of a reader who has installed everything, which is made in a folder."""
    make_commands(folder / "commands")
    return {
        **os.environ,
        "PATH": f"{folder / 'commands'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python"),
        "MPLBACKEND": "Agg",
        "CLASSPATH": make_classes(folder / "classes"),
    }


def printed(page: Path, folder: Path, environment: dict[str, str]) -> list[str]:
    """Returns the text that each step of a page prints."""
    done = subprocess.run(
        [sys.executable, "-u", __file__, "--follow", str(page)], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout.split(BORDER)[:-1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment_of(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("course")


# --- promises ---------------------------------------------------------------------------------------------------------
def check(page: Path, folder: Path, environment: dict[str, str]) -> None:
    taken = list(steps(page.read_text("utf-8")))
    for number, (step, text) in enumerate(zip(taken, printed(page, folder, environment), strict=True), 1):
        if text.startswith(LEFT_OUT):
            continue
        if step.is_compared:
            assert text == (step.shown or ""), f"step {number} of {page.name} prints\n{text}"
        else:
            assert EXIT_CODE not in text, f"step {number} of {page.name}:\n{step.text}{text}"


@pytest.mark.parametrize("page", PARTS, ids=lambda page: page.stem)
def test_a_person_follows_the_course_by_copy_and_paste(page: Path, folder: Path, environment: dict[str, str]) -> None:
    check(page, folder, environment)


@pytest.mark.parametrize("page", FOR_NEWCOMERS, ids=lambda page: page.stem)
def test_programs_of_a_page_for_newcomers_print_what_it_shows(
    page: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    check(page, tmp_path, environment)


def test_each_part_has_three_exercises_and_their_solutions() -> None:
    assert [page.name[:2] for page in PARTS] == [f"{number:02}" for number in range(1, 8)]
    for page in PARTS:
        exercises, solutions = page.read_text("utf-8").split("## Exercises")[1].split("## Solutions")
        assert re.findall(r"^(\d)\.", exercises, re.MULTILINE) == ["1", "2", "3"], page.name
        assert len(list(steps(solutions))) >= 3, page.name


def rows_of_names(page: str) -> list[tuple[str, str]]:
    """Returns the first two columns of the table rows whose first cell is code."""
    text = (DOCS / page).read_text("utf-8")
    return [(row[1], row[2]) for row in re.finditer(r"^\| (`[^|\n]*) \| ([^|\n]*) \|[^\n]*\|$", text, re.MULTILINE)]


@pytest.mark.parametrize(("page", "count"), [("from-pytorch.md", 80), ("from-keras.md", 50)])
def test_the_tables_of_names_are_long_and_name_what_exists(page: str, count: int) -> None:
    import hybridnet as mx
    from hybridnet.gluon import nn, rnn

    places = {"mx": mx, "nd": mx.nd, "gluon": mx.gluon, "autograd": mx.autograd, "nn": nn, "rnn": rnn}
    rows = rows_of_names(page)
    assert len(rows) >= count
    for theirs, ours in rows:
        for name in re.findall(rf"\b(?:{'|'.join(places)})\.[\w.]*\w", ours):
            place, *parts = name.split(".")
            found = places[place]
            for part in parts:
                assert hasattr(found, part), f"{page}: {theirs} | {ours}: there is no {name}"
                found = getattr(found, part)


def test_methods_of_arrays_in_the_table_exist() -> None:
    import hybridnet as mx

    methods = {name for _, ours in rows_of_names("from-pytorch.md") for name in re.findall(r"`x\.(\w+)", ours)}
    assert len(methods) > 15
    assert [name for name in sorted(methods) if not hasattr(mx.nd.NDArray, name)] == []


def write(pages: list[Path]) -> None:
    """Writes the printed texts into pages: all of the course in one folder, as a reader follows it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "course"
        folder.mkdir()
        environment = environment_of(Path(name))
        for page in pages:
            text = page.read_text("utf-8")
            outputs = printed(page, folder, environment)
            for step, output in reversed(list(zip(steps(text), outputs, strict=True))):
                start, end = step.shown_span
                if step.shown is not None:
                    text = text[:start] + output + text[end:]
                elif output and step.is_compared:
                    text = f"{text[: step.end]}\n\n```text\n{output}```{text[step.end :]}"
            page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--follow"]:
        follow(Path(sys.argv[2]))
    else:
        write([Path(name).resolve() for name in sys.argv[1:]] or [*PARTS, *FOR_NEWCOMERS])
