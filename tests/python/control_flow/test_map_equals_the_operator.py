"""Outputs without state: map over rows equals the operator on all rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from hybridnet.contrib import map, scan

from .scans import TRIPS, Function, check_same, counts, loops, normal, operators, plan, run


@pytest.mark.parametrize("rows", TRIPS)
@pytest.mark.parametrize("hybridized", [False, True])
def test_map_is_the_operator_on_all_rows(rows, hybridized):
    x = normal(rows, 3)
    (got,) = run(Function(lambda x: map(lambda a: (a * a).tanh(), x), hybridized=hybridized), [x])
    np.testing.assert_allclose(got, np.tanh(x * x), rtol=1e-14)


def test_gradients():
    check_same(lambda x, y: map(lambda a, b: a.sin() * b, [x, y]), normal(5, 3), normal(5, 3, seed=1))


def test_outputs_with_and_without_memory_side_by_side():
    def function(x):
        return scan(lambda a, s: [a * 2, s + a, a * s], x, [None, x[0] * 0, None])

    doubled, sums, products = run(Function(function), [normal(6, 2)])
    x = normal(6, 2)
    np.testing.assert_allclose(doubled, 2 * x)
    np.testing.assert_allclose(sums, np.cumsum(x, axis=0))
    np.testing.assert_allclose(products, x * (np.cumsum(x, axis=0) - x), atol=1e-14)


def test_a_layer_of_each_row_runs_once_over_all_of_them():
    """The loop is gone from the plan."""

    def function(x, w):
        F = operators(x)
        return map(lambda a: F.dot(a, w), x)

    arrays = normal(7, 2, 3), normal(3, 4, seed=1)
    assert counts(function, *arrays)["dot"] == 1
    assert loops(plan(function, *arrays)) == []
