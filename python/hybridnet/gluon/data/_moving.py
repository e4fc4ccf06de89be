"""Batches on another device."""

from __future__ import annotations

from typing import Any

from ... import ndarray
from ...context import Context

__all__ = ["_as_in_context"]


def _as_in_context(data: Any, ctx: Context) -> Any:
    """The batch with its arrays, also those inside lists and tuples, moved to ctx."""
    if isinstance(data, ndarray.NDArray):
        return data.as_in_context(ctx)
    return [_as_in_context(part, ctx) for part in data] if isinstance(data, (list, tuple)) else data
