"""Mirrors: modules of Symbols with NumPy's interface: the array functions, which create nodes even without inputs."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from .. import _core
from .._lazy_names import no_attribute

__all__ = ["mirror"]


def _making_nodes(function: Any, module: str) -> Any:
    """Wraps function so that its operators create nodes even without inputs."""

    @functools.wraps(function)
    def symbolic(*args: Any, **kwargs: Any) -> Any:
        before = _core.set_symbolic_calls(True)
        try:
            return function(*args, **kwargs)
        finally:
            _core.set_symbolic_calls(before)

    symbolic.__module__ = module
    return symbolic


def mirror(module: str, source: str, modules: str = "") -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` of a module with the functions of `source`.

    module: its ``__name__``. source: name of a module for arrays. modules: names of submodules, separated by spaces.
    """
    variables = vars(sys.modules[module])

    def __getattr__(name: str) -> Any:
        if name in modules.split():
            return importlib.import_module(f"{module}.{name}")
        array_module = importlib.import_module(source)
        if name.startswith("_") or not hasattr(array_module, name):
            raise no_attribute(module, name)
        found = getattr(array_module, name)
        made = _making_nodes(found, module) if type(found) is type(_making_nodes) else found
        variables[name] = made
        return made

    def __dir__() -> list[str]:
        array_module = importlib.import_module(source)
        return sorted({*variables, *modules.split(), *(n for n in dir(array_module) if not n.startswith("_"))})

    return __getattr__, __dir__
