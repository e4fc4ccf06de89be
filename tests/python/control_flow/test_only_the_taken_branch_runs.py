"""Only the branch of a cond that is taken runs: the other branch runs 0 times, forward and backward."""

from __future__ import annotations

import numpy as np
import pytest
from hybridnet.contrib import cond

from .scans import counts, normal

A = normal(3, 3)


def function(x, c):
    return cond(c > 0, lambda: x.sin() * 2, lambda: x.tanh().exp())


@pytest.mark.parametrize("gradients", [0, 1])
@pytest.mark.parametrize(("c", "taken", "other"), [(1.0, {"sin"}, {"tanh", "exp"}), (-1.0, {"tanh", "exp"}, {"sin"})])
def test_the_other_branch_does_not_run(c, taken, other, gradients) -> None:
    ran = counts(function, A, np.array([c]), gradients=gradients)
    assert all(ran[op] == 1 for op in taken)
    assert all(ran[op] == 0 for op in other)
    if gradients:
        assert ran["_backward_tanh"] == (1 if "tanh" in taken else 0)
        assert ran["cos"] == (1 if "sin" in taken else 0)
