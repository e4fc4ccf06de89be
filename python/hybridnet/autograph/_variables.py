"""Names that statements bind and read, within one function."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = [
    "binding_places", "bound_names", "captured_names", "declared_names", "has_calls",
    "nested_nonlocals", "read_names",
    "rebound_names", "remembered_names",
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


@dataclass
class _Facts:
    """The names in one statement or expression of a function."""

    bound: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    stores: Counter[str] = field(default_factory=Counter)
    augmented: Counter[str] = field(default_factory=Counter)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)  # first binding of each name: line, column
    calls: bool = False

    def add(self, other: _Facts) -> None:
        """Adds the names of a statement inside this one."""
        self.bound |= other.bound
        self.read |= other.read
        self.stores += other.stores
        self.augmented += other.augmented
        for name, place in other.places.items():
            self.places.setdefault(name, place)
        self.calls = self.calls or other.calls


# Facts of statements, while one function is converted; the statements are kept so that their ids stay theirs.
_known: dict[int, tuple[ast.AST, _Facts]] = {}


@contextmanager
def remembered_names() -> Iterator[None]:
    """Remembers the names of statements: the statements of one function, which do not change meanwhile."""
    global _known
    before, _known = _known, {}
    try:
        yield
    finally:
        _known = before


def _facts_of(node: ast.AST) -> _Facts:
    known = _known.get(id(node))
    if known is not None:
        return known[1]
    facts = _Facts()
    _collect(node, facts)
    if isinstance(node, ast.stmt):
        _known[id(node)] = (node, facts)
    return facts


def _collect(node: ast.AST, facts: _Facts) -> None:
    """Adds the names of node to facts."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            facts.read.add(node.id)
        else:
            _bind(node, node.id, facts)
            facts.stores[node.id] += 1
            if isinstance(node.ctx, ast.Del):
                facts.read.add(node.id)
        return
    if isinstance(node, _SCOPES):
        _collect_scope(node, facts)
        return
    if isinstance(node, _COMPREHENSIONS):
        _collect_comprehension(node, facts)
        return
    _collect_binding(node, facts)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            facts.add(_facts_of(child))
        else:
            _collect(child, facts)


def _bind(node: ast.AST, name: str, facts: _Facts) -> None:
    facts.bound.add(name)
    if hasattr(node, "lineno"):
        facts.places.setdefault(name, (node.lineno, node.col_offset))  # type: ignore[attr-defined]


def _collect_binding(node: ast.AST, facts: _Facts) -> None:
    """Adds the names that a node binds or changes by itself."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        facts.bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        facts.bound.add(node.name)
    elif isinstance(node, ast.MatchMapping) and node.rest:
        facts.bound.add(node.rest)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        facts.read.add(node.target.id)
        facts.augmented[node.target.id] += 1
    elif isinstance(node, ast.Call):
        facts.calls = True


def _collect_scope(node: ast.AST, facts: _Facts) -> None:
    """Adds the names of a nested function or class: its own name, and those that it reads."""
    facts.read |= _names_read_in(node)
    facts.calls = facts.calls or any(isinstance(part, ast.Call) for part in ast.walk(node))
    if isinstance(node, ast.Lambda):
        return
    facts.bound.add(node.name)  # type: ignore[attr-defined]
    for part in [*node.decorator_list, *getattr(node, "bases", [])]:  # type: ignore[attr-defined]
        facts.bound |= _facts_of(part).bound


def _collect_comprehension(node: ast.AST, facts: _Facts) -> None:
    """Adds the names of a comprehension, which binds its targets in its own scope, but := in the function's."""
    facts.read |= _names_read_in(node)
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr):
            _bind(part.target, part.target.id, facts)
        elif isinstance(part, ast.Call):
            _collect_binding(part, facts)


def _names_read_in(node: ast.AST) -> set[str]:
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store)}
    return found | {
        part.target.id
        for part in ast.walk(node)
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
    }


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that the nodes bind or delete in their own function."""
    return set().union(*(_facts_of(node).bound for node in nodes))


def rebound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that the nodes bind otherwise than by an augmented assignment."""
    whole = _Facts()
    for node in nodes:
        whole.add(_facts_of(node))
    return {name for name in whole.bound if whole.stores.get(name, 1) > whole.augmented.get(name, 0)}


def binding_places(nodes: Iterable[ast.AST]) -> dict[str, tuple[int, int]]:
    """Returns line and column of the first binding of each name."""
    found: dict[str, tuple[int, int]] = {}
    for node in nodes:
        for name, place in _facts_of(node).places.items():
            found.setdefault(name, place)
    return found


def has_calls(nodes: Iterable[ast.AST]) -> bool:
    """Whether the nodes call anything."""
    return any(_facts_of(node).calls for node in nodes)


def _in_scope(node: ast.AST) -> Iterable[ast.AST]:
    """Yields node and its parts that belong to the same function."""
    yield node
    if isinstance(node, _SCOPES):
        return
    for child in ast.iter_child_nodes(node):
        yield from _in_scope(child)


def read_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that the nodes read, also in nested functions."""
    return set().union(*(_facts_of(node).read for node in nodes))


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
