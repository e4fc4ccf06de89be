"""Fixes for errors that Python itself raises at calls of the package, such as ``x.size()`` and unknown keywords.

The package cannot catch them: they come from the program's own line. Reports of uncaught errors add the fix.
"""

from __future__ import annotations

import inspect
import itertools
import linecache
import re
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["fix_of"]

_NOT_CALLABLE = re.compile(r"'(int|tuple|str|type|dtype.*|NDArray)' object is not callable")
_PROPERTY = re.compile(r"\.(size|shape|ndim|dtype|T|context|ctx|stype|grad)\(")
_KEYWORD = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")
_MISSING = re.compile(r"([\w.]+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: '(\w+)'")

_ATTRIBUTE_OF_METHOD = re.compile(r"'(?:function|method|builtin_function_or_method)' object has no attribute '\w+'")
_METHOD = re.compile(r"\.(grad|data|list_ctx|collect_params|asnumpy)\.")


def fix_of(error: BaseException) -> str | None:
    """Returns the fix for an error of Python, as a sentence without its end; None if none is known."""
    if not error.args or not isinstance(error.args[0], str):
        return None
    if type(error) is ModuleNotFoundError:
        return _of_import(error)
    text = error.args[0]
    if type(error) is AttributeError and _ATTRIBUTE_OF_METHOD.match(text):
        return _of_method(_source(error))
    if type(error) is not TypeError:
        return None
    if _NOT_CALLABLE.match(text):
        return _of_property(_source(error))
    if found := _KEYWORD.match(text):
        return _of_keyword(found[1], found[2])
    if found := _MISSING.match(text):
        return _of_missing(found[1], found[2], _source(error))
    return None


def _source(error: BaseException) -> str:
    """Returns the source of the expression that failed; of its line before Python 3.11."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    line = linecache.getline(code.co_filename, trace.tb_lineno)
    positions: Any = getattr(code, "co_positions", None)
    if positions is None:
        return line
    begin, end, column, end_column = next(itertools.islice(positions(), trace.tb_lasti // 2, None))
    if begin != end or column is None or end_column is None:
        return line
    return line.encode()[column:end_column].decode(errors="replace")


def _of_import(error: ModuleNotFoundError) -> str | None:
    """The fix for a module of another library that a program imports from the package."""
    from .._habits import replacement
    from .._habits._module_names import IMPORT_NAMES

    module = error.name or ""
    package, _, path = module.partition(".")
    if package != __name__.partition(".")[0] or path not in IMPORT_NAMES:
        return None
    trace, longest = error.__traceback__, path  # the error names the first module that is missing, the line all of them
    while trace is not None:
        line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        if found := re.search(rf"\b{re.escape(module)}[\w.]*", line):
            longest = found[0].partition(".")[2]
        trace = trace.tb_next
    return replacement(IMPORT_NAMES.get(longest) or IMPORT_NAMES[path])


def _of_method(source: str) -> str | None:
    """The fix for an attribute of a method, if the expression that failed has one that is called without arguments."""
    found = _METHOD.search(source)
    return found and f"{found[1]} is a method: write .{found[1]}() with parentheses"


def _of_property(source: str) -> str | None:
    """The fix for the call of a property, if the expression that failed calls one."""
    found = _PROPERTY.search(source)
    if found is None:
        return None
    name = found[1]
    remark = {"size": ", the number of elements; one size is x.shape[0]", "grad": ", an array"}.get(name, "")
    return f"{name} is a property: write x.{name}{remark}"


def _of_keyword(path: str, word: str) -> str | None:
    from .._habits import keyword_fix, nearest

    function = _own_function(path)
    if function is None:
        return None
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    fix = keyword_fix(path.split("."), word, known)
    if fix is None and (near := nearest(word, known)):
        fix = f"did you mean {near}=..."
    return fix or f"it takes {', '.join(known) or 'no keywords'}"


def _of_missing(path: str, name: str, source: str) -> str | None:
    function = _own_function(path)
    if function is None:
        return None
    parameters = list(inspect.signature(function).parameters.values())
    shown = [p.replace(annotation=p.empty) for p in parameters if p.name != "self"][:6]
    called = re.match(r"\s*([\w.]+)\(", source)  # the class may have another name than users write
    call = called[1] if called else path.removesuffix(".__init__")
    more = ", ..." if len(shown) < len(parameters) - 1 else ""
    return f"give {name}: {call}({', '.join(map(str, shown))}{more})"


def _own_function(path: str) -> Callable[..., Any] | None:
    """Returns the function of the package with this qualified name; None if it has none, or several."""
    first, *rest = path.split(".")
    package = __name__.partition(".")[0]
    found: dict[int, Any] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package and first in getattr(module, "__dict__", ()):
            value = vars(module)[first]
            for part in rest:
                value = inspect.getattr_static(value, part, None)
            if inspect.isfunction(value) and value.__qualname__ == path and value.__module__.startswith(package):
                found[id(value)] = value
    return found.popitem()[1] if len(found) == 1 else None
