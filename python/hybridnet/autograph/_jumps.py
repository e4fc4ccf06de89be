"""Replaces break, continue and return inside of statements by flags and conditions.

Afterwards a function returns only in its last statement, and every loop ends by its test::

    for x in xs:                          stopped = False
        if x < 0:                         for x in xs:         # while not stopped
            break                 ->          if x < 0:
        total = total + x                         stopped = True
                                              else:
                                                  total = total + x

The rest of a block goes into the other branch if one branch certainly jumps; otherwise it is guarded by the flags.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ._tree_places import at_place

__all__ = ["GENERATED", "lower_jumps"]

GENERATED = "ag__"  # prefix of names that the conversion makes
_JUMPS = (ast.Return, ast.Break, ast.Continue)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def lower_jumps(function: ast.FunctionDef) -> None:
    """Rewrites the body of function in place."""
    _Lowering().function(function)


def _jumps(nodes: Sequence[ast.AST], kinds: tuple[type, ...], in_loops: bool) -> bool:
    """Whether the statements contain a jump of these kinds; in_loops: also those inside inner loops."""
    for node in nodes:
        if isinstance(node, kinds):
            return True
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, (ast.For, ast.While)) and not in_loops:
            if _jumps(node.orelse, kinds, in_loops):
                return True
            continue
        children = [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))
        ]
        if children and _jumps(children, kinds, in_loops):
            return True
    return False


@dataclass
class _Target:
    """The flags that end the surrounding loop or function."""

    stop: str = ""  # set by break
    skip: str = ""  # set by continue, if the rest of the body is guarded by it
    used: set[str] = field(default_factory=set)


class _Lowering:
    def __init__(self) -> None:
        self._count = 0
        self._returns = ""
        self._value = ""

    def _name(self, what: str) -> str:
        self._count += 1
        return f"{GENERATED}{what}_{self._count}"

    def function(self, function: ast.FunctionDef) -> None:
        body = function.body
        inner = body[:-1] if isinstance(body[-1], ast.Return) else body
        if not _jumps(inner, (ast.Return,), True):
            function.body = self._block(body, _Target())
            return
        self._returns, self._value = self._name("returned"), self._name("value")
        first, last, ends = body[0], body[-1], _certain(body)
        new = self._block(body, _Target())
        returned = ast.Return(_name(self._value))
        returned.ag_value = self._value  # type: ignore[attr-defined]
        function.body = [
            at_place(_assign(self._returns, ast.Constant(False)), first),
            *new,
            at_place(returned, last, end=True),
        ]
        if not ends:
            # The end of the function returns None on the paths that have not returned.
            self._append_none(function, last)

    def _append_none(self, function: ast.FunctionDef, last: ast.stmt) -> None:
        missing = ast.If(_not(self._returns), [_assign(self._value, ast.Constant(None))], [])
        function.body.insert(len(function.body) - 1, at_place(missing, last, end=True))

    def _block(self, body: Sequence[ast.stmt], target: _Target) -> list[ast.stmt]:
        """Lowers a list of statements."""
        made: list[ast.stmt] = []
        for position, node in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(node, ast.Return) and self._returns:
                made += [
                    at_place(_assign(self._value, node.value or ast.Constant(None)), node),
                    at_place(_assign(self._returns, ast.Constant(True)), node),
                ]
                return made
            if isinstance(node, ast.Break):
                made.append(at_place(_assign(target.stop, ast.Constant(True)), node))
                return made
            if isinstance(node, ast.Continue):
                if target.skip:
                    target.used.add(target.skip)
                    made.append(at_place(_assign(target.skip, ast.Constant(True)), node))
                else:
                    made.append(at_place(ast.Pass(), node))
                return made
            if self._contains_jump(node):
                return [*made, *self._jumping(node, rest, target)]
            made += [node] if isinstance(node, _FUNCTIONS) else self._lowered(node, _Target())
        return made or [at_place(ast.Pass(), body[0])] if body else made

    def _contains_jump(self, node: ast.stmt) -> bool:
        """Whether a jump out of node ends the surrounding block."""
        if self._returns and _jumps([node], (ast.Return,), True):
            return True
        return _jumps([node], (ast.Break, ast.Continue), False) and not isinstance(node, _FUNCTIONS)

    def _jumping(self, node: ast.stmt, rest: Sequence[ast.stmt], target: _Target) -> list[ast.stmt]:
        if isinstance(node, ast.If):
            one, other = _certain(node.body), _certain(node.orelse)
            if one and not other:
                node.orelse, rest = [*node.orelse, *rest], []
            elif other and not one:
                node.body, rest = [*node.body, *rest], []
            elif one and other:
                rest = []
        flags: list[str] = []
        if rest:
            if self._returns and _jumps([node], (ast.Return,), True):
                flags.append(self._returns)
            if _jumps([node], (ast.Break,), False) and target.stop:
                flags.append(target.stop)
            if _jumps([node], (ast.Continue,), False):
                flags.append(target.skip or "")
        jumping = _statement_that_jumps(node)
        made = self._lowered(node, target)
        if not rest:
            return made
        tests = [_not(flag) for flag in flags if flag]
        if not tests:
            return [*made, *self._block(rest, target)]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        guarded = ast.If(test, self._block(rest, target), [])
        guarded.ag_guard = True  # type: ignore[attr-defined]
        return [*made, at_place(guarded, jumping)]  # errors of the guard name it

    def _lowered(self, node: Any, target: _Target) -> list[ast.stmt]:
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, target)
        if isinstance(node, ast.If):
            node.body = self._block(node.body, target)
            node.orelse = self._block(node.orelse, target)
            return [node]
        for name in ("body", "orelse", "finalbody"):
            if getattr(node, name, None):
                setattr(node, name, self._block(getattr(node, name), target))
        for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            part.body = self._block(part.body, target)
        if isinstance(node, ast.Try) and node.orelse and self._returns:
            node.orelse = [at_place(ast.If(_not(self._returns), node.orelse, []), node.orelse[0])]
        return [node]

    def _loop(self, node: ast.For | ast.While, around: _Target) -> list[ast.stmt]:
        breaks = _jumps(node.body, (ast.Break,), False)
        returns = bool(self._returns) and _jumps(node.body, (ast.Return,), True)
        target = _Target(self._name("stopped") if breaks else "", self._name("skipped"))
        needs_skip = _needs_skip(node.body)
        if not needs_skip:
            target.skip = ""
        body = self._block(node.body, target)
        if needs_skip:
            body.insert(0, at_place(_assign(target.skip, ast.Constant(False)), node.body[0]))
        made: list[ast.stmt] = []
        node.ag_flags = [flag for flag in (target.stop, self._returns if returns else "") if flag]  # type: ignore[union-attr]
        if breaks:
            made.append(at_place(_assign(target.stop, ast.Constant(False)), node))
        orelse, node.body, node.orelse = node.orelse, body, []
        made.append(node)
        if orelse:
            flags = node.ag_flags  # type: ignore[union-attr]
            made += self._after_loop(orelse, flags, around)
        return made

    def _after_loop(self, orelse: list[ast.stmt], flags: list[str], around: _Target) -> list[ast.stmt]:
        body = self._block(orelse, around)  # break and continue in it belong to the loop around
        if not flags:
            return body
        tests = [_not(flag) for flag in flags]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return [at_place(ast.If(test, body, []), orelse[0])]


def _statement_that_jumps(node: ast.stmt) -> ast.stmt:
    """Returns the innermost if in node that contains a jump; node if there is none."""
    for part in ast.walk(node):
        if isinstance(part, ast.If) and any(isinstance(inner, _JUMPS) for inner in (*part.body, *part.orelse)):
            return part
    return node


def _needs_skip(body: Sequence[ast.stmt]) -> bool:
    """Whether a continue needs a flag: some statements after it are not in the other branch of its if."""
    for position, node in enumerate(body):
        rest = body[position + 1 :]
        if not _jumps([node], (ast.Continue,), False):
            continue
        if isinstance(node, ast.Continue):
            return False
        if isinstance(node, ast.If):
            one, other = _certain(node.body), _certain(node.orelse)
            branches = [
                [*node.body, *(rest if other and not one else [])],
                [*node.orelse, *(rest if one and not other else [])],
            ]
            moved = one or other
            if (rest and not moved) or any(_needs_skip(branch) for branch in branches):
                return True
            if moved:
                return False
            continue
        return True
    return False


def _certain(body: Sequence[ast.stmt]) -> bool:
    """Whether the statements end in a jump on every path."""
    for node in body:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return not isinstance(node, ast.Raise)
        if isinstance(node, ast.If) and node.orelse and _certain(node.body) and _certain(node.orelse):
            return True
    return False


def _name(name: str, ctx: Any = None) -> ast.Name:
    return ast.Name(name, ctx or ast.Load())


def _not(flag: str) -> ast.expr:
    return ast.UnaryOp(ast.Not(), _name(flag))


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([_name(name, ast.Store())], value)
