"""Work that only outputs need runs once over all rows, behind the loop: the projection of the output is 1 product."""

from __future__ import annotations

import pytest
from hybridnet.contrib import scan

from .scans import check_same, counts, normal, operators


def function(x, h, u, v):
    F = operators(x)

    def step(a, h, u, v):
        h = (a + F.dot(h, u)).tanh()
        return [h, F.dot(h, v)]

    return scan(step, x, [h, None], [u, v])[1]


def arrays(steps):
    return normal(steps, 2, 4), normal(2, 4, seed=1), normal(4, 4, seed=2), normal(4, 6, seed=3)


def test_one_projection_for_all_rows():
    assert counts(function, *arrays(7), passes="fast_run,-fusion,-loop")["dot"] == 14
    assert counts(function, *arrays(7))["dot"] == 8


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_results_stay(steps):
    check_same(function, *arrays(steps))


def test_backwards():
    def backwards(x, h, v):
        F = operators(x)

        def step(a, h, v):
            h = (a + h).tanh()
            return [h, F.dot(h, v)]

        return scan(step, x, [h, None], v, go_backwards=True)[1]

    given = normal(6, 2, 4), normal(2, 4, seed=1), normal(4, 6, seed=3)
    check_same(backwards, *given)
    assert counts(backwards, *given)["dot"] == 1
