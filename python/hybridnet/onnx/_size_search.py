"""Finds an expression for a size that is known for several trials, from sizes of tensors for the same trials.

Operators in a graph may hold sizes as parameters, such as the shape of a reshape. If such a number differs between
trials, it follows from the sizes of inputs; the search tries products, quotients and sums of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

from ._export_errors import does_not_follow
from ._export_values import Dim, Open

__all__ = ["explain"]

_MOST_SIZES = 24  # for searches over pairs and triples of sizes
_LARGEST_DIVISOR = 64

Trials = tuple[int, ...]


def explain(target: Trials, known: Mapping[Trials, Dim]) -> Any:
    """A Dim, or (operator, operand, operand), whose value is `target` in each trial.

    Raises NotForOpenSizes if none is found.
    """
    if target in known:
        return known[target]
    leaves = [Open(trials, dim) for trials, dim in known.items()]
    found = _of_one(target, leaves)
    if found is None:
        found = _of_several(target, leaves[:_MOST_SIZES])
    if found is None:
        raise does_not_follow("a size", target)
    return found


def _form(value: Any) -> Any:
    return value.form


def _of_one(target: Trials, leaves: Iterable[Open]) -> Any:
    leaves = list(leaves)
    for search in (_linear, _rounded):
        for leaf in leaves:
            made = search(target, leaf)
            if made is not None:
                return _form(made)
    return None


def _linear(target: Trials, leaf: Open) -> Any:
    """(leaf * p + q) // r with small integers."""
    if leaf.trials[0] == leaf.trials[1]:
        return None
    slope = Fraction(target[1] - target[0], leaf.trials[1] - leaf.trials[0])
    rest = target[0] - slope * leaf.trials[0]
    if any(slope * size + rest != wanted for size, wanted in zip(leaf.trials, target, strict=True)):
        return None
    divisor = max(slope.denominator, rest.denominator)
    if divisor > _LARGEST_DIVISOR or (slope * divisor).denominator != 1 or (rest * divisor).denominator != 1:
        return None
    value: Any = leaf
    if slope * divisor != 1:
        value = value * int(slope * divisor)
    if rest:
        value = value + int(rest * divisor)
    return value // divisor if divisor != 1 else value


def _rounded(target: Trials, leaf: Open) -> Any:
    """(leaf + c) // r, where the trials leave no or little choice of c."""
    if min(target) <= 0:
        return None
    for divisor in range(2, _LARGEST_DIVISOR + 1):
        low = max(divisor * wanted - size for size, wanted in zip(leaf.trials, target, strict=True))
        high = min(divisor * wanted - size + divisor for size, wanted in zip(leaf.trials, target, strict=True))
        if low < high and abs(low) <= 2 * divisor:
            offset = min(range(low, high), key=abs)
            return (leaf + offset) // divisor if offset else leaf // divisor
    return None


def _of_several(target: Trials, leaves: list[Open]) -> Any:
    for count in (2, 3):
        for chosen in combinations_with_replacement(leaves, count):
            value: Any = chosen[0]
            for leaf in chosen[1:]:
                value = value * leaf
            made = _linear(target, value)
            if made is not None:
                return _form(made)
    for a in leaves:
        for b in leaves:
            for value in (a + b, a - b):
                made = _linear(target, value) if isinstance(value, Open) else None
                if made is not None:
                    return _form(made)
            if all(size and other % size == 0 for size, other in zip(b.trials, a.trials, strict=True)):
                quotient = a // b
                made = _linear(target, quotient) if isinstance(quotient, Open) else None
                if made is not None:
                    return _form(made)
    return None
