"""Sizes for the open axes of a file: the graph is built for a small and a large size of each at once.

An axis with one size in all trials is taken as fixed, so they must differ wherever the sizes of inputs matter.
Graphs have rules of their own: lengths that are multiples, lower and upper limits, images that shrink to one pixel.
Several combinations are tried until one fits. A third, larger size takes part where the graph takes it: lengths such
as ``max(samples // 256, 1)`` may be equal for the first two.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

__all__ = ["Pairs", "attempts", "trial_sizes"]

Pairs = tuple[tuple[int, int], ...]  # a (small, large) pair per open axis, in the order of the inputs

# Combinations that fit most files; an open axis takes the next pair.
_FIRST: tuple[Pairs, ...] = (
    ((6, 448), (10, 576), (14, 704), (22, 832), (26, 1088), (34, 1216), (38, 1472), (46, 1856)),
    ((32, 448), (96, 576), (160, 704), (224, 832), (352, 1088), (416, 1216), (544, 1472), (608, 1856)),
    ((5, 31), (7, 37), (11, 41), (13, 43), (17, 47), (19, 53), (23, 59), (29, 61)),
    ((2, 4), (3, 6), (5, 8), (7, 9), (11, 10), (13, 12), (17, 14), (19, 15)),
    ((1920, 19200), (3200, 32000), (4480, 44800), (7040, 70400), (8320, 83200), (10880, 108800)),
)
_PAIRS = (
    *((2, 3), (6, 448), (10, 576), (32, 704), (96, 832), (160, 1088), (64, 128), (512, 1024), (48, 320), (1600, 16000)),
    *((7, 31), (320, 640), (224, 352), (16, 80), (4000, 24000)),
)
# Sizes that an axis may have to have: samples of a window, pixels of an image, lengths of a text.
_FIXED = (512, 256, 576, 1024, 48, 224, 32, 160, 640, 320, 128, 1, 16000, 80)
_RANDOM_TRIES = 24
_LARGER = 5  # the third size is so many times the second
_MOST_SHARED = 4  # axes of which any may be equal to the first
_FIXED_TRIES = 40


def trial_sizes(pair: tuple[int, int], num_trials: int) -> tuple[int, ...]:
    """The sizes of an open axis in two or three trials."""
    small, large = pair
    return (small, large, large if small == large else large * _LARGER)[:num_trials]


def attempts(num_axes: int) -> Iterator[Pairs]:
    """Pairs for the open axes, the likeliest first. Later ones have equal sizes: axes that are taken as fixed."""
    if num_axes == 0:
        yield ()
        return
    for first in _FIRST:
        yield tuple(first[axis % len(first)] for axis in range(num_axes))
    for first in _FIRST[:3]:  # graphs for one example at a time
        yield ((1, 1), *(first[axis % len(first)] for axis in range(1, num_axes)))
    draw = random.Random(0)
    for _ in range(_RANDOM_TRIES):
        chosen = draw.sample(_PAIRS, min(num_axes, len(_PAIRS)))
        yield tuple(chosen[axis % len(chosen)] for axis in range(num_axes))
    yield from _with_fixed_sizes(num_axes)


def _with_fixed_sizes(num_axes: int) -> Iterator[Pairs]:
    """Sizes that files expect without saying so. The first axis stays open, and others that may be equal to it."""
    if num_axes == 1:
        yield from (((size, size),) for size in (1, *_FIXED))
        return
    others = range(1, num_axes)
    for count in range(num_axes if num_axes <= _MOST_SHARED else 1):
        for shared in itertools.combinations(others, count):
            yield from _of_fixed(num_axes, {0, *shared})


def _of_fixed(num_axes: int, shared: set[int]) -> Iterator[Pairs]:
    tries = 0
    for sizes in itertools.product(_FIXED, repeat=min(num_axes - len(shared), 2)):
        for pair in ((2, 3), (32, 64)):
            fixed = itertools.cycle(sizes or (1,))
            yield tuple(pair if axis in shared else (next(fixed),) * 2 for axis in range(num_axes))
            tries += 1
        if tries >= _FIXED_TRIES:
            return
