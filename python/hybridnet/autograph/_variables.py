"""Names that statements bind and read, within one function."""

from __future__ import annotations

import ast
from collections.abc import Iterable

__all__ = [
    "bound_names", "captured_names", "declared_names", "mutated_names", "nested_nonlocals", "read_names",
    "rebound_names",
]  # fmt: skip

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Methods that change the object on which they are called.
MUTATORS = frozenset(
    (
        *("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem"),
        *("add", "discard", "appendleft", "popleft", "extendleft", "rotate"),
    )
)


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that the nodes bind or delete in their own function."""
    found: set[str] = set()
    for node in nodes:
        _bind(node, found)
    return found


def _bind(node: ast.AST, found: set[str]) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found.add(node.name)
        for part in [*node.decorator_list, *getattr(node, "bases", [])]:
            _bind(part, found)
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, _COMPREHENSIONS):  # binds its targets in its own scope, but := in the function's
        found |= {part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)}
        return
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        found.add(node.id)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        found.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        found.add(node.rest)
    for child in ast.iter_child_nodes(node):
        _bind(child, found)


def rebound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that the nodes bind otherwise than by an augmented assignment."""
    augmented: dict[str, int] = {}
    stores: dict[str, int] = {}
    for node in nodes:
        for part in _in_scope(node):
            if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                augmented[part.target.id] = augmented.get(part.target.id, 0) + 1
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
                stores[part.id] = stores.get(part.id, 0) + 1
    return {name for name in bound_names(nodes) if stores.get(name, 1) > augmented.get(name, 0)}


def mutated_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Returns the names whose values the nodes change in place, and how: "append" if only by append."""
    found: dict[str, str] = {}
    for node in nodes:
        for part in _in_scope(node):
            name, how = "", ""
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, (ast.Store, ast.Del)):
                name, how = _base_name(part.value), "item"
            elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                name, how = part.target.id, "augmented"
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in MUTATORS:
                name, how = _base_name(part.func.value), "append" if part.func.attr == "append" else "method"
            if name:
                found[name] = how if found.get(name, how) == how else "method"
    return found


def _base_name(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _in_scope(node: ast.AST) -> Iterable[ast.AST]:
    """Yields node and its parts that belong to the same function."""
    yield node
    if isinstance(node, _SCOPES):
        return
    for child in ast.iter_child_nodes(node):
        yield from _in_scope(child)


def read_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that the nodes read, also in nested functions."""
    found: set[str] = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store):
                found.add(part.id)
            elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                found.add(part.target.id)
    return found


def captured_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that functions defined in the nodes may read when they are called."""
    found: set[str] = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, (*_SCOPES, ast.GeneratorExp)):
                found |= _free_names(part)
    return found


def _free_names(scope: ast.AST) -> set[str]:
    """Returns the names that a nested function or generator expression reads from around it."""
    if isinstance(scope, ast.GeneratorExp):
        own = bound_names([generator.target for generator in scope.generators])
        return read_names([scope]) - own
    if isinstance(scope, ast.ClassDef):
        return read_names(scope.body)
    arguments: ast.arguments = scope.args  # type: ignore[attr-defined]
    body = [scope.body] if isinstance(scope, ast.Lambda) else scope.body  # type: ignore[attr-defined]
    outer = set().union(*declared_names(body))
    own = {part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg)} | (bound_names(body) - outer)
    # Functions inside it read names of it, or of the scopes around it.
    return (read_names(body) | outer) - own


def nested_nonlocals(body: Iterable[ast.AST], arguments: set[str]) -> set[str]:
    """Returns the names that functions defined in the body of a function declare as nonlocal, and that it binds."""
    declared = {
        name
        for node in body
        for part in ast.walk(node)
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
        for name in declared_names(part.body)[1]
    }
    return declared & (arguments | bound_names(body) | declared_names(body)[1])


def declared_names(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Returns the names that the nodes declare as global and as nonlocal."""
    outer: tuple[set[str], set[str]] = set(), set()
    for node in nodes:
        for part in _in_scope(node):
            if isinstance(part, ast.Global):
                outer[0].update(part.names)
            elif isinstance(part, ast.Nonlocal):
                outer[1].update(part.names)
    return outer
