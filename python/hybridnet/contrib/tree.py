"""Functions over trees: every node is computed from the states of its children, level by level.

The tree is data: two arrays of numbers. So a hybridized block has one graph for all trees.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core, errors, ndarray, symbol
from .._control_flow import nests, rules
from .._control_flow.functions import foreach, is_traced
from .._public_names import dir_of
from ..symbol import Symbol
from ..util import is_np_array

__all__ = ["Tree", "tree_fold", "tree_of"]


class Tree(NamedTuple):
    """The arrays that tree_fold reads, for a tree of n nodes.

    children: (n + 2, k) int32, k is the largest number of children, at least 1. Row i: the children of node i in their
    order, then the number n, which stands for an absent child. Rows n and n + 1 hold only n.
    levels: (L, W) int32, the nodes that are computed together. Children lie in earlier rows than their parents. Rows
    are filled up with the number n + 1.
    """

    children: Any
    levels: Any


# ------------------------------------------------------------------------------------------------------------- tree_of
def tree_of(children: Iterable[Iterable[int]]) -> Tree:
    """Returns the arrays of a tree whose node i has the children children[i].

    Nodes may have any order and any number of children, and there may be several roots: a batch of trees is one list in
    which the numbers of each tree follow those of the tree before. A node may be a child of several nodes.

    The levels are as many as the longest path has nodes. A node is placed as late as needed to keep them narrow, so
    that they hold little padding.

    Parameters
    ----------
    children : list of lists of int

    Returns
    -------
    Tree(children, levels) : namedtuple of int32 arrays

    Raises
    ------
    TypeError, ValueError
        If there is no node, if a child is not the number of a node, or if a node is its own descendant; the message
        names the node.

    Examples
    --------
    >>> tree = mx.contrib.tree_of([[1, 2], [], [3], []])  # node 0 is the root
    >>> tree.levels  # 1 and 3, 2, 0; the padding is 5
    """
    lists = _checked_lists(children)
    count = len(lists)
    arity = max(1, max(map(len, lists)))
    table = np.full((count + 2, arity), count, np.int32)
    for node, own in enumerate(lists):
        table[node, : len(own)] = own
    made = _levels(lists, _depths(lists))
    levels = np.full((len(made), max(map(len, made))), count + 1, np.int32)
    for row, nodes in enumerate(made):
        levels[row, : len(nodes)] = nodes
    arrays = [ndarray.array(values, dtype="int32") for values in (table, levels)]
    return Tree(*[array.as_np_ndarray() for array in arrays] if is_np_array() else arrays)


def _checked_lists(children: Any) -> list[list[int]]:
    lists = []
    for node, own in enumerate(children):
        if isinstance(own, (str, bytes)) or not isinstance(own, (Sequence, np.ndarray)):
            raise errors.TypeError(
                f"tree_of: the children of node {node}", expected="a list of numbers of nodes", given=repr(own)
            )
        lists.append(list(own))
    count = len(lists)
    if not count:
        raise errors.ValueError("tree_of: there is no node", expected="one list of children for each node", given="[]")
    for node, own in enumerate(lists):
        for place, child in enumerate(own):
            if isinstance(child, (bool, np.bool_)) or not isinstance(child, (int, np.integer)):
                raise errors.TypeError(
                    f"tree_of: child {place} of node {node}", expected="an int", given=f"a {type(child).__name__}"
                )
            if not 0 <= child < count:
                raise errors.ValueError(
                    f"tree_of: child {place} of node {node}", expected=f"a number from 0 to {count - 1}",
                    given=str(child),
                )  # fmt: skip
    return lists


def _depths(lists: list[list[int]]) -> list[int]:
    """Returns the length of the longest path from a root to each node. Raises ValueError for cycles."""
    parents = [0] * len(lists)
    for own in lists:
        for child in own:
            parents[child] += 1
    ready = [node for node, number in enumerate(parents) if not number]
    depths = [0] * len(lists)
    for node in ready:  # grows
        for child in lists[node]:
            depths[child] = max(depths[child], depths[node] + 1)
            parents[child] -= 1
            if not parents[child]:
                ready.append(child)
    if len(ready) < len(lists):
        cycle = _cycle(lists, parents)
        raise errors.ValueError(
            f"tree_of: node {cycle[0]} is its own descendant",
            given=" -> ".join(map(str, [*cycle, cycle[0]] if len(cycle) <= 8 else [*cycle[:7], "...", cycle[0]])),
            because="a node is computed after its children",
        )
    return depths


def _cycle(lists: list[list[int]], parents: list[int]) -> list[int]:
    """Returns the nodes of a cycle; parents: the number of parents of each node that no root reaches first."""
    # Each node that is left has such a parent, so a walk towards the parents returns to one of its nodes.
    parent_of = {child: node for node, own in enumerate(lists) if parents[node] for child in own}
    node = next(iter(node for node, number in enumerate(parents) if number))
    places: dict[int, int] = {}
    path: list[int] = []
    while node not in places:
        places[node] = len(path)
        path.append(node)
        node = parent_of[node]
    return path[places[node] :][::-1]


def _levels(lists: list[list[int]], depths: list[int]) -> list[list[int]]:
    """Distributes the nodes over levels.

    The deepest nodes that are ready come first (Hu's algorithm): for trees, the number of levels is the smallest
    possible one, and so is the width for this number.
    """
    deeper = np.cumsum(np.bincount(depths)[::-1])[::-1]  # how many nodes have this depth or more
    rest = len(deeper) - np.arange(len(deeper))  # how many levels they fit into
    width = int(np.max(-(-deeper // rest)))
    parents: list[list[int]] = [[] for _ in lists]
    for node, own in enumerate(lists):
        for child in own:
            parents[child].append(node)
    missing = [len(own) for own in lists]
    ready = [(-depths[node], node) for node, number in enumerate(missing) if not number]
    heapq.heapify(ready)
    made = []
    while ready:
        level = sorted(heapq.heappop(ready)[1] for _ in range(min(width, len(ready))))
        made.append(level)
        for node in level:
            for parent in parents[node]:
                missing[parent] -= 1
                if not missing[parent]:
                    heapq.heappush(ready, (-depths[parent], parent))
    return made


# ----------------------------------------------------------------------------------------------------------- tree_fold
def tree_fold(fn: Callable[..., Any], tree: Tree, data: Any, init: Any, *, name: str | None = None) -> Any:
    """Computes a state for each node of a tree from its row of data and the states of its children.

    fn is called for a level of W nodes at once, which have up to k children. On arrays it is called once per level. In
    a graph the loop over the levels is one node, which takes trees of any size.

    Parameters
    ----------
    fn : function (x, states, mask) -> states
        x has the structure of data, with arrays of shape (W, ...). states has the structure of init, with arrays of
        shape (W, k, ...): the states of the children, init for absent ones. mask (W, k) is 1 for children and 0 for
        absent ones, with the dtype of the first state. fn returns states of shape (W, ...) in the structure of init.
        Each node must be computed independently of the others: levels hold some nodes twice.
    tree : Tree
        From tree_of, or two arrays, also inputs of a block or Symbols.
    data : array or nest of arrays of shape (n, ...), or None
        Row i belongs to node i.
    init : array or nest of arrays of shape (...)
        The state of absent children: one state, without an axis for nodes.
    name : str, optional
        Name of the loop's node.

    Returns
    -------
    states : nest of arrays of shape (n, ...)
        Row i: the state of node i.

    Raises
    ------
    TypeError, ShapeError, DTypeError
        If data has not n rows, or if fn returns states of another structure, shape or dtype.

    Examples
    --------
    >>> tree = mx.contrib.tree_of([[1, 2], [], []])
    >>> values = mx.nd.array([[1], [2], [3]])
    >>> mx.contrib.tree_fold(lambda x, sums, mask: x + sums.sum(axis=1), tree, values, mx.nd.zeros((1,)))  # 6, 2, 3
    """
    rules.check_function("tree_fold", fn, "fn")
    if not isinstance(tree, (tuple, list)) or len(tree) != 2 or not all(map(nests.is_array, tree)):
        rules.fail(
            errors.TypeError, "tree_fold", "tree", expected="a Tree", given=f"a {type(tree).__name__}",
            fix="mx.contrib.tree_of(children) makes one of lists of numbers",
        )  # fmt: skip
    rows, data_nest = rules.take_apart("tree_fold", data, "data")
    states, state_nest = rules.take_apart("tree_fold", init, "init")
    if not states:
        rules.fail(errors.TypeError, "tree_fold", "init", expected="at least one array", given=repr(init))
    fold = _Fold(fn, [*tree, *rows, *states])
    children, levels, *rest = fold.given
    fold.rows, fold.row_likes, fold.data_nest = rest[: len(rows)], rows, data_nest if data is not None else nests.NONE
    fold.init, fold.likes, fold.nest = rest[len(rows) :], states, state_nest
    fold.check_rows(children)
    return fold.run(children, levels, name)


def _classic(value: Any) -> Any:
    return value.as_nd_ndarray() if getattr(value, "_has_numpy_interface", False) else value


class _Fold:
    """One use of tree_fold. Arrays have the classic interface, except in the arguments and results of fn."""

    rows: list[Any]
    row_likes: list[Any]
    data_nest: nests.Nest
    init: list[Any]
    likes: list[Any]
    nest: nests.Nest

    def __init__(self, fn: Callable[..., Any], given: list[Any]) -> None:
        self._fn = fn
        traced = is_traced(given)
        self._ops: Any = symbol if traced else ndarray
        if traced:
            given = [value if isinstance(value, Symbol) else _core.traced_constant(value) for value in given]
        self.given = [_classic(value) for value in given]

    def check_rows(self, children: Any) -> None:
        nodes = rules.spec_of(children)
        for path, array in zip(self.data_nest.paths("data"), self.rows, strict=True):
            spec = rules.spec_of(array)
            if nodes and spec and spec[0][:1] != (nodes[0][0] - 2,):
                rules.fail(
                    errors.ShapeError, "tree_fold", path, expected=f"{nodes[0][0] - 2} rows, one for each node",
                    given=rules.describe(spec),
                )  # fmt: skip

    def run(self, children: Any, levels: Any, name: str | None) -> Any:
        # The sizes are read from the arrays when the graph runs: n is what the last row of children holds.
        ops = self._ops
        absent = ops.slice_axis(ops.slice_axis(children, axis=0, begin=-1, end=None), axis=1, begin=0, end=1)
        is_padding = ops.broadcast_greater(levels, absent)
        # Padding computes the first node of its level again, whose values fn can take: of other values the gradient
        # could be infinite, and 0 * inf is NaN.
        first = ops.broadcast_like(ops.slice_axis(levels, axis=1, begin=0, end=1), levels)
        nodes = ops.where(is_padding, first, levels)
        kids = ops.take(children, nodes, axis=0, mode="raise")
        masks = ops.take(self._zero_and_one(), ops.broadcast_lesser(kids, ops.expand_dims(absent, axis=0)), axis=0)
        rows = [ops.take(array, nodes, axis=0, mode="raise") for array in self.rows]
        every = ops.zeros_like(ops.reshape(ops.slice_axis(children, axis=1, begin=0, end=1), shape=(-1,)))
        buffers = [ops.take(ops.expand_dims(state, axis=0), every, axis=0) for state in self.init]
        _, filled = foreach(self._level, [levels, kids, masks, *rows], buffers, name=name)
        found = [ops.slice_axis(buffer, axis=0, begin=0, end=-2) for buffer in filled]
        return nests.restore(self.nest, map(self._as, self.likes, found))

    def _zero_and_one(self) -> Any:
        """Returns the array [0, 1] with the dtype of the first state, which Symbols outside of traces do not tell."""
        ops = self._ops
        zero = ops.sum(ops.reshape(ops.zeros_like(self.init[0]), shape=(-1,)), axis=0, keepdims=True)
        return ops.concat(zero, zero + 1, dim=0)

    def _level(self, slices: list[Any], buffers: list[Any]) -> tuple[list[Any], list[Any]]:
        ops = self._ops
        targets, kids, mask, *rows = slices
        states = [
            self._as(like, ops.take(buffer, kids, axis=0)) for like, buffer in zip(self.likes, buffers, strict=True)
        ]
        x = nests.restore(self.data_nest, map(self._as, self.row_likes, rows))
        given = self._fn(x, nests.restore(self.nest, states), self._as(self.likes[0], mask))
        new = self._checked(given, targets)
        return [], [ops.contrib.index_copy(buffer, targets, one) for buffer, one in zip(buffers, new, strict=True)]

    def _checked(self, given: Any, targets: Any) -> list[Any]:
        new, nest = rules.take_apart("tree_fold", given, "the result of fn")
        rules.check_structure(
            "tree_fold", self.nest, nest, "the result of fn", self._fn, "fn returns the new states", "init"
        )
        width = rules.spec_of(targets)
        for path, one, like in zip(self.nest.paths("the result of fn"), new, self.init, strict=True):
            spec, state = rules.spec_of(one), rules.spec_of(like)
            if not (width and spec and state):
                continue
            wanted = (width[0] + state[0], state[1])
            if spec != wanted:
                kind = errors.ShapeError if spec[0] != wanted[0] else errors.DTypeError
                rules.fail(
                    kind, "tree_fold", path, expected=rules.describe(wanted), given=rules.describe(spec),
                    because=f"a level of {width[0][0]} nodes has as many states", function=self._fn,
                )  # fmt: skip
        return [_classic(one) for one in new]

    def _as(self, like: Any, value: Any) -> Any:
        """Returns value with the interface of the user's array."""
        return value.as_np_ndarray() if getattr(like, "_has_numpy_interface", False) else value


__dir__ = dir_of(__name__)
