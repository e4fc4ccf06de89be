"""Public names of operators: nd.X, nd.random.X, nd.linalg.X, nd.contrib.X, nd.image.X, nd._internal.X.

Functions are created on first use, so that importing has no cost per operator.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .. import _core
from .._lazy_names import no_attribute

__all__ = ["forget_names", "function", "lazy_functions", "public_names"]

_PREFIXES = {
    "_random_": "random",
    "_linalg_": "linalg",
    "_contrib_": "contrib",
    "_image_": "image",
    "_sparse_": "sparse",
}
# Operators with NumPy's interface, hidden in nd and sym.
_NUMPY_PREFIXES = ("_np_", "_npi_", "_npx_")


@cache
def _sections() -> dict[str, dict[str, str]]:
    """Maps section ('' for the main one) -> public name -> operator name."""
    sections: dict[str, dict[str, str]] = {"": {}, "_internal": {}, **{name: {} for name in _PREFIXES.values()}}
    for primary, aliases, internal in _core.op_names():
        for name in (primary, *aliases):
            section, public = _place(name)
            if internal:
                section, public = "_internal", name
            sections[section].setdefault(public, primary)
            if name.startswith("_"):
                sections["_internal"].setdefault(name, primary)
    return sections


def _place(name: str) -> tuple[str, str]:
    if not name.startswith("_"):
        return "", name
    for prefix, section in _PREFIXES.items():
        if name.startswith(prefix) and len(name) > len(prefix):
            return section, name[len(prefix) :]
    return "_internal", name


def public_names(section: str = "") -> dict[str, str]:
    """Maps public to operator names in a section: '', 'random', 'linalg', 'contrib', 'image', 'sparse', '_internal'."""
    return _sections()[section]


def forget_names() -> None:
    """Clears the cached names after operators were added."""
    _sections.cache_clear()


def function(section: str, name: str, module: str, *, symbolic: bool) -> Any:
    """Returns the function object of a public name. Raises AttributeError naming the module."""
    names = public_names(section)
    if name not in names:
        raise no_attribute(module, name)
    return _core.op_function(names[name], name, module, symbolic=symbolic)


def lazy_functions(
    variables: dict[str, Any], section: str, *, symbolic: bool, fallback: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` for a module with globals ``variables``; fallback: a second section."""
    module = variables["__name__"]

    def module_getattr(name: str) -> Any:
        if name.startswith("__"):
            raise no_attribute(module, name)
        source = fallback if fallback is not None and name not in public_names(section) else section
        made = function(source, name, module, symbolic=symbolic)
        variables[name] = made
        return made

    def module_dir() -> list[str]:
        names = set(variables) | set(public_names(section))
        if fallback is not None:
            names |= set(public_names(fallback))
        return sorted(name for name in names if not name.startswith(_NUMPY_PREFIXES))

    return module_getattr, module_dir
