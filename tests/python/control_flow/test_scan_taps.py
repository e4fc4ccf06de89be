"""Sequences of a scan with taps [0, 2] and with taps before and behind the step, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hybridnet.contrib import scan

from .scans import Function, check_same, normal, run


@pytest.mark.parametrize("hybridized", [False, True])
def test_taps_0_and_2(hybridized):
    block = Function(lambda x: scan(lambda a, b: 10 * a + b, {"input": x, "taps": [0, 2]}), hybridized=hybridized)
    assert run(block, [np.arange(6.0)])[0].ravel().tolist() == [2, 13, 24, 35]


@pytest.mark.parametrize("taps", [[0], [-1], [3], [-2, 0, 1], [1, -2], [2, 3], [-3, -1]])
def test_rows_of_any_taps(taps):
    """Step t reads rows t + tap of the rows that exist for all taps."""
    x = normal(9, 2)
    begin, end = max(0, -min(taps)), 9 - max(0, *taps)
    wanted = np.array([[x[t + tap] for tap in taps] for t in range(begin, end)])
    block = Function(lambda x: scan(lambda *rows: list(rows), {"input": x, "taps": taps}, return_list=True))
    for k, rows in enumerate(run(block, [x])):
        np.testing.assert_array_equal(rows, wanted[:, k])


def test_gradients_add_up_where_rows_are_read_twice():
    def function(x, h):
        return scan(lambda a, b, c, h: (a * b - c).sin() + h, {"input": x, "taps": [-1, 0, 2]}, h)

    check_same(function, normal(8, 2), normal(2, seed=1))
