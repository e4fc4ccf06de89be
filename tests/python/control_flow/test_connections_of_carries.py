"""Gradients and the removal of dead states follow the dependencies of states, also around a cycle of three."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import scan

from .scans import Function, check_same, counts, normal


def cycle(x, start):
    """x reaches the output after three steps: a <- x, b <- a, c <- b, and a <- c again."""
    return scan(lambda x, a, b, c: [c + x, a * 2, b * 3], x, [start, start, start])[2]


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7])
def test_the_gradient_finds_the_way_around(steps, hybridized):
    """The last c depends on row t as 6 ** k if 3 k steps lie between them, and not at all on other rows."""
    x, start = mx.nd.ones((steps, 1), dtype="float64"), mx.nd.ones((1,), dtype="float64")
    x.attach_grad()
    start.attach_grad()
    with mx.autograd.record():
        last = Function(cycle, hybridized=hybridized)(x, start)[-1]
    last.backward()
    wanted = [6 ** ((steps - t) // 3) if (steps - t) % 3 == 0 else 0 for t in range(steps)]
    np.testing.assert_allclose(x.grad.asnumpy().ravel(), wanted)


def test_results():
    check_same(cycle, normal(7, 2), normal(2, seed=1))


def test_an_unread_cycle_is_dropped():
    def function(x, start):
        outs = scan(lambda x, a, b, c, d: [c.sin(), a * 2, b * 3, d + x], x, [start, start, start, start])
        return outs[3]

    assert counts(function, normal(7, 2), normal(2, seed=1))["sin"] == 0


def test_one_that_is_read_through_a_long_way_stays():
    def function(x, start):
        return scan(lambda x, a, b, c: [c.sin() + x, a * 2, b * 3], x, [start, start, start])[1]

    assert counts(function, normal(7, 2), normal(2, seed=1))["sin"] == 7
