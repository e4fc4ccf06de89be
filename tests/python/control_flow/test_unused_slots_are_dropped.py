"""Loops drop constants and unused inputs and states: a pair of states without other readers is dropped."""

from __future__ import annotations

from hybridnet.contrib import scan

from .scans import check_same, counts, normal


def function(x, z, s, k):
    """Outputs 1 and 2 are read only by each other."""

    def step(a, b, s, k, j):
        return [s + a, (j * 2).exp() + b, (k * 3).sin()]

    return scan(step, [x, z], [s, k, k])[0]


ARRAYS = normal(5, 2), normal(5, 2, seed=1), normal(2, seed=2), normal(2, seed=3)


def test_the_pair_does_not_run():
    ran = counts(function, *ARRAYS)
    assert ran["exp"] == ran["sin"] == 0
    assert counts(function, *ARRAYS, passes="fast_run,-fusion,-loop")["exp"] == 5


def test_results_stay():
    check_same(function, *ARRAYS)


def test_the_number_of_steps_stays_where_the_sequence_that_gave_it_is_dropped():
    assert counts(lambda x, s: scan(lambda a, s: s * 2, x, s), *ARRAYS[:1], normal(2))["_mul_scalar"] == 5
