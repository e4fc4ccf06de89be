"""Iterations read rows of an array by index: the gradient sums them once, behind the loop."""

from __future__ import annotations

import numpy as np
import pytest
from hybridnet.contrib import foreach, scan, until, while_loop

from .blocks import operators
from .rewrite_checks import evaluate, normal, runs, same_everywhere

TABLE = normal(6, 3)


def in_foreach(data, table, mode="clip"):
    """The state determines the index of the row; some rows are read several times, others never."""
    F = operators(data)

    def body(d, state):
        index = (state.sum() * 3).floor()
        row = F.squeeze(F.take(table, index.reshape((1,)), mode=mode), axis=0)
        state = (row * d + state).sin()
        return row, state

    return foreach(body, data, table[0] * 0.5)


def in_while_loop(table, start, limit, exact, mode="clip"):
    F = operators(table)

    def body(i, state):
        row = F.squeeze(F.take(table, i, mode=mode), axis=0)
        state = (row * state + row).sin()
        return state * 2, (i + 1, state)

    outs, last = while_loop(
        lambda i, state: i < 4, body, (F.zeros((1,), dtype="int64"), start), max_iterations=limit, exact=exact
    )
    return outs, last[1]


def in_two_axes(data, table):
    F = operators(data)

    def body(d, state):
        index = F.stack(state.sum().floor().reshape((1,)), F.ones((1,), dtype="float64"), axis=1)
        rows = F.take(table, index, mode="wrap")  # (1, 2, 3)
        state = (rows.sum(axis=(0, 1)) * d + state).tanh()
        return rows, state

    return foreach(body, data, data[0])


FUNCTIONS = {
    "foreach": (in_foreach, (normal(7, 3, seed=1), TABLE)),
    "foreach, wrap": (lambda d, t: in_foreach(d, t, "wrap"), (normal(7, 3, seed=1), TABLE)),
    "two axes of indices": (in_two_axes, (normal(5, 3, seed=2), TABLE)),
    "while_loop": (lambda t, s: in_while_loop(t, s, 4, False), (TABLE, normal(3, seed=3))),
    "while_loop with room": (lambda t, s: in_while_loop(t, s, 40, False), (TABLE, normal(3, seed=3))),
    "while_loop, exact": (lambda t, s: in_while_loop(t, s, 40, True), (TABLE, normal(3, seed=3))),
    "while_loop in chunks": (lambda t, s: in_while_loop(t, s, None, True), (TABLE, normal(3, seed=3))),
    "while_loop, raise": (lambda t, s: in_while_loop(t, s, 40, True, "raise"), (TABLE, normal(3, seed=3))),
    "scan with until": (
        lambda t, s: scan(lambda row, h: ((row * h).sin() + row, until(h.sum() > 2.5)), t, s),
        (TABLE, normal(3, seed=3)),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_gradients_stay(name):
    function, arrays = FUNCTIONS[name]
    same_everywhere(function, arrays)


@pytest.mark.parametrize("name", ["foreach", "while_loop", "while_loop with room", "scan with until"])
def test_one_sum_for_all_iterations(name):
    function, arrays = FUNCTIONS[name]
    assert runs(function, arrays, order=1)["_backward_take"] == 1


def test_reads_of_more_than_the_array_stay_in_the_loop():
    """Each iteration reads 20 rows of an array of 6: stacking them would take more memory than summing them."""

    def function(data, table):
        F = operators(data)

        def body(d, state):
            rows = F.take(table, F.arange(20, dtype="float64") + state.sum().floor(), mode="wrap")
            return rows.sum(axis=0), (rows.sum(axis=0) * d).sin()

        return foreach(body, data, data[0])

    arrays = normal(7, 3, seed=1), TABLE
    assert runs(function, arrays, order=1)["_backward_take"] == 7
    want, _ = evaluate(function, arrays, hybridized=False, order=1)
    got, _ = evaluate(function, arrays, order=1)
    for one, two in zip(got, want, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9)
