"""Gradients of a Fibonacci scan equal those of the unrolled program; the adjoint of a shift register is ordinary
carries."""

from __future__ import annotations

import numpy as np
import pytest
from hybridnet.contrib import scan

from .scans import Function, loops, normal, operators, plan, run


def step(x, a, b):
    return (a * b).sin() + b * x


def scanned(x, start):
    return scan(step, x, {"initial": start, "taps": [-2, -1]})


def unrolled(x, start):
    values = [start[0], start[1]]
    for t in range(6):
        values.append(step(x[t], values[-2], values[-1]))
    return operators(x).stack(*values[2:], axis=0)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("hybridized", [False, True])
def test_gradients_equal_the_unrolled_program(order, hybridized):
    arrays = normal(6, 2), normal(2, 2, seed=1)
    wanted = run(Function(unrolled, hybridized=False), arrays, order)
    for got, want in zip(run(Function(scanned, hybridized=hybridized), arrays, order), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


def test_sums_of_fibonacci_numbers():
    """d(row t)/d(start) are Fibonacci numbers themselves."""

    def fibonacci(start):
        return scan(lambda a, b: a + b, outputs_info={"initial": start, "taps": [-2, -1]}, n_steps=6).sum()

    _, slope = run(Function(lambda start: fibonacci(start) ** 0.5), [np.array([0.0, 1.0])], 1)
    assert slope.ravel().tolist() == pytest.approx([1 + 1 + 2 + 3 + 5 + 8, 1 + 2 + 3 + 5 + 8 + 13])


def test_backwards_it_is_one_foreach():
    text = plan(scanned, normal(6, 2), normal(2, 2, seed=1), gradients=1)
    assert len(loops(text)) == 2
