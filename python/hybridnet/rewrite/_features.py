"""Features: objects that are notified of each edit of a graph, including undone ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ._handles import Node

__all__ = ["ChangeTracker", "Feature", "History", "OpIndex", "Provenance", "RegionMap", "ReplaceValidate"]


class Feature:
    """The argument of ``graph.attach(feature)``: any object with some of these methods.

    Features are called in the order in which they were attached. An exception in a notification undoes the edit when it
    is validated. Features that a rewrite attaches are detached when it ends.
    """

    def on_attach(self, graph: Any) -> None:
        """Called when the feature is attached. An exception refuses the attachment."""

    def on_detach(self, graph: Any) -> None:
        """Called when the feature is detached."""

    def on_import(self, graph: Any, node: Any, reason: str) -> None:
        """Called for a new node in the graph."""

    def on_change_input(self, graph: Any, client: Any, index: int, old: Any, new: Any, reason: str) -> None:
        """Called when input `index` of client (a Node, or the graph's "output" or "state") changes to `new`."""

    def on_prune(self, graph: Any, node: Any, reason: str) -> None:
        """Called when a node is removed from the graph; it still has its inputs."""

    def validate(self, graph: Any) -> None:
        """Raises an exception if the graph is invalid, which undoes the edit."""

    def orderings(self, graph: Any) -> Sequence[tuple[Any, Any]]:
        """Returns pairs of nodes: the first must run before the second."""
        return ()


class History(Feature):
    """Records every edit, and can revert the graph to a checkpoint.

    ``checkpoint()`` returns a mark; ``revert(mark)`` undoes all later edits. ``edits`` lists the edits as texts.
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
        """Returns a mark of the current graph."""
        return int(self._graph.checkpoint())

    def revert(self, mark: int) -> None:
        """Undoes the edits after the mark."""
        self._graph.revert(mark)


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


class ReplaceValidate(Feature):
    """Checks replacements with user-defined functions: ``ReplaceValidate(check)`` calls ``check(graph)`` after each."""

    def __init__(self, *checks: Any) -> None:
        self.checks = checks

    def validate(self, graph: Any) -> None:
        for check in self.checks:
            check(graph)


class OpIndex(Feature):
    """An up-to-date index of nodes by operator name: ``index["relu"]`` is a list of nodes."""

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
        """Returns the number of nodes of this operator."""
        return len(self._nodes.get(op, ()))


class RegionMap(Feature):
    """Maps nodes to loops and branches: ``regions.of(node)`` lists the nodes without whose outputs it would be unused.

    Computed on demand; edits invalidate it.
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
        """Returns the loops and branches without which the node would not be needed."""
        if self._regions is None:
            self._regions = self._find()
        return sorted(self._regions.get(node, ()), key=lambda other: other.name)

    def _find(self) -> dict[Any, set[Any]]:
        regions: dict[Any, set[Any] | None] = {}  # None: needed outside of all regions
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
    """Tracks the origin of nodes: ``origins.of(node)`` is the Python line, or that of the replaced node."""

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
        """Returns file and line, or None if unknown."""
        return self._lines.get(node)


class ChangeTracker(Feature):
    """Whether the graph has changed since ``reset()``; with names, whether rewrites with these names changed it."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self.changed = False

    def reset(self) -> None:
        """Clears the record."""
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
