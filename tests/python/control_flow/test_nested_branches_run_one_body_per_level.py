"""k nested conditionals cost O(k): 20 nested levels run 20 branch bodies."""

from __future__ import annotations

import numpy as np
import pytest
from hybridnet.contrib import cond

from .scans import counts, normal

DEPTH = 20


def nested(level, x, c):
    """Nests `level` conditionals in their first branches; both branches of every level have work of their own."""
    if level == DEPTH:
        return x
    return cond(c > level, lambda: nested(level + 1, x.sin(), c), lambda: x.cos())


@pytest.mark.parametrize(("c", "sines"), [(float(DEPTH), DEPTH), (4.5, 5), (-1.0, 0)])
def test_as_many_bodies_run_as_levels_are_entered(c, sines) -> None:
    ran = counts(lambda x, c: nested(0, x, c), normal(3), np.array([c]))
    assert ran["sin"] == sines
    assert ran["cos"] == (0 if sines == DEPTH else 1)


def test_the_gradient_runs_as_many() -> None:
    ran = counts(lambda x, c: nested(0, x, c), normal(3), np.array([float(DEPTH)]), gradients=1)
    assert ran["sin"] == DEPTH
    assert ran["cos"] == DEPTH  # the derivatives of the sines
