"""Products that a loop sums up become one product over all rows: the backward body of an RNN has 1 product."""

from __future__ import annotations

import re

from hybridnet.contrib import reduce, scan

from .scans import check_same, counts, normal, operators, plan


def network(x, h, w, u):
    F = operators(x)
    return scan(lambda a, h, w, u: (F.dot(a, w) + F.dot(h, u)).tanh(), x, h, [w, u])


ARRAYS = normal(9, 4, 3), normal(4, 5, seed=1), normal(3, 5, seed=2) * 0.3, normal(5, 5, seed=3) * 0.3


def test_one_product_in_the_backward_body():
    text = plan(network, *ARRAYS, gradients=1, passes="fast_run,-fusion")
    backward = text.split("backward:")[1]
    body = re.search(r"_foreach .*\n    body:\n((?:        .*\n)*)", backward)
    assert body is not None
    assert len(re.findall(r"\] dot ", body[1])) == 1


def test_products_of_a_whole_training_step():
    """Forward: 1 product for x W and 9 for the steps. Backward: 9 for the steps and one each for w, u and x."""
    assert counts(network, *ARRAYS, gradients=1)["dot"] == 10 + 9 + 3


def test_results_stay():
    check_same(network, *ARRAYS)


def test_sums_that_start_elsewhere():
    """The initial value is part of the sum."""

    def total(p, q, start):
        F = operators(p)
        return reduce(lambda a, b, s: s + F.dot(a, b, transpose_a=True), [p, q], start)

    check_same(total, normal(6, 2, 3), normal(6, 2, 4, seed=1), normal(3, 4, seed=2))
