"""Names that MXNet keeps in one file and HybridNet in several: programs import them from where MXNet has them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .errors import AttributeError as HybridNetAttributeError

__all__ = ["names_from", "no_attribute"]


def no_attribute(module: str, name: str) -> HybridNetAttributeError:
    """The error of a module that has no such name."""
    return HybridNetAttributeError(f"module {module!r} has no attribute {name!r}")


def names_from(
    module: str,
    places: Mapping[str, str] | None = None,
    modules: Mapping[str, str] | str = "",
    missing: Mapping[str, tuple[str, str]] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module: looks names up in other modules when they are first used.

    module: ``__name__`` of the module. places: name of a module beside it (``"..x"``: beside its package; of a package:
    a module in it), and the names that are found there, in one text. Public ones are added to the module's ``__all__``.
    modules: names of submodules that are imported when they are used, in one text, or short names and places.
    missing: names of MXNet that are not there, each with the reason and with what to use instead.
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
        variables[name] = value  # found at once from now on
        return value

    def __dir__() -> list[str]:
        return sorted({*variables, *homes, *submodules})

    return __getattr__, __dir__
