"""The names that ``dir()`` lists for the modules of the package: their own, not those that they import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

__all__ = ["dir_of"]

_PACKAGE = __name__.partition(".")[0]
# Functions of these modules are tools of the package; users have no use for them.
_TOOLS = frozenset(
    f"{_PACKAGE}.{name}"
    for name in (
        *("_files", "_keywords", "_lazy_names", "_public_names", "_user_line"),
        *("ops._namespace", "symbol._mirror"),
    )
)
_CONSTANTS = (bool, int, float, str, bytes, tuple, list, dict, set, frozenset)


def _is_of_package(name: str) -> bool:
    return name == _PACKAGE or name.startswith(_PACKAGE + ".")


def _is_own(module: str, name: str, value: Any) -> bool:
    """Whether a public variable of a module without ``__all__`` is a name of the package."""
    if isinstance(value, ModuleType):
        return value.__name__.startswith(module + ".")
    if isinstance(value, _CONSTANTS):
        return True
    if type(value).__module__ == "typing":  # a TypeVar or an alias, which has the module of its definition
        return False
    owner = getattr(value, "__module__", None)
    if not isinstance(owner, str) or not _is_of_package(owner) or owner in _TOOLS:
        return False
    # Error classes that have the names of builtins are imported under other names.
    return not (isinstance(value, type) and name == "HybridNet" + value.__name__)


def dir_of(
    module: str, base: Callable[[], list[str]] | None = None, also: Iterable[str] = ()
) -> Callable[[], list[str]]:
    """Returns ``__dir__`` of a module: ``__all__``, submodules, and the names with two underscores.

    A module without ``__all__`` has the functions and classes of the package that are among its variables, and its
    constants. base: a ``__dir__`` that lists names which are made on first use, too. also: further variables. Called at
    the end of the module: names that are bound later, on first use or by a user, are listed.
    """
    variables = vars(sys.modules[module])
    imported = frozenset(variables)

    def __dir__() -> list[str]:
        exported = variables.get("__all__")
        names = {*also, *(exported or ()), *variables.keys() - imported}
        if base is not None:
            names.update(set(base()) - imported)
        for name, value in list(variables.items()):
            if (exported is None or isinstance(value, ModuleType)) and _is_own(module, name, value):
                names.add(name)
        return sorted(name for name in {*names, *variables} if (name in names and name[0] != "_") or name[:2] == "__")

    return __dir__
