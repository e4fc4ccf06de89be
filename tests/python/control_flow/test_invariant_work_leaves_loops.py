"""Work on non-sequences runs once, in front of the loop; work that could fail does not run if there are no steps."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import scan

from .scans import TRIPS, Function, check_same, counts, normal, operators, run


def function(x, h, w, b):
    F = operators(x)
    return scan(lambda a, h, w, b: F.dot(a, w * w + 1) + F.dot(h, w) + b.exp(), x, h, [w, b])


def arrays(steps):
    return normal(steps, 2, 3), normal(2, 3, seed=1), normal(3, 3, seed=2), normal(2, 3, seed=3)


def test_once_and_not_in_each_step():
    ran = counts(function, *arrays(7))
    assert ran["exp"] == 1


@pytest.mark.parametrize("steps", TRIPS)
def test_results_stay(steps):
    if steps:
        check_same(function, *arrays(steps))
    else:
        assert run(Function(function), arrays(0))[0].shape == (0, 2, 3)


def test_work_that_could_fail_does_not_run_without_steps():
    """Row 9 of a table with 3 rows is an error only if a step reads it."""

    def picking(x, table):
        F = operators(x)
        index = F.full((1,), 9)
        return scan(lambda a, table: a + F.take(table, index, axis=0, mode="raise").sum(), x, None, table)

    assert run(Function(picking), [normal(0, 2), normal(3, 2)])[0].shape == (0, 2)
    with pytest.raises(mx.errors.HybridNetError, match="9"):
        run(Function(picking), [normal(2, 2), normal(3, 2)])


def test_random_draws_stay_inside():
    """A random draw in the function is new in each step; a draw outside is the same in all steps."""

    def draws(x):
        F = operators(x)
        once = F.random.uniform(shape=(2,), dtype="float64")
        return scan(lambda a: [F.random.uniform(shape=(2,), dtype="float64") + a, once + a], x)

    new, same = run(Function(draws), [np.zeros((5, 2))])
    assert len({tuple(row) for row in new}) == 5
    assert len({tuple(row) for row in same}) == 1
