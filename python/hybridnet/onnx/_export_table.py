"""The table of HybridNet's operators for the export: for each, the function that makes ONNX nodes of it.

A form is a function ``form(g, node)``: ``g`` is the :class:`Exporter`, ``node`` a :class:`NodeUse` with the inputs as
Tensors. It returns a Tensor, or a tuple with one item per output that may be read. Results are cast to the dtype that
the graph has for them. The files of ``exports`` register theirs with :func:`export_form`. Operators that are composed
of others need no form. REASONS has a few words for each operator that ONNX cannot express.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from .. import _core

__all__ = ["REASONS", "export_form", "exported_operators", "find_form", "is_composed", "no_form", "reason_of"]

ExportForm = Callable[[Any, Any], Any]

_FORMS: dict[str, ExportForm] = {}
REASONS: dict[str, str] = {}


def export_form(*names: str) -> Callable[[ExportForm], ExportForm]:
    """Registers the form of operators by their registered names."""

    def register(function: ExportForm) -> ExportForm:
        for name in names:
            assert name not in _FORMS, name
            _FORMS[name] = function
        return function

    return register


def no_form(reason: str, names: str) -> None:
    """Notes why operators have no form; names: separated by spaces."""
    for name in names.split():
        assert name not in REASONS, name
        REASONS[name] = reason


def _load() -> None:
    from . import _exports

    if not _FORMS:
        for module in pkgutil.iter_modules(_exports.__path__):
            importlib.import_module(f"{_exports.__name__}.{module.name}")


def find_form(op: str) -> ExportForm | None:
    """The form of an operator; None: it has none."""
    _load()
    return _FORMS.get(op)


def is_composed(op: str) -> bool:
    """Whether the operator is defined by others."""
    return bool(_core.describe_op(op)["composed"])


def reason_of(op: str) -> str | None:
    """Why an operator has no form; None: it has one, or is composed of others."""
    found = find_form(op)
    if op in REASONS or found is not None:
        return REASONS.get(op)
    described = _core.describe_op(op)
    if described["composed"] or not described["internal"]:
        return None
    return "gradients, or passes that run after an export has read the graph, make it"


def exported_operators() -> list[str]:
    """Names of all operators that have a form, sorted."""
    _load()
    return sorted(_FORMS)
