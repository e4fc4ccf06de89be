"""The source of a function as a syntax tree, with the lines and columns of its file."""

from __future__ import annotations

import ast
import inspect
import linecache
import types
from typing import Any

__all__ = ["NoSource", "tree_of"]


class NoSource(Exception):
    """The source of a function cannot be read; the text says why."""


def tree_of(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """Returns the definition of function, without decorators. Raises NoSource if there is none or it has changed."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise NoSource(f"the file {code.co_filename} cannot be read")
    if not 0 < code.co_firstlineno <= len(lines):
        raise NoSource(f"the file {code.co_filename} has changed since it was imported")
    found = _lambda(code, lines) if code.co_name == "<lambda>" else _definition(code, lines)
    _check_is_unchanged(found, code)
    return found


def _definition(code: types.CodeType, lines: list[str]) -> ast.FunctionDef:
    start = code.co_firstlineno - 1
    try:
        block = inspect.getblock(lines[start:])
        # An indented block is put below an if instead of being dedented, which would change multi-line strings.
        indented = block[0][:1].isspace()
        tree = ast.parse("".join(["if 1:\n", *block] if indented else block))
    except (SyntaxError, IndexError, inspect.EndOfBlock) as error:
        raise NoSource(f"the lines from {code.co_filename}:{code.co_firstlineno} are no function: {error}") from None
    node: Any = tree.body[0].body[0] if indented else tree.body[0]  # type: ignore[attr-defined]
    if isinstance(node, ast.AsyncFunctionDef):
        raise NoSource("it is an async function")
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        raise NoSource(f"the file {code.co_filename} has changed since it was imported")
    ast.increment_lineno(node, start - 1 if indented else start)
    node.decorator_list = []
    return node


def _lambda(code: types.CodeType, lines: list[str]) -> ast.Lambda:
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError as error:
        raise NoSource(f"the file {code.co_filename} cannot be parsed: {error}") from None
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and node.lineno <= code.co_firstlineno <= (node.end_lineno or node.lineno)
    ]
    found = [node for node in found if _arguments(node.args) == _names_of_arguments(code)]
    if len(found) > 1 and hasattr(code, "co_positions"):
        spots = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
        found = [node for node in found if all(_contains(node.body, spot) for spot in spots)] or found
        found = [min(found, key=lambda node: _extent(node.body))]
    if len(found) != 1:
        raise NoSource(f"{len(found)} lambdas with these arguments are on line {code.co_firstlineno}")
    return found[0]


def _contains(node: ast.expr, spot: tuple[int, int]) -> bool:
    start, end = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return start <= spot <= end


def _extent(node: ast.expr) -> tuple[int, int]:
    return (node.end_lineno or node.lineno) - node.lineno, (node.end_col_offset or 0) - node.col_offset


def _arguments(given: ast.arguments) -> list[str]:
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return names + [argument.arg for argument in (given.vararg, given.kwarg) if argument is not None]


def _names_of_arguments(code: types.CodeType) -> list[str]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return list(code.co_varnames[:count])


def _check_is_unchanged(node: ast.FunctionDef | ast.Lambda, code: types.CodeType) -> None:
    """Raises NoSource unless the names, attributes and numbers in the source are those of the code."""
    names, numbers = _contents(code)
    for part in ast.walk(node):
        missing = False
        if isinstance(part, ast.Name):
            missing = part.id not in names and not part.id.startswith("__")
        elif isinstance(part, ast.Attribute):
            missing = part.attr not in names and not part.attr.startswith("__")
        elif isinstance(part, ast.Constant) and type(part.value) is float:
            missing = part.value not in numbers and -part.value not in numbers and bool(numbers)
        if missing and not _is_annotation_or_dead(node, part):
            raise NoSource(f"the file {code.co_filename} has changed since it was imported")


def _is_annotation_or_dead(node: ast.AST, part: ast.AST) -> bool:
    """Whether part belongs to an annotation, a default value, or code that the compiler may drop or fold."""
    for outer in ast.walk(node):
        skipped: list[Any] = []
        if isinstance(outer, ast.arguments):
            skipped = [*outer.defaults, *outer.kw_defaults]
        elif isinstance(outer, (ast.arg, ast.AnnAssign)):
            skipped = [outer.annotation]
        elif isinstance(outer, ast.FunctionDef):
            skipped = [outer.returns]
        elif isinstance(outer, (ast.BinOp, ast.UnaryOp)):
            skipped = [outer] if all(isinstance(leaf, _FOLDED) for leaf in ast.walk(outer)) else []
        elif isinstance(outer, (ast.If, ast.While, ast.IfExp)) and isinstance(outer.test, (ast.Constant, ast.Name)):
            constant = isinstance(outer.test, ast.Constant) or outer.test.id == "__debug__"
            skipped = [outer] if constant else []
        elif isinstance(outer, ast.Assert):
            skipped = [outer]
        if any(part is leaf for root in skipped if root is not None for leaf in ast.walk(root)):
            return True
    return False


_FOLDED = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


def _contents(code: types.CodeType) -> tuple[set[str], set[Any]]:
    names = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    names |= {name.split("__", 1)[-1] and "__" + name.split("__", 1)[-1] for name in names if name.startswith("_")}
    numbers: set[Any] = set()
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            below = _contents(value)
            names |= below[0]
            numbers |= below[1]
        else:
            numbers |= {leaf for leaf in _leaves(value) if isinstance(leaf, (int, float))}
    return names, numbers


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, frozenset)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
