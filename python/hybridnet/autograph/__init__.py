"""Plain Python if, for and while in hybridized blocks: they become branches and loops of the graph.

``hybridize()`` converts forward when it meets a decision or loop that depends on a traced array. The functions here
inspect and control that; docs/python-control-flow.md describes it.
"""

from __future__ import annotations

import functools
import linecache
import re
from collections.abc import Callable
from typing import Any

from .._public_names import dir_of
from ..base import NotImplementedForSymbol
from ..errors import TraceError
from ._cells import RestartTrace, forget_refused_write
from ._effects import begin_effects, check, with_effects
from ._errors import CODES, ConversionError, Place, line_of_program
from ._functions import SKIP, converted, converted_method, reason_at, set_verbosity, to_code
from ._iterables import LoopRange
from ._structure import as_outputs

range = LoopRange

__all__ = [
    "CODES", "ConversionError", "LoopRange", "as_outputs", "begin_effects", "check", "convert",
    "converted", "converted_method", "max_iterations", "range", "set_verbosity",
    "shape_invariants", "skip", "to_code", "traced", "with_effects",
]  # fmt: skip


def traced(trace: Callable[[set[Any]], Any]) -> Any:
    """Returns trace(loops), a trace of a converted program; loops: see _tracing.eager_loops.

    Raises ConversionError, or other TraceErrors with their code and source line.
    """
    loops: set[Any] = set()
    while True:
        forget_refused_write()
        try:
            return trace(loops)
        except RestartTrace as restart:
            loops.add(restart.site)
        except ConversionError:
            raise
        except TraceError as error:
            raise unconverted(error) from None
        finally:
            forget_refused_write()


def unconverted(error: TraceError) -> TraceError:
    """Adds code HN100 or HN109, the source line, and the reason why the code was not converted, to an error."""
    if (error.where or "").startswith("<string>"):  # code of eval() and exec()
        error.where = line_of_program(error) or error.where
    file, _, line = (error.where or "").rpartition(":")
    is_shared = "shares memory with another one" in str(error.args[0])
    if not line.isdigit() or not (is_shared or isinstance(error, NotImplementedForSymbol)):
        return error
    code = "HN109" if is_shared else "HN100"
    reason = reason_at(file, int(line))
    first, *rest = str(error.args[0]).split("\n")
    rest = [f"  Because: {reason}.", *rest] if reason else rest
    if is_shared:
        error.fix = _copy_before(file, int(line))
        rest = [f"  Fix: {error.fix}." if text.startswith("  Fix: ") else text for text in rest]
    error.code = code
    error.args = ("\n".join([f"[{code}] {first}{Place(file, int(line), 0, '').shown()}", *rest]),)
    return error


def _copy_before(file: str, line: int) -> str:
    """Returns the fix for a write into memory that may be shared: a copy on the line before it."""
    written = re.match(r"\s*([A-Za-z_][\w.]*)\s*(\[|[-+*/%@]=|\*\*=|//=)", linecache.getline(file, line))
    name = written[1] if written else "x"
    return f"copy the array right before this line, in the loop or after the branch: {name} = {name}.copy()"


def skip(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the function runs as it is, also while a graph is made."""
    setattr(getattr(function, "__func__", function), SKIP, True)
    return function


def convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the function is converted whenever it is called, for functions of Symbols outside of blocks.

    Branches and loops over values that are not Symbols, or arrays of a trace, run as plain Python.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return converted(function)(*args, **kwargs)

    return wrapper


def max_iterations(limit: int) -> None:
    """Written on the line above a while loop: the loop of the graph ends after this number of iterations at the latest.

    The lists that it fills then need memory for that number of items at most. Has no effect in imperative mode.
    """


def shape_invariants(**sizes: tuple[int | None, ...]) -> None:
    """Written on the line above a while loop: variables whose sizes change from iteration to iteration.

    Per variable a tuple of sizes, with None for one size that changes: ``shape_invariants(cache=(None, 64))``. Has no
    effect in imperative mode.
    """


__dir__ = dir_of(__name__)
