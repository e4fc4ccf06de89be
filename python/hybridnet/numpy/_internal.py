"""Operators behind ``mx.np`` by their names in MXNet, such as ``np._internal.boolean_mask_assign_scalar``."""

from __future__ import annotations

from typing import Any

from ..errors import AttributeError as HybridNetAttributeError
from ._operators import np_operator

__all__ = ["boolean_mask_assign_scalar", "boolean_mask_assign_tensor"]


def boolean_mask_assign_scalar(data: Any, mask: Any, value: Any = 0, start_axis: int = 0, out: Any = None) -> Any:
    """Writes value into data where mask, which covers axes from start_axis on, is True; out=data writes in place."""
    target = data.copy() if out is None else out
    if out is not None and out is not data:
        target[()] = data
    target[(slice(None),) * start_axis + (mask,)] = value
    return target


boolean_mask_assign_tensor = boolean_mask_assign_scalar


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise HybridNetAttributeError(f"module 'hybridnet.numpy._internal' has no attribute {name!r}")
    return np_operator(f"_npi_{name}")
