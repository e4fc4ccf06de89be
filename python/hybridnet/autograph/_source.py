"""The source of a function as a syntax tree, with the lines and columns of its file."""

from __future__ import annotations
import __future__

import ast
import dis
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
    _check_is_unchanged(found, function)
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


def _check_is_unchanged(node: ast.FunctionDef | ast.Lambda, function: types.FunctionType) -> None:
    """Raises NoSource unless the source, compiled again, is the code of the function."""
    code = function.__code__
    made = _compiled(node, code)
    if made is not None and _is_same(made, code):
        return
    # pytest rewrites assert statements of test files: the code has more than the source there.
    if "@pytest_ar" in function.__globals__ and made is not None and _contents(made) <= _contents(code):
        return
    raise NoSource(f"the file {code.co_filename} has changed since it was imported")


def _compiled(node: ast.FunctionDef | ast.Lambda, code: types.CodeType) -> types.CodeType | None:
    """Returns the code of a definition with the free variables of another code."""
    definition: ast.stmt = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    module = ast.parse(f"def around({', '.join(code.co_freevars)}):\n  pass")
    module.body[0].body = [ast.copy_location(definition, node)]  # type: ignore[attr-defined]
    flags = code.co_flags & sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
    whole = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    around = next(part for part in whole.co_consts if isinstance(part, types.CodeType))
    return next((part for part in around.co_consts if isinstance(part, types.CodeType)), None)


def _is_same(one: types.CodeType, two: types.CodeType) -> bool:
    return _contents(one) == _contents(two) and (one.co_code == two.co_code or _operations(one) == _operations(two))


def _operations(code: types.CodeType) -> list[Any]:
    """Returns the operations of code. Calls of methods differ by whether the module imports the name before the dot."""
    found: list[Any] = []
    for part in dis.get_instructions(code):
        if part.opname in ("PRECALL", "PUSH_NULL", "CALL_METHOD", "CALL_FUNCTION", "CALL", "EXTENDED_ARG", "NOP"):
            continue
        if isinstance(part.argval, types.CodeType):
            found += _operations(part.argval)
        name = "LOAD_ATTR" if part.opname == "LOAD_METHOD" else part.opname.split("_IF_")[0]
        has_value = part.opcode not in (*dis.hasjrel, *dis.hasjabs) and not isinstance(part.argval, types.CodeType)
        found.append((name, repr(part.argval).replace("NULL + ", "") if has_value else ""))
    return found


def _contents(code: types.CodeType) -> set[Any]:
    """Returns the names and constants of code and of the functions inside it."""
    found: set[Any] = {_unmangled(name) for name in (*code.co_names, *code.co_varnames)}
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            found |= _contents(value)
        else:
            found |= {(type(leaf), repr(leaf)) for leaf in _leaves(value) if "<locals>" not in repr(leaf)}
    return found


def _unmangled(name: str) -> str:
    """Returns a private name without the class that Python puts before it."""
    return "__" + name[1:].split("__", 1)[1] if name.startswith("_") and "__" in name[1:] else name


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, frozenset)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
