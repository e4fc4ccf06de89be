"""States of an optimizer in parts: files of states that hold some elements of some parameters, and their union.

A part is what Updater.get_states writes, with a table that says which elements of which parameters its arrays are. Only
bytes are moved here, so the union has the bytes that one process would have written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import FormatError
from ..ndarray._dtypes import numpy_dtype
from ._updater import _MAGIC

__all__ = ["Extent", "merged_states"]


class Extent(NamedTuple):
    """Elements [begin, end) of a parameter of this shape."""

    begin: int
    end: int
    shape: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether these are all elements."""
        return self.begin == 0 and self.end == math.prod(self.shape)


class _State(NamedTuple):
    extent: Extent
    description: Any
    values: list[memoryview]  # the bytes of each array, in the order of the description


def _arrays_of(description: Any) -> Iterator[dict[str, Any]]:
    """The descriptions of the arrays of a state, in order."""
    if "tuple" in description:
        for item in description["tuple"]:
            yield from _arrays_of(item)
    elif "shape" in description:
        yield description


def _with_shape(description: Any, shape: Sequence[int]) -> Any:
    if "tuple" in description:
        return {"tuple": [_with_shape(item, shape) for item in description["tuple"]]}
    return {**description, "shape": list(shape)} if "shape" in description else description


def _read(part: bytes, extents: Mapping[Any, Extent]) -> tuple[dict[str, Any], dict[Any, _State]]:
    """Returns the header and the states of a part."""
    begin = len(_MAGIC) + 8
    end = begin + int.from_bytes(part[len(_MAGIC) : begin], "little")
    if part[: len(_MAGIC)] != _MAGIC or end > len(part):
        raise FormatError("optimizer states: a part does not have the format of states")
    header = json.loads(part[begin:end])
    view, position = memoryview(part), end
    states = {}
    for index, description in header["states"]:
        values = []
        for array in _arrays_of(description):
            size = math.prod(array["shape"]) * numpy_dtype(array["dtype"]).itemsize
            values.append(view[position : position + size])
            position += size
        states[index] = _State(extents[index], description, values)
    if position != len(part):
        raise FormatError(f"optimizer states: a part has {len(part)} bytes, its header describes {position}")
    return header, states


def _joined(index: Any, pieces: list[_State]) -> _State:
    """Joins the pieces of the states of one parameter."""
    if len(pieces) == 1 and pieces[0].extent.is_whole:
        return pieces[0]
    pieces.sort(key=lambda piece: piece.extent.begin)
    shape = pieces[0].extent.shape
    ends = [0, *(piece.extent.end for piece in pieces)]
    begins = [*(piece.extent.begin for piece in pieces), math.prod(shape)]
    if begins != ends:
        raise FormatError(f"optimizer states: the parts of parameter {index} do not follow each other")
    if len({len(piece.values) for piece in pieces}) != 1:
        raise FormatError(f"optimizer states: the parts of parameter {index} hold different states")
    values = [memoryview(b"".join(column)) for column in zip(*(piece.values for piece in pieces), strict=True)]
    return _State(Extent(0, ends[-1], shape), _with_shape(pieces[0].description, shape), values)


def merged_states(parts: Sequence[tuple[bytes, Mapping[Any, Extent]]]) -> bytes:
    """Returns the bytes that Updater.get_states gives where all states are in one process.

    parts: what each process has: the bytes of its states, and the extent of each of them. Counts and settings are those
    of the first part. Raises FormatError if elements are missing.
    """
    try:
        read = [_read(part, extents) for part, extents in parts]
        pieces: dict[Any, list[_State]] = {}
        for _, states in read:
            for index, state in states.items():
                pieces.setdefault(index, []).append(state)
        joined = {index: _joined(index, found) for index, found in sorted(pieces.items())}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"optimizer states: broken part ({error!r})") from error
    header = {**read[0][0], "states": [[index, state.description] for index, state in joined.items()]}
    text = json.dumps(header).encode()
    values = [value for state in joined.values() for value in state.values]
    return b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *values])
