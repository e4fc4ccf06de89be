"""Moves batches to another device."""

from __future__ import annotations

from typing import Any

from ... import ndarray
from ...context import Context

__all__ = ["_as_in_context"]


def _as_in_context(data: Any, ctx: Context) -> Any:
    """Moves the arrays of the batch, also those inside lists and tuples, to ctx."""
    if isinstance(data, ndarray.NDArray):
        return data.as_in_context(ctx)
    return [_as_in_context(part, ctx) for part in data] if isinstance(data, (list, tuple)) else data
