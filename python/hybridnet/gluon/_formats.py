"""MXNet's formats of nested lists of arrays: a number for a leaf and a list for a list.

0 means one array, -1 None, n > 0 a Symbol with n outputs. Libraries pass states of recurrent cells this way and store
formats in files; inside HybridNet a Nest has this role.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from .._control_flow import nests
from .._control_flow.nests import Nest
from ..errors import ValueError as HybridNetValueError
from ..ndarray import NDArray
from ..symbol import Symbol

__all__ = ["_flatten", "_regroup", "format_of", "nest_of"]

_NONE = -1


def _flatten(args: Any, inout_str: str) -> tuple[list[Any], Any]:
    """Flattens nested lists to (arrays and Nones, format). inout_str: the name of args for errors.

    Raises ValueError for items other than an NDArray, a Symbol, None or a list or tuple of these.
    """
    if isinstance(args, NDArray):
        return [args], 0
    if isinstance(args, Symbol):
        count = args.num_outputs
        return [args], count if count > 1 else 0
    if args is None:
        return [None], _NONE
    if not isinstance(args, (list, tuple)):
        raise HybridNetValueError(
            f"the {inout_str} of a hybridized block",
            expected="NDArrays or Symbols, or nested lists of these",
            given=f"{args!r} of type {type(args).__name__}",
        )
    flat: list[Any] = []
    formats = []
    for arg in args:
        part, part_format = _flatten(arg, inout_str)
        flat.extend(part)
        formats.append(part_format)
    return flat, formats


def _regroup(args: Any, fmt: Any) -> Any:
    """Rebuilds nested lists by fmt from the values in the flat list args. Surplus values are dropped.

    Raises ValueError if args is not a list, has too few values, or has a value where fmt has None.
    """
    if not isinstance(args, (list, tuple)):
        raise HybridNetValueError("_regroup: args", expected="a flat list", given=type(args).__name__)
    if (wanted := _count(fmt)) > len(args):
        raise HybridNetValueError("_regroup: args", expected=f"{wanted} values for format {fmt}", given=str(len(args)))
    return _take(deque(args), fmt)


def _count(fmt: Any) -> int:
    return max(abs(fmt), 1) if isinstance(fmt, int) else sum(_count(part) for part in fmt)


def _take(values: deque[Any], fmt: Any) -> Any:
    if not isinstance(fmt, int):
        return [_take(values, part) for part in fmt]
    if fmt > 0:
        return [values.popleft() for _ in range(fmt)]
    value = values.popleft()
    if fmt == _NONE and value is not None:
        raise HybridNetValueError("_regroup: args", expected="None where the format is -1", given=type(value).__name__)
    return value


def format_of(nest: Nest) -> Any:
    """Returns the format of a nest; None if it holds items that formats do not have, such as numbers."""
    if nest is nests.ARRAY:
        return 0
    if nest.kind == "none":
        return _NONE
    if nest.kind not in ("list", "tuple"):
        return None
    formats = [format_of(child) for child in nest.children]
    return None if None in formats else formats


def nest_of(fmt: Any) -> Nest:
    """Returns the nest of a format, built from lists."""
    if fmt == _NONE:
        return nests.NONE
    if isinstance(fmt, int):
        return nests.ARRAY if fmt == 0 else nests.list_of(fmt)
    return Nest("list", tuple(nest_of(part) for part in fmt))
