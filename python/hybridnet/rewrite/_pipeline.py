"""The pipeline of the process: registration, selection and inspection of rewrites."""

from __future__ import annotations

import atexit
import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from .. import _core
from .._query_words import joined_query
from ..errors import ValueError as HybridNetValueError

__all__ = ["apply", "generation", "register", "rows", "scope", "stages", "trace", "unregister"]

IN_PLACE_POSITION = 50.0  # rules may write over their inputs from here on
_entered: dict[str, Any] = {}  # rewriters of users by name: the functions live as long as the database


def register(
    rewriter: Any,
    *,
    db: str | None = None,
    position: float | None = None,
    after: Sequence[str] = (),
) -> Any:
    """Registers a rewriter in the pipeline; it applies to graphs that are compiled later.

    Existing plans are not changed. A rule in the stages clean, canonicalize and loops runs again on the joint graph of
    forward and backward nodes, in the stages clean_joint, canonicalize_joint and loops_joint.

    Parameters
    ----------
    rewriter : Rewriter
        A result of mx.rewrite.local(), PatternSub, GlobalRewriter or a database.
    db : str, optional
        A stage of the pipeline (mx.rewrite.stages()).
    position : float, optional
        Without db: between 0 and 100; below 10 on the forward graph before differentiation, from 10 on forward and
        backward nodes in one graph, from 38 on the forward part and the backward part separately, from 50 rules that
        may write over their inputs.
    after : sequence of str
        Rules that must come before it.

    Returns the rewriter. Raises ValueError for unknown stages, ParamError for existing names.
    """
    if db is None and position is None:
        raise HybridNetValueError(
            f"register: '{rewriter.name}' has no position", fix="give db='canonicalize', or position=0.5"
        )
    if isinstance(position, float) and position != position:
        raise HybridNetValueError("register: position is NaN")
    _core.rewrite.add_row(rewriter._row, db or "", 0.0 if position is None else float(position), list(after))
    _entered[rewriter.name] = rewriter
    return rewriter


def position_of(rewriter: Any) -> float | None:
    """Returns the position of a rewriter in the pipeline; None if it is not registered."""
    name = rewriter.name
    if _entered.get(name) is not rewriter:
        return None
    return next((float(row["position"]) for row in rows() if row["name"] == name), None)


def unregister(rewriter: Any) -> None:
    """Removes a rewriter, given itself or by name, from the pipeline. Raises ParamError for those of the library."""
    name = rewriter if isinstance(rewriter, str) else rewriter.name
    _core.rewrite.remove_row(name)
    _entered.pop(name, None)


def entered() -> dict[str, Any]:
    """Returns the rewriters that users have registered in the pipeline, by name."""
    return dict(_entered)


@atexit.register
def _forget_all() -> None:  # Python functions must not outlive the interpreter
    for name in list(_entered):
        unregister(name)


def rows() -> list[dict[str, Any]]:
    """Returns the rewrites of the pipeline in execution order: name, stage, position, tags, after, ``what``.

    A rewrite of several stages is listed once for each of them.
    """
    return list(_core.pipeline_rows())


def stages() -> list[dict[str, Any]]:
    """Returns the stages in order: name, graph (forward, joint or parts), position, equilibrium, ``what``."""
    return [stage for stage in _core.pipeline_stages() if stage["graph"]]


def generation() -> int:
    """Returns a number that grows with each change of the pipeline."""
    return int(_core.rewrite.rewrite_generation())


def apply(graph: Any, passes: Any = "", first: float = 0.0, end: float = 10.0) -> Any:
    """Runs the part of the pipeline from position `first` up to `end` on a graph, like compilation.

    passes : str or Query
        Selects rewrites; the default is fast_run.

    The default range is the part before differentiation.
    """
    from ._rules import Report  # _rules imports this module

    return Report(*_core.rewrite.run_query(graph, str(passes), float(first), float(end)))


class scope:  # used as a function: with mx.rewrite.scope(exclude=["fusion"])
    """Selects rewrites for the graphs that this thread compiles inside a with statement.

    include : iterable of str
        Words for blocks whose hybridize() has not selected rewrites.
    exclude, require : iterable of str
        Words of the pipeline, combined with those of blocks and of HYBRIDNET_PASSES.
    passes : str or Query
        All selections in one text.

    Existing plans are used unchanged. Raises ParamError for unknown words.
    """

    def __init__(
        self,
        passes: Any = "",
        *,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        require: Iterable[str] = (),
    ) -> None:
        self._scope = _core.rewrite.QueryScope(joined_query(passes, include, exclude, require))

    def __enter__(self) -> scope:
        self._scope.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._scope.exit()


class trace:
    """Records the changes of each rewrite to graphs that are compiled inside a with statement, as small diffs.

    ::

        with mx.rewrite.trace() as changes:
            net(x)
        print(changes.text())

    print_now : bool, default False
        Whether each change is printed immediately.
    """

    def __init__(self, print_now: bool = False) -> None:
        self._print_now = print_now
        self.changes: list[tuple[str, str, str]] = []  # rewrite, place, diff
        self._tracer: Any = None

    def __enter__(self) -> trace:
        self._tracer = _core.rewrite.Tracer(self._note)
        self._tracer.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._tracer.exit()

    def _note(self, name: str, place: str, before: str, after: str) -> None:
        diff = _small_diff(before, after)
        self.changes.append((name, place, diff))
        if self._print_now:
            print(self._one(self.changes[-1]))

    @staticmethod
    def _one(change: tuple[str, str, str]) -> str:
        name, place, diff = change
        return f"{name}{' in the ' + place if place else ''}\n{diff}"

    def text(self) -> str:
        """Returns all changes so far, in order."""
        return "\n".join(self._one(change) for change in self.changes)


def _small_diff(before: str, after: str) -> str:
    """Returns removed and added lines; a moved line is no change."""
    old, new = _without_places(before), _without_places(after)
    changed = {"-": Counter(old) - Counter(new), "+": Counter(new) - Counter(old)}
    lines = []
    for line in difflib.ndiff(old, new):
        if line[0] in changed and changed[line[0]][line[2:]] > 0:
            changed[line[0]][line[2:]] -= 1
            lines.append(line)
    return "\n".join(lines)


def _without_places(text: str) -> list[str]:
    """Returns lines without their Python file, line and block."""
    return [re.sub(r' @ "[^"]*"| in "[^"]*"', "", line) for line in text.splitlines()]
