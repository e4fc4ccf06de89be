"""Features: objects that see each edit of a graph, its undoing included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ._handles import Node

__all__ = ["ChangeTracker", "Feature", "History", "OpIndex", "Provenance", "RegionMap", "ReplaceValidate"]


class Feature:
    """What ``graph.attach(feature)`` takes: any object with some of these methods.

    Features are called in the order in which they were attached. What a method about an edit raises undoes the edit
    when it is validated. Features that a rewrite attaches go when it ends.
    """

    def on_attach(self, graph: Any) -> None:
        """The feature joins the graph. Raising refuses."""

    def on_detach(self, graph: Any) -> None:
        """It leaves the graph."""

    def on_import(self, graph: Any, node: Any, reason: str) -> None:
        """A node is new in the graph."""

    def on_change_input(self, graph: Any, client: Any, index: int, old: Any, new: Any, reason: str) -> None:
        """Input `index` of client (a Node, or "output" or "state": of the graph) reads `new` instead of `old`."""

    def on_prune(self, graph: Any, node: Any, reason: str) -> None:
        """A node leaves the graph; it still has its inputs."""

    def validate(self, graph: Any) -> None:
        """Raises if the graph may not be as it is: what was done is undone."""

    def orderings(self, graph: Any) -> Sequence[tuple[Any, Any]]:
        """Pairs of nodes: the first must run before the second."""
        return ()


class History(Feature):
    """Keeps every edit, and takes the graph back to a point.

    ``checkpoint()`` marks a point; ``revert(mark)`` undoes all edits behind it. ``edits`` lists what has happened as
    texts.
    """

    def __init__(self) -> None:
        self.edits: list[str] = []
        self._graph: Any = None

    def on_attach(self, graph: Any) -> None:
        self._graph = graph

    def on_import(self, graph: Any, node: Any, reason: str) -> None:
        self.edits.append(f"add {node!r}{_because(reason)}")

    def on_change_input(self, graph: Any, client: Any, index: int, old: Any, new: Any, reason: str) -> None:
        self.edits.append(f"input {index} of {client!r}: {old!r} -> {new!r}{_because(reason)}")

    def on_prune(self, graph: Any, node: Any, reason: str) -> None:
        self.edits.append(f"drop {node!r}{_because(reason)}")

    def checkpoint(self) -> int:
        """A mark of the graph as it is."""
        return int(self._graph.checkpoint())

    def revert(self, mark: int) -> None:
        """Undoes what came behind the mark."""
        self._graph.revert(mark)


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


class ReplaceValidate(Feature):
    """Checks replacements with functions of yours: ``ReplaceValidate(check)`` calls ``check(graph)`` after each."""

    def __init__(self, *checks: Any) -> None:
        self.checks = checks

    def validate(self, graph: Any) -> None:
        for check in self.checks:
            check(graph)


class OpIndex(Feature):
    """Nodes by the name of their operator, kept up to date: ``index["relu"]`` is a list of nodes."""

    def __init__(self) -> None:
        self._nodes: dict[str | None, dict[Any, None]] = defaultdict(dict)
        self._ops: dict[Any, str | None] = {}

    def on_attach(self, graph: Any) -> None:
        for node in graph.nodes:
            self.on_import(graph, node, "")

    def on_import(self, graph: Any, node: Any, reason: str) -> None:
        self._ops[node] = node.op
        self._nodes[node.op][node] = None

    def on_prune(self, graph: Any, node: Any, reason: str) -> None:
        self._nodes[self._ops.pop(node)].pop(node, None)

    def __getitem__(self, op: str) -> list[Any]:
        return list(self._nodes.get(op, ()))

    def count(self, op: str) -> int:
        """How many nodes of this operator there are."""
        return len(self._nodes.get(op, ()))


class RegionMap(Feature):
    """Which loop or branch holds a node: ``regions.of(node)`` is the list of nodes whose outputs it leads to alone.

    Computed when asked; edits make it forget.
    """

    def __init__(self) -> None:
        self._graph: Any = None
        self._regions: dict[Any, set[Any]] | None = None

    def on_attach(self, graph: Any) -> None:
        self._graph = graph

    def on_import(self, graph: Any, node: Any, reason: str) -> None:
        self._regions = None

    def on_prune(self, graph: Any, node: Any, reason: str) -> None:
        self._regions = None

    def on_change_input(self, graph: Any, client: Any, index: int, old: Any, new: Any, reason: str) -> None:
        self._regions = None

    def of(self, node: Any) -> list[Any]:
        """Loops and branches without which the node would not be needed."""
        if self._regions is None:
            self._regions = self._find()
        return sorted(self._regions.get(node, ()), key=lambda other: other.name)

    def _find(self) -> dict[Any, set[Any]]:
        regions: dict[Any, set[Any] | None] = {}  # None: something outside any region needs it
        for node in reversed(self._graph.nodes):
            needed: set[Any] | None = None
            outside = False
            for output in node.outputs:
                for client, _ in self._graph.clients(output):
                    if not isinstance(client, Node):
                        outside = True
                        continue
                    above = regions.get(client) or set()
                    here = above | {client} if client.bodies else above
                    needed = here if needed is None else needed & here
            regions[node] = set() if outside else needed or set()
        return {node: found or set() for node, found in regions.items()}


class Provenance(Feature):
    """Where nodes come from: ``origins.of(node)`` is the Python line, or the line of what it took the place of."""

    def __init__(self) -> None:
        self._lines: dict[Any, str] = {}

    def on_attach(self, graph: Any) -> None:
        for node in graph.nodes:
            self.on_import(graph, node, "")

    def on_import(self, graph: Any, node: Any, reason: str) -> None:
        if node.where:
            self._lines[node] = node.where

    def on_change_input(self, graph: Any, client: Any, index: int, old: Any, new: Any, reason: str) -> None:
        if new.node not in self._lines and old.node in self._lines:
            self._lines[new.node] = self._lines[old.node]

    def of(self, node: Any) -> str | None:
        """File and line, or None where nobody knows."""
        return self._lines.get(node)


class ChangeTracker(Feature):
    """Whether the graph has changed since ``reset()``; with names, whether rewrites of these names changed it."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self.changed = False

    def reset(self) -> None:
        """Forgets what has happened."""
        self.changed = False

    def _note(self, reason: str) -> None:
        if not self._names or reason in self._names:
            self.changed = True

    def on_import(self, graph: Any, node: Any, reason: str) -> None:
        self._note(reason)

    def on_change_input(self, graph: Any, client: Any, index: int, old: Any, new: Any, reason: str) -> None:
        self._note(reason)

    def on_prune(self, graph: Any, node: Any, reason: str) -> None:
        self._note(reason)
