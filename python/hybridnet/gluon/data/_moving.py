"""Moves batches to another device."""

from __future__ import annotations

from typing import Any

from ... import ndarray
from ...context import Context

__all__ = ["_as_in_context"]


def _as_in_context(data: Any, ctx: Context) -> Any:
    """Moves the arrays of the batch, also those inside lists, tuples and dicts, to ctx."""
    if isinstance(data, ndarray.NDArray):
        return data.as_in_context(ctx)
    if isinstance(data, dict):
        return {key: _as_in_context(value, ctx) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(_as_in_context(part, ctx) for part in data))
    return [_as_in_context(part, ctx) for part in data] if isinstance(data, (list, tuple)) else data
