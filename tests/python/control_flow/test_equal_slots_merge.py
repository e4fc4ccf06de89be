"""Equal inputs, states and outputs of a loop become one; states that repeat a sequence one step later stay right."""

from __future__ import annotations

import pytest
from hybridnet.contrib import scan

from .scans import check_same, counts, normal


def equal(x, h):
    """A scan whose two sequences are the same, as are its two states and its two outputs."""

    def step(a, b, s, r):
        return [(s + a).tanh(), (r + b).tanh()]

    one, two = scan(step, [x, x], [h, h])
    return one + two


ARRAYS = normal(7, 2), normal(2, seed=1)


def test_equal_states_are_one():
    assert counts(equal, *ARRAYS, passes="fast_run,-fusion,-loop")["tanh"] == 14
    assert counts(equal, *ARRAYS)["tanh"] == 7


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_results_stay(steps):
    check_same(equal, normal(steps, 2), ARRAYS[1])


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_states_that_echo_a_sequence(steps):
    """Both states are the row of the previous step, but start from different values."""

    def function(x, h, g):
        one, two = scan(lambda a, s, r: [a * 1, a * 1], x, [h, g])
        echo, _, out = scan(lambda a, s, r: [a, a, s * 2 + r], x, [h, g, None])
        return one, two, echo, out

    check_same(function, normal(steps, 2), normal(2, seed=1), normal(2, seed=2))


def test_equal_steps_from_different_starts_stay_apart():
    def function(x, h, g):
        return scan(lambda a, s, r: [(s + a).tanh(), (r + a).tanh()], x, [h, g])

    arrays = (*ARRAYS, normal(2, seed=2))
    check_same(function, *arrays)
    assert counts(function, *arrays)["tanh"] == 14
