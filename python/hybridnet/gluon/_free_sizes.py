"""Sizes of a graph's inputs that may vary: axes for which shape inference accepts any size.

An axis is free if inference accepts several other sizes of it, parameters unchanged. Axes that must change together,
such as the batch of two inputs, get one name. Trial sizes are odd and of different scales, because small changes pass
through strides (28 and 29 pixels give equal sizes after pooling) and multiples pass through reshapes with -1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import HybridNetError

__all__ = ["free_sizes"]

_Axis = tuple[str, int]
_TRIALS = ((1, 1), (2, 3), (5, 7))  # (factor, summand): three other sizes of an axis
# Inferences, and nodes that these visit: axes that are not decided by then stay fixed.
_LEAST_TRIALS, _MOST_TRIALS, _MOST_VISITS = 40, 400, 150_000
_MOST_TIED = 3  # axes of equal size by accident are told apart up to groups of this many


class _Budget(Exception):
    """Raised if the graph was inferred as often as allowed."""


class _Trials:
    """Runs shape inference with some sizes changed."""

    def __init__(self, symbol: Any, parameters: Mapping[str, tuple[int, ...]], inputs: Mapping[str, tuple[int, ...]]):
        self._symbol, self._parameters, self._inputs = symbol, dict(parameters), inputs
        nodes = len(symbol.get_internals().list_outputs())
        self._left = min(_MOST_TRIALS, max(_LEAST_TRIALS, _MOST_VISITS // max(nodes, 1)))

    def accepts(self, *groups: Iterable[_Axis]) -> bool:
        """Whether inference accepts other sizes of the axes: equal ones within a group, different ones among groups."""
        return all(
            self._infers({axis: factor * self._size(axis) + summand + place for axis, place in _places(groups)})
            for factor, summand in _TRIALS
        )

    def _size(self, axis: _Axis) -> int:
        return self._inputs[axis[0]][axis[1]]

    def _infers(self, sizes: dict[_Axis, int]) -> bool:
        if self._left == 0:
            raise _Budget
        self._left -= 1
        shapes = {
            name: tuple(sizes.get((name, i), size) for i, size in enumerate(shape))
            for name, shape in self._inputs.items()
        }
        try:
            self._symbol.infer_shape_partial(**self._parameters, **shapes)
        except HybridNetError:
            return False
        return True


def _places(groups: Iterable[Iterable[_Axis]]) -> list[tuple[_Axis, int]]:
    """Returns each axis with a summand of its group, which makes sizes of groups differ."""
    return [(axis, 4 * number) for number, group in enumerate(groups) for axis in group]


def free_sizes(
    symbol: Any, parameters: Mapping[str, tuple[int, ...]], inputs: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int | str, ...]]:
    """Returns the shapes of inputs with a name in place of each free size: ``{"data": ("free0", 3, 224, 224)}``.

    Equal names mean equal sizes. parameters, inputs: shapes with which inference succeeds.
    """
    trials = _Trials(symbol, parameters, inputs)
    groups: list[frozenset[_Axis]] = []
    try:
        _collect(trials, inputs, groups.append)
        groups = _compatible(trials, groups)
    except _Budget:
        groups = groups[:1]  # each group alone was accepted; all of them together were not tried
    names = {axis: f"free{number}" for number, group in enumerate(groups) for axis in group}
    return {
        name: tuple(names.get((name, i), size) for i, size in enumerate(shape)) for name, shape in inputs.items()
    }  # fmt: skip


def _collect(trials: _Trials, inputs: Mapping[str, tuple[int, ...]], found: Callable[[frozenset[_Axis]], Any]) -> None:
    axes = [(name, i) for name, shape in inputs.items() for i in range(len(shape))]
    used: set[_Axis] = set()
    for axis in axes:
        if axis in used:
            continue
        size = inputs[axis[0]][axis[1]]
        equal = [other for other in axes if other != axis and other not in used and inputs[other[0]][other[1]] == size]
        group = _smallest_group(trials, axis, equal)
        if group is not None:
            used |= group
            found(group)


def _smallest_group(trials: _Trials, axis: _Axis, equal: list[_Axis]) -> frozenset[_Axis] | None:
    """Returns the axes that must change with this one, itself included; None if it cannot change."""
    if trials.accepts([axis]):
        return frozenset([axis])
    for candidates in ([other for other in equal if other[1] == axis[1]], equal):
        if candidates and trials.accepts([axis, *candidates]):
            return _shrunk(trials, axis, candidates)
    for count in range(1, min(_MOST_TIED, len(equal))):
        for others in itertools.combinations(equal, count):
            if trials.accepts([axis, *others]):
                return frozenset([axis, *others])
    return None


def _shrunk(trials: _Trials, axis: _Axis, others: list[_Axis]) -> frozenset[_Axis]:
    """Removes axes that need not change."""
    kept = list(others)
    for other in others:
        fewer = [axis, *(one for one in kept if one != other)]
        if trials.accepts(fewer):
            kept.remove(other)
    return frozenset([axis, *kept])


def _compatible(trials: _Trials, groups: list[frozenset[_Axis]]) -> list[frozenset[_Axis]]:
    """Returns groups that may change independently: those that may not, as after a broadcast of size 1, are joined."""
    kept: list[frozenset[_Axis]] = []
    for group in groups:
        if trials.accepts(*kept, group):
            kept.append(group)
            continue
        for number, other in enumerate(kept):
            joined = [*kept[:number], other | group, *kept[number + 1 :]]
            if trials.accepts(*joined):
                kept = joined
                break
    return kept
