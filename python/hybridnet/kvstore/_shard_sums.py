"""ShardSums: the gradients of the virtual shards of a process, added as the tree of all shards prescribes."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _core, group
from ..ndarray import NDArray

__all__ = ["ShardSums"]


class ShardSums:
    """Sums over runs of shards, [begin, end); at most one for each level of the tree.

    A process that has the shards 0, 1, 2 of 4 ends with the nodes [0, 2) and [2, 3): two lists of arrays instead of
    three, and the same bits as a process that has all four.
    """

    def __init__(self) -> None:
        self._nodes: list[list[NDArray]] = []
        self.count = 0  # number of shards so far

    def add(self, arrays: Sequence[NDArray]) -> None:
        """Adds the arrays of the next shard, which are copied."""
        begin, _ = group.own_shards()
        self._nodes.append([array.copy() for array in arrays])
        self.count += 1
        wanted = len(_core.group_nodes(begin, begin + self.count, group.virtual_shards()))
        while len(self._nodes) > wanted:
            right, left = self._nodes.pop(), self._nodes.pop()
            self._nodes.append([a + b for a, b in zip(left, right, strict=True)])

    def take(self) -> list[list[NDArray]]:
        """Returns the arrays of each node, and forgets them."""
        nodes, self._nodes, self.count = self._nodes, [], 0
        return nodes
