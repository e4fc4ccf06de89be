"""Work in front of a cond that only one branch reads is lazy: A.A and its backward run only if c is true."""

from __future__ import annotations

import numpy as np
import pytest
from hybridnet.contrib import cond

from .scans import counts, normal, operators

ARRAYS = normal(3, 3), normal(3, 3, seed=1)


def function(a, b, c):
    F = operators(a)
    p = F.dot(a, a)
    q = F.dot(F.dot(b, b), b)
    return cond(c > 0, lambda: p, lambda: q)


@pytest.mark.parametrize(("c", "products"), [(1.0, 1), (-1.0, 2)])
def test_products_in_front_of_the_cond_run_for_their_branch_only(c, products) -> None:
    assert counts(function, *ARRAYS, np.array([c]))["dot"] == products


@pytest.mark.parametrize(("c", "products"), [(1.0, 1), (-1.0, 2)])
def test_gradient_products_run_for_their_branch_only(c, products) -> None:
    """The backward of each product runs two more products."""
    ran = counts(function, *ARRAYS, np.array([c]), gradients=1)
    assert sum(count for op, count in ran.items() if "dot" in op) == 3 * products
