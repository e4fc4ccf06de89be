"""CachedOp: a Symbol compiled once and run many times, used by hybridized blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from ..symbol.symbol import Symbol

__all__ = ["CachedOp"]


class CachedOp:
    """Runs the graph of a Symbol on arrays given in the order of ``sym.list_inputs()``, recorded as one step.

    flags: (name, value) pairs; ``static_alloc`` is used, the others of MXNet are accepted.
    """

    def __init__(self, sym: Symbol, flags: Iterable[tuple[str, Any]] = ()) -> None:
        chosen = {name: str(value).lower() in ("1", "true") for name, value in dict(flags).items()}
        self.symbol = sym
        self._op = _core.CachedOp(sym, static_alloc=chosen.get("static_alloc", False))

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Returns one array, or a list of them if the graph has several outputs; out: arrays to write them into."""
        return self._op(*args, out=out)

    def get_optimized_symbol(self) -> Symbol:
        """Returns the original graph, because an optimized plan is not a Symbol."""
        return self.symbol
