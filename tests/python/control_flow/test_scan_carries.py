"""A state that is also an output: cumulative sums by a scan."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hybridnet.contrib import scan

from .scans import TRIPS, Function, check_same, counts, normal, plan, run


def cumulate(x, start):
    return scan(lambda a, s: s + a, x, start)


@pytest.mark.parametrize("rows", TRIPS)
@pytest.mark.parametrize("hybridized", [False, True])
def test_cumulative_sums(rows, hybridized):
    x = normal(rows, 3)
    (got,) = run(Function(cumulate, hybridized=hybridized), [x, np.ones(3)])
    np.testing.assert_allclose(got, 1 + np.cumsum(x, axis=0), rtol=1e-12)


def test_gradients():
    check_same(lambda x, s: scan(lambda a, s: (s * a).sin(), x, s), normal(5, 3), normal(3, seed=1))


def test_the_body_has_one_addition_and_no_copy():
    text = plan(cumulate, normal(5, 3), normal(3, seed=1), passes="fast_run,-fusion")
    assert text.count("elemwise_add") == 1
    assert not re.search(r"\] _?copy ", text)
    ran = counts(cumulate, normal(5, 3), normal(3, seed=1))
    assert ran.pop("copy", 0) <= 1  # a copy of the last state, behind the loop
    assert ran == {"elemwise_add": 5, "_foreach": 1}
