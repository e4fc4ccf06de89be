"""Records of mistakes of new users, and the runner that shows the report that a mistake gets."""

from __future__ import annotations

import contextlib
import linecache
import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

import hybridnet as mx
import numpy as np
from hybridnet._error_help import _tracebacks

PROGRAM = "program.py"
MOST_LINES = 11


@dataclass(frozen=True)
class Mistake:
    """A wrong program with the error (or warning) that it must get, and the same program as it should be.

    origin: the library whose habit it is: "torch", "keras", "mxnet" or "any". setup runs before wrong and before fixed.
    error: class of hybridnet.errors, "" if warns has the text of a warning instead. says: texts in the report.
    """

    title: str
    wrong: str
    fixed: str
    error: str = ""
    says: tuple[str, ...] | list[str] = ()
    warns: str = ""
    setup: str = "import hybridnet as mx"
    origin: str = "any"

    @property
    def program(self) -> str:
        """The text of program.py with the mistake."""
        return f"{self.setup}\n{self.wrong}\n"

    @property
    def lines_of_setup(self) -> int:
        return len(self.setup.splitlines())


@dataclass(frozen=True)
class Outcome:
    """Result of a program: its error with the printed report, and (line, text) of each warning in program.py."""

    error: BaseException | None
    report: str
    warnings: list[tuple[int, str]]


@contextlib.contextmanager
def _new_process() -> Iterator[None]:
    """An empty working directory, and the names, seeds and modes with which a process begins."""
    before = os.getcwd()
    mx.random.seed(0)
    np.random.seed(0)
    try:
        with tempfile.TemporaryDirectory() as folder, mx.name.NameManager():
            os.chdir(folder)
            yield
    finally:
        os.chdir(before)
        mx.util.reset_np()
        with contextlib.suppress(mx.MXNetError):
            mx.nd.waitall()  # an error that the program did not wait for


def _compiled(text: str) -> CodeType:
    linecache.cache[PROGRAM] = (len(text), None, text.splitlines(keepends=True), PROGRAM)
    return compile(text, PROGRAM, "exec")


def run(text: str) -> Outcome:
    """Runs a program in this process as if it were a new one."""
    error, report = None, ""
    with _new_process(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(_compiled(text), {"__name__": "__main__", "__file__": PROGRAM})
        except Exception as problem:
            error = problem.with_traceback(problem.__traceback__.tb_next)  # type: ignore[union-attr]  # without exec
            report = _tracebacks.report(error)
    shown = [(warning.lineno, str(warning.message)) for warning in caught if warning.filename == PROGRAM]
    return Outcome(error, report, shown)
