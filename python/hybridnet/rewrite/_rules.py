"""Rewrite rules: functions of a node (local) or of a whole graph (global)."""

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

TRAITS = ("activation", "any", "commutative", "identity", "image", "pointwise", "view")


@dataclass
class Report:
    """The report of a rewrite of a graph.

    Attributes
    ----------
    changed : bool
    lines : list of dict
        Per rewrite and stage: name, stage ("" for none), tried, fired, failed, rejected, made, dropped (nodes),
        microseconds.
    warnings : list of str
    """

    changed: bool
    lines: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.changed

    def fired(self, name: str) -> int:
        """Returns the number of times that the rewrite with this name fired, in all stages."""
        return sum(line["fired"] for line in self.lines if line["name"] == name)


class Rewriter:
    """Base of rewrites, which can be held by databases, run by navigators, and applied directly."""

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
        self.function: Any = function  # None: the rule is not one of Python

    @property
    def tracks(self) -> list[str]:
        """Names of the operators whose nodes the rule sees; empty: all."""
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
    features to it; they are detached when the rewrite ends.
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
        """Edits the graph. Returns whether it has changed; None: unknown."""
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
    """Makes a local rule from a function ``rule(graph, node)``, with a pattern ``rule(graph, node, names)``.

    The rule returns None for no change, an Entry that replaces the node's output, a list with one Entry per output
    (None for outputs without readers), or a dict of old to new entries, also of other nodes, in which ``"remove"``
    lists nodes that must be gone afterwards. Replacements must have the same shape and dtype; otherwise the graph is
    unchanged and a warning names the rule (HYBRIDNET_ON_REWRITE: warn, raise or ignore).

    Parameters
    ----------
    tracks : str or sequence of str, optional
        Operators whose nodes are passed to the rule. "add", "sub", "mul", "div", "mod", "pow", "maximum" and "minimum"
        mean all operators that compute them, also with numbers.
    traits : str or sequence of str
        Selection by property: activation, any, commutative, identity, image, pointwise, view. Without tracks and
        traits: all nodes.
    pattern : tuple or part made by mx.rewrite.P, optional
        Selection by the neighborhood of the node, see PatternSub: the rule is called at nodes where the pattern
        matches, with a dict of the values of its names.
    db : str, optional
        The stage of the pipeline that the rule is registered in (mx.rewrite.stages()).
    position : float, optional
        Without db: the position in the pipeline; with db: the position among the rules of the stage. With neither, the
        rule is not registered.
    tags : iterable of str
        Tags for queries, in addition to the name.
    name : str, optional
        Default: the function's name.
    values : {'same', 'rounding', 'unsafe'}
        Accuracy that the rule guarantees: the same bits; up to rounding; or also other results for zeros, infinities
        and NaN, which runs only if the query contains "fast_math".
    after : sequence of str
        Rules that must come before this one.
    phase : {'', 'cleanup', 'final'}
        In a stage that runs to equilibrium: before each sweep, or after it.
    in_place : bool
        Whether the rule makes nodes that write over their inputs: allowed only at positions of 50 and more.

    Raises ParamError for unknown operators, ValueError for unknown stages and for a pattern together with tracks or
    traits.
    """
    ops, wanted = _checked_tracks(tracks, traits)
    if pattern is not None and (ops or wanted):
        raise HybridNetValueError(
            "mx.rewrite.local: pattern= beside tracks= or traits=",
            because="the pattern selects the nodes of the rule",
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
    """Makes a rewrite of whole graphs from a function ``rewrite(graph)`` that edits its graph.

    requirements : callable, optional
        ``requirements(graph)`` attaches features, which are detached when the rewrite ends.

    An exception of the function undoes all its edits. Other parameters: see :func:`local`.
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
