"""Nested arguments and results of blocks: flattened to a list of arrays plus a hashable key that restores them.

A key is `TENSOR` for an array, ``("const", value)`` for what is neither array nor container (None, numbers, text: part
of the graph's identity), ``("list" | "tuple", keys...)`` for sequences, ``("dict", names, keys...)`` for dicts and
``("namedtuple", type, keys...)``. A Symbol of several outputs counts as a list.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from ..ndarray import NDArray
from ..symbol import Symbol

TENSOR = "tensor"


def flatten(value: Any, flat: list[Any]) -> Hashable:
    """Appends the arrays of value to flat and returns the key of its structure.

    Raises TypeError for values that cannot be part of a graph's identity (not hashable).
    """
    if isinstance(value, NDArray):
        flat.append(value)
        return TENSOR
    if isinstance(value, Symbol):
        return _flatten_symbol(value, flat)
    if isinstance(value, tuple):
        keys = tuple(flatten(item, flat) for item in value)
        return ("namedtuple", type(value), *keys) if hasattr(value, "_fields") else ("tuple", *keys)
    if isinstance(value, list):
        return ("list", *(flatten(item, flat) for item in value))
    if isinstance(value, dict):
        return ("dict", tuple(value), *(flatten(item, flat) for item in value.values()))
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            "a hybridized block takes and gives arrays, None, numbers, text, and lists, tuples and dicts of these, "
            f"but got {type(value).__name__}"
        ) from None
    # The type belongs to the key: 1, 1.0 and True are equal but do not compute the same.
    return ("const", type(value), value)


def _flatten_symbol(value: Symbol, flat: list[Any]) -> Hashable:
    count = value.num_outputs
    if count == 1:
        flat.append(value)
        return TENSOR
    flat.extend(value[i] for i in range(count))
    return ("list", *([TENSOR] * count))  # as the operators give on arrays


def restore(key: Any, flat: Iterator[Any]) -> Any:
    """The nested value whose arrays come from flat, in order."""
    if key is TENSOR or key == TENSOR:
        return next(flat)
    kind = key[0]
    if kind == "const":
        return key[2]
    if kind == "tuple":
        return tuple(restore(item, flat) for item in key[1:])
    if kind == "list":
        return [restore(item, flat) for item in key[1:]]
    if kind == "dict":
        return {name: restore(item, flat) for name, item in zip(key[1], key[2:], strict=False)}
    return key[1](*(restore(item, flat) for item in key[2:]))
