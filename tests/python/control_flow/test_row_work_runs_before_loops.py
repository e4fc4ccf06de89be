"""Work that reads only the rows of sequences runs once over all rows, in front of the loop: x W is 1 product for 200
steps."""

from __future__ import annotations

from hybridnet.contrib import scan

from .scans import check_same, counts, normal, operators


def function(x, h, w, u):
    F = operators(x)
    return scan(lambda a, h, w, u: (F.dot(a, w) + F.dot(h, u)).tanh(), x, h, [w, u])


def arrays(steps):
    return normal(steps, 4, 3), normal(4, 5, seed=1), normal(3, 5, seed=2) * 0.3, normal(5, 5, seed=3) * 0.3


def test_one_product_for_all_rows():
    assert counts(function, *arrays(200), passes="fast_run,-fusion,-loop")["dot"] == 400
    assert counts(function, *arrays(200))["dot"] == 201


def test_its_gradient_is_one_product_too():
    """The backward runs one product each for x, w and u over all rows, and one per step for the recurrence."""
    assert counts(function, *arrays(20), gradients=1)["dot"] == 21 + 3 + 20


def test_results_stay():
    for steps in (1, 2, 7):
        check_same(function, *arrays(steps))


def test_rows_of_taps_and_of_vectors():
    def taps(x, h, w):
        F = operators(x)
        return scan(lambda a, b, h, w: F.dot(b - a, w) + h, {"input": x, "taps": [0, 2]}, h, w)

    check_same(taps, normal(6, 2, 3), normal(2, 3, seed=1), normal(3, 3, seed=2))
