"""Operators whose names begin with an underscore, creating nodes."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..ops._namespace import lazy_functions


def _CachedOp(*args: Any, subgraph: str, **flags: Any) -> Any:
    """Returns the outputs of a graph in symbol JSON, with its variables replaced in the order of list_inputs()."""
    return _core.symbol_composed(_core.symbol_from_json(subgraph, "subgraph"), list(args), {})


__getattr__, __dir__ = lazy_functions(globals(), "_internal", symbolic=True)
