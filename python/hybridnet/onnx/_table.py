"""The table of ONNX operators: for each, the function that makes HybridNet nodes of it.

A form is a function ``form(g, node, *inputs)``: ``g`` is the :class:`Importer` that walks the graph, ``node`` a
:class:`NodeView`, the inputs are Values (None where an optional input is absent, or a list of Values for a sequence).
It returns a Value, or a tuple with one item per output. The files of ``_forms`` register theirs with :func:`form`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

__all__ = ["BYTE_FORMS", "find", "find_on_bytes", "find_on_sizes", "form", "known", "on_bytes", "on_sizes"]

Form = Callable[..., Any]

_FORMS: dict[tuple[str, str], Form] = {}
# Forms that users register, before or after those of _forms are loaded: they are preferred.
_OF_USERS: dict[tuple[str, str], Form] = {}
# Operators whose results for arrays of sizes are arrays of sizes; see _forms/sizes.py.
SIZE_FORMS: dict[str, Form] = {}
# Operators that compute with bytes where their inputs were dequantized; see _forms/byte_layers.py.
BYTE_FORMS: dict[str, Form] = {}
_DOMAINS = {"ai.onnx": "", "com.microsoft": "com.microsoft"}


def form(*names: str, domain: str = "") -> Callable[[Form], Form]:
    """Registers the form of ONNX operators, of all versions: a form asks node.version where versions differ.

    A form of yours takes the place of one that was registered before, and of the library's own.
    """

    def register(function: Form) -> Form:
        is_own = function.__module__.startswith(f"{__package__}._forms.")
        table = _FORMS if is_own else _OF_USERS
        for name in names:
            key = (_DOMAINS.get(domain, domain), name)
            assert not is_own or key not in table, name
            table[key] = function
        return function

    return register


def on_sizes(*names: str) -> Callable[[Form], Form]:
    """Registers how operators compute with sizes: function(g, node, *values) -> [(array of object, dtype)], or None.

    The list has one item per output; None: the result is not a small array of sizes.
    """

    def register(function: Form) -> Form:
        for name in names:
            SIZE_FORMS[name] = function
        return function

    return register


def on_bytes(*names: str) -> Callable[[Form], Form]:
    """Registers a function that is tried before the form, for inputs of DequantizeLinear; None: the form is called."""

    def register(function: Form) -> Form:
        for name in names:
            BYTE_FORMS[name] = function
        return function

    return register


@functools.cache
def _load() -> None:
    from . import _forms

    for module in pkgutil.iter_modules(_forms.__path__):
        importlib.import_module(f"{_forms.__name__}.{module.name}")


def find(domain: str, name: str) -> Form | None:
    """The form of an operator; None: it has none."""
    _load()
    key = (_DOMAINS.get(domain, domain), name)
    return _OF_USERS.get(key) or _FORMS.get(key)


def find_on_sizes(domain: str, name: str) -> Form | None:
    """How an operator computes with arrays of sizes; None: it makes nodes only."""
    _load()
    return None if domain or ("", name) in _OF_USERS else SIZE_FORMS.get(name)


def find_on_bytes(domain: str, name: str) -> Form | None:
    """The function that is tried before the form of an operator for inputs of DequantizeLinear; None: there is none."""
    _load()
    return None if domain or ("", name) in _OF_USERS else BYTE_FORMS.get(name)


def known() -> list[tuple[str, str]]:
    """(domain, name) of all operators that have a form, sorted."""
    _load()
    return sorted({**_FORMS, **_OF_USERS})
