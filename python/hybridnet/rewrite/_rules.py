"""Rules: functions that look at a node (local) or at a whole graph (global)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import _core
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..errors import not_overridden
from . import _pipeline

__all__ = ["GlobalRewriter", "LocalRewriter", "Report", "Rewriter", "global_", "local"]

TRAITS = ("any", "commutative", "identity", "image", "pointwise", "view")


@dataclass
class Report:
    """What rewriting a graph did.

    Attributes
    ----------
    changed : bool
    lines : list of dict
        Per rewrite: name, tried, fired, failed, rejected, made, dropped (nodes), microseconds.
    warnings : list of str
    """

    changed: bool
    lines: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.changed

    def fired(self, name: str) -> int:
        """How often the rewrite of this name fired."""
        return sum(line["fired"] for line in self.lines if line["name"] == name)


class Rewriter:
    """A rewrite that databases can hold, that navigators can drive, and that can be applied by itself."""

    def __init__(self, row: Any) -> None:
        self._row = row

    @property
    def name(self) -> str:
        return str(self._row.name)

    def apply(self, graph: Any) -> Report:
        """Rewrites the graph until the rewrite does not fire any more. The report is true if something changed."""
        return Report(*_core.rewrite.run_row(graph, self._row))

    rewrite = apply

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}'>"


class LocalRewriter(Rewriter):
    """A rule over one node: ``function(graph, node)``; see :func:`local`."""

    def __init__(self, row: Any, function: Callable[..., Any] | None = None) -> None:
        super().__init__(row)
        self.function = function

    @property
    def tracks(self) -> list[str]:
        """Names of the operators whose nodes it is shown; empty: all."""
        return list(self._row.ops)

    def __call__(self, graph: Any, node: Any) -> Any:
        if self.function is None:
            raise HybridNetTypeError(
                f"rewrite '{self.name}' is no Python function of a node alone", fix="use apply(graph)"
            )
        return self.function(graph, node)


class GlobalRewriter(Rewriter):
    """A rewrite over a whole graph.

    Subclasses define ``apply_to(graph)``, which edits the graph, and may define ``requirements(graph)``, which attaches
    features to it; those go when the rewrite ends.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        tags: Iterable[str] = (),
        values: str = "same",
        phase: str = "",
        in_place: bool = False,
    ) -> None:
        super().__init__(
            _core.rewrite.make_row(
                name or type(self).__name__,
                global_=self.apply_to,
                requirements=self.requirements,
                tags=set(tags),
                values=values,
                phase=phase,
                in_place=in_place,
                what=_first_line(type(self)),
            )
        )

    def requirements(self, graph: Any) -> None:
        """Attaches the features that apply_to() needs."""

    def apply_to(self, graph: Any) -> bool | None:
        """Edits the graph. True: it has changed; None: find out."""
        raise not_overridden(self, "apply_to(graph)")


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _as_pattern(item: Any) -> Any:
    from ._patterns import as_pattern

    return as_pattern(item)


def _checked_tracks(tracks: Sequence[str] | str | None, traits: Sequence[str] | str) -> tuple[list[str], list[str]]:
    ops = [tracks] if isinstance(tracks, str) else list(tracks or ())
    wanted = [traits] if isinstance(traits, str) else list(traits)
    if not all(isinstance(item, str) for item in (*ops, *wanted)):
        raise HybridNetTypeError("tracks and traits are names of operators and traits", given=repr((tracks, traits)))
    return ops, wanted


