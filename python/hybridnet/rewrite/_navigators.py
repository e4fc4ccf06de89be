"""Navigators: rewrites over a graph that apply local rules to its nodes, with their order and number of sweeps."""

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
                expected="a rule that mx.rewrite.local() or PatternSub makes",
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
        """Passes each node once to the rules; the first that fires is applied."""
        return Report(*_core.rewrite.visit_once(graph, self._rows, self._order, self._ignore_new, self._seed))

    rewrite = apply


class Topo(_Navigator):
    """Visits nodes after their producers, including nodes that rules create."""


class ReverseTopo(_Navigator):
    """Visits nodes before their producers, including nodes that rules create."""

    _order = "readers"


class Random(_Navigator):
    """Visits nodes in an order that depends on `seed`: confluent rules end in one graph for every order."""

    _order = "random"

    def __init__(self, rules: Any, seed: int = 0, **options: Any) -> None:
        super().__init__(rules, **options)
        self._seed = int(seed)


class Walk(_Navigator):
    """Visits nodes after their producers.

    ignore_new : bool, default True
        Whether nodes that rules create are skipped.
    """

    def __init__(self, rules: Any, ignore_new: bool = True, **options: Any) -> None:
        super().__init__(rules, **options)
        self._ignore_new = bool(ignore_new)


class Equilibrium(Rewriter):
    """Runs rules together, sweep after sweep, until none fires.

    A sweep visits nodes before their producers. Before it, rules of phase "cleanup" and global rewrites run; after it,
    those of phase "final". Rules that do not terminate are stopped, with a warning that names them: if one fires more
    than 8 times per node, after 64 sweeps, if a state of the graph recurs, or if a rule replaces its own results more
    often in a row than the graph had nodes (64 times at least).
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
