"""PriorityKVStore: the store 'p3', which sends the gradients that the next forward needs first before the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..ndarray import NDArray
from ._dist_store import DistKVStore

__all__ = ["PriorityKVStore"]

_MESSAGE_BYTES = 1 << 18


def _messages(arrays: Sequence[NDArray]) -> Iterator[list[int]]:
    """Positions of arrays that follow each other and have one dtype, in messages of about 256 kB or one large array."""
    members: list[int] = []
    size = 0
    for position, array in enumerate(arrays):
        if members and (array.dtype != arrays[members[0]].dtype or size >= _MESSAGE_BYTES):
            yield members
            members, size = [], 0
        members.append(position)
        size += int(array.size) * int(array.dtype(0).itemsize)
    if members:
        yield members


class PriorityKVStore(DistKVStore):
    """The store 'p3': the values of 'dist_sync', in small messages in the order of the parameters.

    The first layers are updated while the sums of the later ones are on their way, so the next forward can begin. A
    message is not interrupted by a more urgent one, and the priority of push() has no effect: all processes send in one
    order. Compression and row_sparse gradients are as in 'dist_sync'.
    """

    def __init__(self, name: str = "p3") -> None:
        super().__init__(name)

    def sum_gradients(
        self, names: Sequence[Any], gradients: Sequence[Sequence[NDArray]], divisor: float | None = None
    ) -> None:
        """Overwrites the gradients of each parameter by their sum over contexts and processes, the first ones first."""
        for members in _messages([arrays[0] for arrays in gradients]):
            super().sum_gradients([names[i] for i in members], [gradients[i] for i in members], divisor)
