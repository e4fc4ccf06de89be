"""Liveness of names: which ones may be read after a statement, before they are bound again.

Expects functions without break, continue and return inside of statements (_jumps): then one backward pass per statement
suffices, repeated for loops until nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ._variables import bound_names, captured_names, read_names

__all__ = ["Liveness"]


class Liveness:
    """The names that are live after each If, While and For of a function, and at the head of each loop."""

    def __init__(self, body: Sequence[ast.stmt], outer: set[str]) -> None:
        """outer: names of enclosing scopes that the function binds; they are always live."""
        self.after: dict[ast.stmt, set[str]] = {}
        self.head: dict[ast.stmt, set[str]] = {}
        # Functions that are defined here may read names whenever they are called.
        self._always = captured_names(body) | outer
        self._list(body, set(self._always))

    def _list(self, body: Sequence[ast.stmt], out: set[str]) -> set[str]:
        for statement in reversed(body):
            out = self._statement(statement, out) | self._always
        return out

    def _statement(self, node: ast.stmt, out: set[str]) -> set[str]:
        if isinstance(node, ast.If):
            self.after[node] = set(out)
            return read_names([node.test]) | self._list(node.body, out) | self._list(node.orelse, out)
        if isinstance(node, (ast.While, ast.For)):
            return self._loop(node, out)
        if isinstance(node, ast.Return):
            return read_names([node])
        if isinstance(node, ast.With):
            inner = self._list(node.body, out) - bound_names(
                [node_.optional_vars for node_ in node.items if node_.optional_vars]
            )
            return inner | read_names(node.items)
        if isinstance(node, (ast.Try, ast.Match)) or type(node).__name__ == "TryStar":
            # Any part may run after any other: nothing is certainly bound.
            return self._unordered(node, out)
        if isinstance(node, ast.AugAssign):
            return out | read_names([node])
        return (out - bound_names([node])) | read_names([node])

    def _loop(self, node: ast.While | ast.For, out: set[str]) -> set[str]:
        self.after[node] = set(out)
        if isinstance(node, ast.While):
            bound, again, before = set(), read_names([node.test]), set()
        else:
            bound, again, before = bound_names([node.target]), set(), read_names([node.iter])
            before |= read_names([node.target])
        again |= set(getattr(node, "ag_flags", ()))
        head = out | again
        while True:
            inner = self._list(node.body, head) - bound
            if inner <= head:
                break
            head = head | inner
        self.head[node] = (self._list(node.body, head) - bound) | again
        return head | before

    def _unordered(self, node: ast.stmt, out: set[str]) -> set[str]:
        everything = out | read_names([node])
        for name in ("body", "orelse", "finalbody"):
            self._list(getattr(node, name, []), everything)
        for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            self._list(part.body, everything)
        return everything
