"""Loops update states in place without a copy, and the initial value of the caller does not change."""

from __future__ import annotations

import hybridnet as mx
import pytest
from hybridnet.contrib import scan

from .scans import Function, check_same, counts, normal


@pytest.mark.parametrize("hybridized", [False, True])
def test_initial_values_stay(hybridized):
    def function(x, h):
        def step(a, h):
            h += a
            return h * 1

        return scan(step, x, h)

    block = Function(function, hybridized=hybridized)
    x, h = mx.nd.ones((4, 3)), mx.nd.zeros((3,))
    rows = block(x, h)
    assert rows.asnumpy()[:, 0].tolist() == [1, 2, 3, 4]
    assert h.asnumpy().tolist() == [0, 0, 0]
    rows[:] = 9
    assert h.asnumpy().tolist() == [0, 0, 0]
    assert x.asnumpy().min() == 1


@pytest.mark.parametrize("hybridized", [False, True])
def test_two_states_that_start_from_one_array(hybridized):
    def function(x, h):
        return scan(lambda a, s, r: [s + a, r * a], x, [h, h])

    sums, products = Function(function, hybridized=hybridized)(mx.nd.array([[2.0], [3.0]]), mx.nd.ones((1,)))
    assert sums.asnumpy().ravel().tolist() == [3, 6]
    assert products.asnumpy().ravel().tolist() == [2, 6]


def test_the_state_is_not_copied():
    """Step t + 1 reads row t of the output as its state."""
    ran = counts(lambda x, h: scan(lambda a, h: (h + a).tanh(), x, h), normal(9, 3), normal(3))
    assert ran.pop("copy", 0) <= 1  # a copy of the last state, behind the loop
    assert ran == {"elemwise_add": 9, "tanh": 9, "_foreach": 1}


def test_without_steps():
    def function(x, h):
        return scan(lambda a, h: h + a, x, h, n_steps=0), h * 2

    check_same(lambda x, h: function(x, h)[1], normal(3, 2), normal(2))
