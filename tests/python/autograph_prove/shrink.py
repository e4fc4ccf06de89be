"""Makes a failing program smaller: statements and parts of expressions go while the failure stays the same."""

from __future__ import annotations

import ast
import copy
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["shrink"]

_SIMPLE = ("x", "0", "1", "x.sum()")


def _blocks(tree: ast.AST) -> Iterator[tuple[Any, str]]:
    """Every list of statements, as its owner and its field."""
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            if isinstance(getattr(node, name, None), list):
                yield node, name


def _edits_of_statements(tree: ast.Module) -> Iterator[Callable[[ast.Module], bool]]:
    """Functions that change a copy of the tree."""
    blocks = list(_blocks(tree))
    for block, (owner, name) in enumerate(blocks):
        size = len(getattr(owner, name))
        if size > 2:  # halves first
            for part in (slice(size // 2, None), slice(0, size // 2)):
                yield lambda new, b=block, p=part: _delete(new, b, p)
        for i in reversed(range(size)):
            yield lambda new, b=block, i=i: _delete(new, b, slice(i, i + 1))
            statement = getattr(owner, name)[i]
            for field in ("body", "orelse"):
                if isinstance(getattr(statement, field, None), list) and not isinstance(statement, ast.ClassDef):
                    yield lambda new, b=block, i=i, f=field: _hoist(new, b, i, f)


def _block(tree: ast.Module, number: int) -> list[ast.stmt]:
    owner, name = list(_blocks(tree))[number]
    return getattr(owner, name)


def _delete(tree: ast.Module, block: int, part: slice) -> bool:
    owner, name = list(_blocks(tree))[block]
    statements = getattr(owner, name)
    if any(isinstance(s, (ast.ClassDef, ast.Import, ast.ImportFrom)) for s in statements[part]):
        return False
    if any(isinstance(s, ast.FunctionDef) and s.name == "forward" for s in statements[part]):
        return False
    if len(statements[part]) == 1 and isinstance(statements[part][0], ast.Pass):
        return False
    del statements[part]
    if not statements and name == "body":
        statements.append(ast.Pass())
    return True


def _hoist(tree: ast.Module, block: int, i: int, field: str) -> bool:
    """Replaces a compound statement by one of its blocks."""
    statements = _block(tree, block)
    if isinstance(statements[i], ast.FunctionDef):
        return False
    inner = getattr(statements[i], field)
    if not inner:
        return False
    statements[i : i + 1] = inner
    return True


class _Replace(ast.NodeTransformer):
    """Replaces the expression with a number by one of its parts or by a simple one."""

    def __init__(self, number: int, choice: int) -> None:
        self.number, self.choice, self.seen, self.done = number, choice, -1, False

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            self.seen += 1
            if self.seen == self.number:
                options = _simpler(node)
                if self.choice < len(options):
                    self.done = True
                    return options[self.choice]
                return node
        return self.generic_visit(node)


def _simpler(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, (ast.Constant, ast.Name)):
        return []
    parts = [p for p in ast.iter_child_nodes(node) if isinstance(p, ast.expr)]
    if isinstance(node, ast.Call):
        parts = [*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args]
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) > 1:
        for i in range(len(node.elts)):
            parts.append(type(node)([e for j, e in enumerate(node.elts) if j != i], node.ctx))
    parts = [p.value if isinstance(p, ast.Starred) else p for p in parts]
    return [*parts, *[ast.parse(text, mode="eval").body for text in _SIMPLE if text != ast.unparse(node)]]


def _edits_of_expressions(tree: ast.Module) -> Iterator[Callable[[ast.Module], bool]]:
    number = -1
    counted = _Replace(1 << 30, 0)
    counted.visit(copy.deepcopy(tree))
    for number in range(counted.seen + 1):
        for choice in range(10):
            yield lambda new, n=number, c=choice: _replace(new, n, c)


def _replace(tree: ast.Module, number: int, choice: int) -> bool:
    change = _Replace(number, choice)
    change.visit(tree)
    return change.done


def shrink(source: str, fails: Callable[[str], bool], seconds: float = 30) -> str:
    """Returns a smaller program for which `fails` is still true."""
    end = time.monotonic() + seconds
    tree = ast.parse(source)
    again = True
    tried: set[str] = set()
    while again and time.monotonic() < end:
        again = False
        for edits in (_edits_of_statements, _edits_of_expressions):
            progress = True
            while progress and time.monotonic() < end:
                progress = False
                for edit in edits(tree):
                    if time.monotonic() > end:
                        break
                    new = copy.deepcopy(tree)
                    try:
                        if not edit(new):
                            continue
                    except (IndexError, ValueError):
                        continue
                    text = ast.unparse(ast.fix_missing_locations(new))
                    if text in tried or len(text) >= len(ast.unparse(tree)) + 2:
                        continue
                    tried.add(text)
                    try:
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            compile(text, "program", "exec")
                    except SyntaxError:
                        continue
                    if fails(text):
                        tree, progress, again = ast.parse(text), True, True
                        break
    return ast.unparse(tree)
