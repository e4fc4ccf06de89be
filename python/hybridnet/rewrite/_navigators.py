"""Rewrites over a graph that drive local rules: in which order nodes are shown to them, and how often."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import _core
from ..errors import TypeError as HybridNetTypeError
from ._rules import LocalRewriter, Report, Rewriter

__all__ = ["Equilibrium", "Random", "ReverseTopo", "Topo", "Walk"]


def _rows(rules: Any, locals_only: bool) -> list[Any]:
    items = [rules] if isinstance(rules, Rewriter) else list(rules)
    for item in items:
        if not isinstance(item, LocalRewriter if locals_only else Rewriter):
            raise HybridNetTypeError(
                "a navigator drives rules",
                expected="what mx.rewrite.local() or PatternSub makes",
                given=repr(item),
            )
    return [item._row for item in items]


class _Navigator(Rewriter):
    def __init__(self, rules: Any, name: str | None = None, tags: Iterable[str] = ("fast_run",)) -> None:
        self._rows = _rows(rules, locals_only=True)
        super().__init__(
            _core.rewrite.make_row(
                name or f"{type(self).__name__}({', '.join(row.name for row in self._rows)})",
                global_=lambda graph: self.apply(graph).changed,
                tags=set(tags),
                in_place=any(row.in_place for row in self._rows),
            )
        )

    _order = "producers"
    _ignore_new = False
    _seed = 0

    def apply(self, graph: Any) -> Report:
        """Shows each node once to the rules; the first that fires gets it."""
        return Report(*_core.rewrite.visit_once(graph, self._rows, self._order, self._ignore_new, self._seed))

    rewrite = apply


class Topo(_Navigator):
    """Nodes behind their producers; nodes that rules make are shown, too."""


class ReverseTopo(_Navigator):
    """Nodes in front of their producers; nodes that rules make are shown, too."""

    _order = "readers"


class Random(_Navigator):
    """Nodes in an order that `seed` decides: rules that agree end in one graph whatever the order."""

    _order = "random"

    def __init__(self, rules: Any, seed: int = 0, **options: Any) -> None:
        super().__init__(rules, **options)
        self._seed = int(seed)


class Walk(_Navigator):
    """Nodes behind their producers.

    ignore_new : bool, default True
        Whether nodes that rules make are left alone.
    """

    def __init__(self, rules: Any, ignore_new: bool = True, **options: Any) -> None:
        super().__init__(rules, **options)
        self._ignore_new = bool(ignore_new)


class Equilibrium(Rewriter):
    """Rules together, sweep after sweep, until none fires.

    A sweep shows nodes in front of their producers. In front of it run rules of phase "cleanup" and global rewrites,
    behind it those of phase "final". Rules that do not come to an end are stopped, with a warning that names them: when
    one fires more than 8 times per node, after 64 sweeps, when a state of the graph comes back, or when a rule replaces
    what it has made itself more often in a row than the graph had nodes (64 times at least).
    """

    def __init__(self, rules: Any, name: str | None = None, tags: Iterable[str] = ("fast_run",)) -> None:
        self._rows = _rows(rules, locals_only=False)
        super().__init__(
            _core.rewrite.make_row(
                name or f"Equilibrium({', '.join(row.name for row in self._rows)})",
                global_=lambda graph: self.apply(graph).changed,
                tags=set(tags),
                in_place=any(row.in_place for row in self._rows),
            )
        )

    def apply(self, graph: Any) -> Report:
        """Runs the rules until none fires."""
        return Report(*_core.rewrite.run_to_equilibrium(graph, self._rows))

    rewrite = apply
