"""Row 3: laziness reaches upstream work. Acceptance (GRAPH.md C7): A.A and its backward run only where c is true."""

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
def test_so_do_the_products_of_their_gradients(c, products) -> None:
    """Each product has two more in its backward part."""
    ran = counts(function, *ARRAYS, np.array([c]), gradients=1)
    assert sum(count for op, count in ran.items() if "dot" in op) == 3 * products
