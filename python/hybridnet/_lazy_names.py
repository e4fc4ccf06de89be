"""Lazy names: MXNet keeps them in one file, HybridNet in several; programs import them from MXNet's place."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from ._user_line import is_own_file
from .errors import AttributeError as HybridNetAttributeError
from .errors import HybridNetError
from .errors import ImportError as HybridNetImportError

__all__ = ["names_from", "no_attribute", "refusing"]


def no_attribute(module: str, name: str) -> HybridNetError:
    """Returns the error for a name that a module does not have: ImportError for ``from module import name``.

    An AttributeError would be replaced by Python's own ImportError, which has no fix.
    """
    error: HybridNetError
    if _is_imported_from(name, sys._getframe(1)):
        error = HybridNetImportError(f"cannot import name {name!r} from {module!r}")
    else:
        error = HybridNetAttributeError(f"module {module!r} has no attribute {name!r}")
    if not name.startswith("_"):
        error.find_fix_later(lambda: _fix(module, name))
    return error


def _fix(module: str, name: str) -> str | None:
    from ._habits import module_fix

    return module_fix(module, name)


def _is_imported_from(name: str, frame: FrameType | None) -> bool:
    """Whether the program's frame, which is the first outside of the package, executes ``from module import name``."""
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or name not in frame.f_code.co_names:  # hasattr() and getattr() end here, cheaply
        return False
    from opcode import opmap

    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def refusing(module: str) -> Callable[[str], Any]:
    """Returns ``__getattr__`` of a module that has all of its names at import: it raises the error with the fix."""

    def __getattr__(name: str) -> Any:
        raise no_attribute(module, name)

    return __getattr__


def names_from(
    module: str,
    places: Mapping[str, str] | None = None,
    modules: Mapping[str, str] | str = "",
    missing: Mapping[str, tuple[str, str]] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` of a module, which look names up in other modules on first use.

    module: ``__name__`` of the module. places: maps a module beside it (``"..x"``: beside its package; of a package: a
    module in it) to the names in it, separated by spaces. Public names are added to the module's ``__all__``. modules:
    names of submodules that are imported on first use, separated by spaces, or a dict of short names and places.
    missing: MXNet names that do not exist here, each with the reason and the replacement.
    """
    homes = {name: place for place, names in (places or {}).items() for name in names.split()}
    submodules = {name: name for name in modules.split()} if isinstance(modules, str) else modules
    variables = vars(sys.modules[module])
    exported = variables.get("__all__", [])
    exported.extend(name for name in homes if name not in exported and not name.startswith("_"))
    package = module if "__path__" in variables else module.rpartition(".")[0]

    def imported(place: str) -> Any:
        return importlib.import_module(place if place.startswith(".") else f".{place}", package)

    def __getattr__(name: str) -> Any:
        if name in homes:
            value = getattr(imported(homes[name]), name)
        elif name in submodules:
            value = imported(submodules[name])
        elif missing and name in missing:
            reason, fix = missing[name]
            raise HybridNetAttributeError(f"module {module!r} has no attribute {name!r}", because=reason, fix=fix)
        else:
            raise no_attribute(module, name)
        variables[name] = value  # later lookups find it directly
        return value

    def __dir__() -> list[str]:
        return sorted({*variables, *homes, *submodules})

    return __getattr__, __dir__
