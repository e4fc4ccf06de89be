"""Lazy names: MXNet keeps them in one file, HybridNet in several; programs import them from MXNet's place."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .errors import AttributeError as HybridNetAttributeError

__all__ = ["names_from", "no_attribute"]


def no_attribute(module: str, name: str) -> HybridNetAttributeError:
    """Returns the error for a name that a module does not have."""
    return HybridNetAttributeError(f"module {module!r} has no attribute {name!r}")


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
