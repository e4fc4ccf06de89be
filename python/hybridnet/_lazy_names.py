"""Names that MXNet keeps in one file and HybridNet in several: programs import them from where MXNet has them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["names_from"]


def names_from(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: looks names up in other modules when they are first asked for.

    module: ``__name__`` of the module. places: name of a module beside it (``"..x"``: beside its package), and the
    names that are found there, in one text. They are added to the module's ``__all__``. Raises AttributeError for other
    names.
    """
    homes = {name: place for place, names in places.items() for name in names.split()}
    exported = getattr(sys.modules[module], "__all__", [])
    exported.extend(name for name in homes if name not in exported)
    package = module.rpartition(".")[0]

    def __getattr__(name: str) -> Any:
        place = homes.get(name)
        if place is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        source = importlib.import_module(place if place.startswith(".") else f".{place}", package)
        value = getattr(source, name)
        setattr(sys.modules[module], name, value)  # found at once from now on
        return value

    return __getattr__
