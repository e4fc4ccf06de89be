"""Two loops over the same rows become one; loops that feed each other crosswise stay correct."""

from __future__ import annotations

import pytest
from hybridnet.contrib import scan

from .scans import check_same, counts, loops, normal, plan


def two(x, h, g):
    one = scan(lambda a, h: (a + h).tanh(), x, h)
    other = scan(lambda a, h: (a * h).sin(), x, g)
    return one, other


ARRAYS = normal(5, 2), normal(2, seed=1), normal(2, seed=2)


def test_one_loop():
    assert len(loops(plan(two, *ARRAYS, passes="fast_run,-loop"))) == 2
    assert len(loops(plan(two, *ARRAYS))) == 1


def test_shared_work_runs_once():
    def shared(x, h, g):
        one = scan(lambda a, h: a.exp() * h.tanh(), x, h)
        other = scan(lambda a, h: a.exp() + h.tanh() * 2, x, h)
        return one, other + g

    assert counts(shared, *ARRAYS)["exp"] <= 5
    check_same(shared, *ARRAYS)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_results_stay(steps):
    check_same(two, normal(steps, 2), *ARRAYS[1:])


def test_loops_that_feed_each_other_crosswise():
    """a1 feeds b2 and b1 feeds a2: merging both pairs would make a cycle."""

    def function(x, y, h):
        a1 = scan(lambda a, h: (a + h).tanh(), x, h)
        b1 = scan(lambda a, h: (a - h).sin(), y, h)
        a2 = scan(lambda a, h: (a * h).tanh(), x, b1.sum(axis=0))
        b2 = scan(lambda a, h: (a * h).sin(), y, a1.sum(axis=0))
        return a1, b1, a2, b2

    check_same(function, normal(4, 2), normal(4, 2, seed=1), normal(2, seed=2))


def test_loops_of_different_lengths_or_directions_stay_apart():
    def function(x, h, g):
        one = scan(lambda a, h: (a + h).tanh(), x, h)
        return one, scan(lambda a, h: (a + h).tanh(), x, h, go_backwards=True), scan(lambda a: a * 2, x, n_steps=2) + g

    check_same(function, *ARRAYS)


def test_conditions_that_differ_stay_apart():
    from hybridnet.contrib import until

    def function(x, h, g):
        one = scan(lambda a, h: (a * a + h, until((a * a + h).sum() > 3)), x, h)
        other = scan(lambda a, h: (a * a + h, until((a * a + h).sum() > 1)), x, h)
        return one.sum(axis=0) + g, other.sum(axis=0)

    check_same(function, *ARRAYS)
