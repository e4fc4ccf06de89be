"""Converted functions: one conversion per code object, one function per closure."""

from __future__ import annotations
import __future__ as _future

import ast
import functools
import os
import sys
import sysconfig
import threading
import types
from typing import Any

import numpy as np

from .._tracing import is_own_file
from ._convert import FUNCTION, MODULE, SITES, Site, convert_tree
from ._source import NoSource, tree_of

__all__ = ["SKIP", "converted", "converted_method", "reason_at", "set_verbosity", "to_code"]

SKIP = "_hybridnet_autograph_skip"
_FUTURE = functools.reduce(
    lambda flags, name: flags | getattr(_future, name).compiler_flag, _future.all_feature_names, 0
)
_LIBRARIES = tuple(
    os.path.realpath(path) + os.sep
    for path in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.dirname(np.__file__)}
)
_SITE_PACKAGES = tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib"))
# Packages whose functions know nothing of graphs; others, such as libraries of models, are converted.
_PACKAGES = frozenset(
    (
        *("numpy", "scipy", "pandas", "torch", "torchvision", "tensorflow", "jax", "onnx", "onnxruntime", "matplotlib"),
        *("PIL", "sklearn", "tqdm", "pytest", "_pytest", "pluggy", "coverage", "IPython", "ipykernel", "requests"),
    )
)


class _Conversion:
    """The converted code of one function and what its globals need."""

    def __init__(self, code: types.CodeType, sites: tuple[Site, ...], module: ast.Module) -> None:
        self.code, self.sites, self.module = code, sites, module


_lock = threading.RLock()
# Code objects of equal text are equal, also those of different files.
_Key = tuple[types.CodeType, str]
_conversions: dict[_Key, _Conversion | str] = {}
_made: set[_Key] = set()
_unconverted: list[tuple[str, int, int, str]] = []  # file, first and last line, and reason
_log: list[Any] = [0]


def set_verbosity(level: int) -> None:
    """Sets how much the conversion reports on stderr: 0 nothing, 1 the name of each converted function, 2 its code."""
    _log[0] = int(level)


def converted(function: Any) -> Any:
    """Returns the converted form of a function of the program; other functions as they are."""
    if type(function) is not types.FunctionType:
        return function
    conversion = _conversion_of(function)
    if isinstance(conversion, str):
        return function
    return _bound(function, conversion)


def converted_method(method: Any) -> Any:
    """Returns the converted form of a bound method."""
    if isinstance(method, types.MethodType):
        function = converted(method.__func__)
        return method if function is method.__func__ else types.MethodType(function, method.__self__)
    return converted(method)


def reason_at(file: str, line: int) -> str:
    """Returns the reason why the function around a line was not converted; "" if it was, or if it is unknown."""
    for (code, _), found in _conversions.items():
        if code.co_filename == file and isinstance(found, str):
            lines = [number for _, _, number in code.co_lines() if number]
            if lines and code.co_firstlineno <= line <= max(lines):
                return f"{code.co_name} was not converted: {found}"
    for name, first, last, reason in _unconverted:
        if name == file and first <= line <= last:
            return f"the code was not converted: {reason}"
    reason = _library_reason(file)
    return f"the code was not converted: {reason}" if reason else ""


def to_code(function: Any) -> str:
    """Returns the source of the converted form of a function or method.

    Raises ValueError, with the reason, if it cannot be converted.
    """
    from ..errors import ValueError as HybridNetValueError

    function = getattr(function, "__func__", function)
    function = getattr(function, "__wrapped__", function)
    conversion = _conversion_of(function) if type(function) is types.FunctionType else "it is no function of Python"
    if isinstance(conversion, str):
        raise HybridNetValueError("mx.autograph.to_code", because=conversion, fix="pass a function defined in a file")
    inner = conversion.module.body[0].body[0]  # type: ignore[attr-defined]
    text = ast.unparse(inner)
    name = function.__name__ if function.__name__.isidentifier() else "function"
    return text.replace(f"def {FUNCTION}(", f"def {name}(", 1)


def _conversion_of(function: types.FunctionType) -> _Conversion | str:
    code = function.__code__
    if (code, code.co_filename) in _made:
        return "it is already converted"
    found = _conversions.get((code, code.co_filename))
    if found is None:
        with _lock:
            found = _conversions.get((code, code.co_filename))
            if found is None:
                found = _conversions[code, code.co_filename] = _convert(function)
    if not getattr(function, SKIP, False):
        return found
    reason = "it has the decorator mx.autograph.skip"
    lines = [line for _, _, line in code.co_lines() if line]
    place = (code.co_filename, code.co_firstlineno, max(lines, default=code.co_firstlineno), reason)
    if place not in _unconverted:
        _unconverted.append(place)
    return reason


def _library_reason(file: str) -> str:
    if file.startswith("<") and not file.startswith("<ipython"):
        return "its source is not in a file"
    if is_own_file(file):
        return "it belongs to hybridnet"
    real = os.path.realpath(file)
    for folder in _SITE_PACKAGES:
        if real.startswith(folder):
            package = real[len(folder) :].split(os.sep)[0].removesuffix(".py")
            return f"it belongs to the library {package}" if package in _PACKAGES else ""
    if real.startswith(_LIBRARIES):
        return "it belongs to a library"
    return ""


def _convert(function: types.FunctionType) -> _Conversion | str:
    code = function.__code__
    if reason := _library_reason(code.co_filename):
        return reason
    if code.co_flags & (0x20 | 0x80 | 0x100 | 0x200):
        return "it is a generator or a coroutine"
    try:
        tree = tree_of(function)
    except NoSource as error:
        return str(error)
    module, sites, generators = convert_tree(tree, code.co_filename, code.co_freevars, _class_name(function))
    compiled = compile(module, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    factory = next(part for part in compiled.co_consts if isinstance(part, types.CodeType))
    inner = next(part for part in factory.co_consts if isinstance(part, types.CodeType))
    names = {"co_name": code.co_name}
    if sys.version_info >= (3, 11):
        names["co_qualname"] = code.co_qualname
    inner = inner.replace(**names)  # type: ignore[arg-type]
    _note_made(inner)
    _unconverted.extend((code.co_filename, *lines, "it is a generator") for lines in generators)
    if _log[0]:
        text = f"autograph: converted {function.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
        print(text if _log[0] < 2 else f"{text}\n{ast.unparse(module.body[0].body[0])}", file=sys.stderr)  # type: ignore[attr-defined]
    return _Conversion(inner, tuple(sites), module)


def _note_made(code: types.CodeType) -> None:
    _made.add((code, code.co_filename))
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            _note_made(part)


def _class_name(function: types.FunctionType) -> str:
    parts = function.__qualname__.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else ""


def _bound(function: types.FunctionType, conversion: _Conversion) -> types.FunctionType:
    from . import _runtime

    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[MODULE], cells[SITES] = types.CellType(_runtime), types.CellType(conversion.sites)
    closure = tuple([cells[name] for name in conversion.code.co_freevars])
    made = types.FunctionType(conversion.code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    made.__dict__.update(function.__dict__)
    return made