def local(
    tracks: Sequence[str] | str | None = None,
    *,
    traits: Sequence[str] | str = (),
    pattern: Any = None,
    db: str | None = None,
    position: float | None = None,
    tags: Iterable[str] = ("fast_run",),
    name: str | None = None,
    values: str = "same",
    after: Sequence[str] = (),
    phase: str = "",
    in_place: bool = False,
) -> Callable[[Callable[..., Any]], LocalRewriter]:
    """Makes a local rule of a function ``rule(graph, node)``, with a pattern ``rule(graph, node, names)``.

    The rule returns None where it wants nothing, an Entry that takes the place of the node's output, a list with one
    Entry per output (None for outputs that nothing reads), or a dict of old to new entries, of other nodes too, in
    which ``"remove"`` lists nodes that must be gone afterwards. Replacements have shape and dtype of what they replace;
    else the graph stays as it was and a warning names the rule (HYBRIDNET_ON_REWRITE: warn, raise or ignore).

    Parameters
    ----------
    tracks : str or sequence of str, optional
        Operators whose nodes the rule is shown. "add", "sub", "mul", "div", "mod", "pow", "maximum" and "minimum" stand
        for all operators that compute them, with numbers too.
    traits : str or sequence of str
        The same by property: any, commutative, identity, image, pointwise, view. Without tracks and traits: all nodes.
    pattern : tuple or part made by mx.rewrite.P, optional
        The same by what stands around the node, as in PatternSub: the rule is shown the nodes at which the pattern
        matches, and what the names in it stand for, as a dict.
    db : str, optional
        The stage of the pipeline that the rule enters (mx.rewrite.stages()).
    position : float, optional
        Without db: where the rule stands in the pipeline; with db: where among the rules of the stage. With neither the
        rule enters no pipeline.
    tags : iterable of str
        What queries know the rule by, beside its name.
    name : str, optional
        Default: the function's name.
    values : {'same', 'rounding', 'unsafe'}
        What the rule promises of results: the same bits; up to rounding; or also other results for zeros, infinities
        and NaN, which runs only where the query says "fast_math".
    after : sequence of str
        Rules that must stand in front of this one.
    phase : {'', 'cleanup', 'final'}
        In a stage that runs to equilibrium: in front of each sweep, or behind it.
    in_place : bool
        Whether the rule makes nodes that write over their inputs: at positions of 50 and more only.

    Raises ParamError for operators that do not exist, ValueError for unknown stages and for a pattern beside tracks or
    traits.
    """
    ops, wanted = _checked_tracks(tracks, traits)
    if pattern is not None and (ops or wanted):
        raise HybridNetValueError(
            "mx.rewrite.local: pattern= beside tracks= or traits=",
            because="a pattern says which nodes the rule is shown",
            fix="give pattern= alone",
        )

    def make(function: Callable[..., Any]) -> LocalRewriter:
        if not callable(function):
            raise HybridNetTypeError("mx.rewrite.local is a decorator of functions", given=repr(function))
        shown = {"local": function} if pattern is None else {"patterns": [(_as_pattern(pattern), function)]}
        row = _core.rewrite.make_row(
            name or function.__name__, **shown, ops=ops, traits=wanted, tags=set(tags), values=values,
            phase=phase, in_place=in_place, what=_first_line(function),
        )  # fmt: skip
        rule = LocalRewriter(row, function if pattern is None else None)
        _enter(rule, db, position, after)
        return rule

    return make


def global_(
    *,
    requirements: Callable[[Any], None] | None = None,
    db: str | None = None,
    position: float | None = None,
    tags: Iterable[str] = ("fast_run",),
    name: str | None = None,
    values: str = "same",
    after: Sequence[str] = (),
    phase: str = "",
    in_place: bool = False,
) -> Callable[[Callable[..., Any]], Rewriter]:
    """Makes a rewrite over whole graphs of a function ``rewrite(graph)`` that edits the graph it is given.

    requirements : callable, optional
        ``requirements(graph)`` attaches features, which go when the rewrite ends.

    What the function raises undoes all that it did. Other parameters as in :func:`local`.
    """

    def make(function: Callable[..., Any]) -> Rewriter:
        row = _core.rewrite.make_row(
            name or function.__name__, global_=function, requirements=requirements, tags=set(tags), values=values,
            phase=phase, in_place=in_place, what=_first_line(function),
        )  # fmt: skip
        rewriter = Rewriter(row)
        _enter(rewriter, db, position, after)
        return rewriter

    return make


def _enter(rewriter: Rewriter, db: str | None, position: float | None, after: Sequence[str]) -> None:
    if db is not None or position is not None:
        _pipeline.register(rewriter, db=db, position=position, after=after)
    elif after:
        raise HybridNetValueError("after= without db= or position=", because="the rule enters no database")
