"""Errors of the conversion, with their codes HN100 to HN109. docs/errors/ has one page per code."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .._tracing import is_own_file
from ..errors import TraceError

__all__ = ["CODES", "ConversionError", "Place", "errors_of_program", "line_of_program", "refusal"]

CODES = {
    "HN100": "Python asks for a value of a traced array in code that was not converted",
    "HN101": "a name has a value after only one branch",
    "HN102": "a name that a loop carries has no value before the loop",
    "HN103": "a name has another type on another path",
    "HN104": "a list that a loop fills is used in another way",
    "HN105": "a function returns other types on other paths",
    "HN106": "an attribute is assigned inside a branch or loop of the graph",
    "HN107": "a container changes its structure inside a branch or loop of the graph",
    "HN108": "a construct is not supported inside a branch or loop of the graph",
    "HN109": "arrays share memory on only one path, and one of them is written to",
}


class ConversionError(TraceError):
    """Control flow of a program cannot become part of a graph. ``code`` is one of HN100 to HN109."""


class Place(NamedTuple):
    """A construct of the program: file, line, column from 0, and its kind ("if", "for")."""

    file: str
    line: int
    column: int
    construct: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def shown(self) -> str:
        """Returns the source line with a caret below its construct; "" if the file cannot be read."""
        text = linecache.getline(self.file, self.line).rstrip()
        stripped = text.lstrip()
        if not stripped:
            return ""
        column = max(self.column - (len(text) - len(stripped)), 0)
        return f"\n    {self.line:5} | {stripped}\n          | {' ' * column}^"


@contextmanager
def errors_of_program(place: Place) -> Iterator[None]:
    """Turns other errors that a branch or body raises while it is traced into HN108: it may never run."""
    try:
        yield
    except (TraceError, RecursionError):
        raise
    except Exception as error:
        where = getattr(error, "where", None) or line_of_program(error) or str(place)
        text = next(iter(str(error).splitlines()), "")
        file, _, line = where.rpartition(":")
        places = [Place(file, int(line), 0, ""), place] if line.isdigit() else [place]
        raise refusal(
            "HN108",
            f"{type(error).__name__} while a branch or loop is traced: {text}",
            *places,
            because="it becomes part of the graph, so it is traced whether it runs or not",
            fix="mend the error, or make the condition a value of Python",
        ) from error


def line_of_program(error: BaseException) -> str:
    """Returns the innermost line of the program in the traceback of an error."""
    found, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_own_file(code.co_filename) and not code.co_filename.startswith("<string>"):
            found = f"{code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def refusal(code: str, message: str, *places: Place, because: str = "", fix: str = "") -> ConversionError:
    """Returns the error of a code. places: the lines to show; the first one is the line of the error."""
    error = ConversionError(
        f"[{code}] {message}",
        because=because,
        fix=f"{fix} (docs/errors/{code}.md)" if fix else f"see docs/errors/{code}.md",
        where=str(places[0]) if places else None,
    )
    error.code = code
    first, *rest = str(error.args[0]).split("\n", 1)
    shown = "".join(dict.fromkeys(place.shown() for place in places))
    error.args = ("\n".join([first + shown, *rest]),)
    return error
