"""States with several taps are shift registers: Fibonacci numbers, and tap -20."""

from __future__ import annotations

import numpy as np
import pytest
from hybridnet.contrib import scan

from .scans import TRIPS, Function, check_same, counts, normal, run


@pytest.mark.parametrize("hybridized", [False, True])
def test_fibonacci(hybridized):
    block = Function(
        lambda h: scan(lambda a, b: a + b, outputs_info={"initial": h, "taps": [-2, -1]}, n_steps=30),
        hybridized=hybridized,
    )
    rows = run(block, [np.array([0.0, 1.0])])[0].ravel()
    assert rows[:6].tolist() == [1, 2, 3, 5, 8, 13]
    assert rows[-1] == 1346269


def lagged(x, start):
    return scan(lambda a, old, last: a + 0.5 * old - last, x, {"initial": start, "taps": [-20, -1]})


@pytest.mark.parametrize("steps", [*TRIPS, 45])
@pytest.mark.parametrize("hybridized", [False, True])
def test_tap_of_20(steps, hybridized):
    x, start = normal(steps, 2), normal(20, 2, seed=1)
    history = list(start)
    for row in x:
        history.append(row + 0.5 * history[-20] - history[-1])
    (got,) = run(Function(lagged, hybridized=hybridized), [x, start])
    np.testing.assert_allclose(got, np.array(history[20:]).reshape(steps, 2), rtol=1e-12, atol=1e-13)


def test_gradients():
    check_same(lagged, normal(23, 2), normal(20, 2, seed=1))


def test_the_register_needs_no_operators():
    """A step runs the three operators of the function. The 20 initial rows are read in front of the loop, the register
    shifts without copies, and behind the loop at most its last 20 values are copied."""
    ran = counts(lagged, normal(40, 2), normal(20, 2, seed=1))
    assert ran.pop("copy", 0) <= 20
    assert ran == {"_mul_scalar": 40, "elemwise_add": 40, "elemwise_sub": 40, "slice_axis": 20, "_foreach": 1}
