"""A plan keeps only the rows of an output that are read: y[-1] takes the same bytes for 10 and 1000 steps."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import scan

from .scans import Function, check_same, normal, run


def last(x, h):
    return scan(lambda a, h: (h * 0.5 + a).tanh(), x, h)[-1]


def bytes_of(function, steps):
    block = Function(function)
    run(block, [normal(steps, 64), normal(64, seed=1)])
    return int(re.search(r"arena (\d+) bytes", block.plan_text())[1])


def test_bytes_do_not_grow_with_the_steps():
    assert bytes_of(last, 10) == bytes_of(last, 1000)
    assert bytes_of(lambda x, h: last(x, h) * 2, 10) == bytes_of(lambda x, h: last(x, h) * 2, 1000)


def test_several_last_rows():
    def three(x, h):
        return scan(lambda a, h: (h * 0.5 + a).tanh(), x, h)[-3:]

    assert bytes_of(three, 1000) < 1000 * 64 * 8 / 10
    check_same(three, normal(7, 3), normal(3, seed=1))
    assert run(Function(three), [normal(2, 3), normal(3)])[0].shape == (2, 3)


def test_gradients_stay():
    for steps in (1, 2, 7):
        check_same(last, normal(steps, 3), normal(3, seed=1))


@pytest.mark.parametrize("hybridized", [False, True])
def test_the_last_row_of_none_is_an_error(hybridized):
    with pytest.raises((IndexError, mx.errors.HybridNetError)):
        run(Function(last, hybridized=hybridized), [normal(0, 3), normal(3)])


def test_registers_keep_the_rows_that_taps_read():
    def lagged(x, h):
        return scan(lambda a, old: a + old * 0.5, x, {"initial": h, "taps": [-4]})[-1]

    x, h = normal(9, 2), normal(4, 2, seed=1)
    history = list(h)
    for row in x:
        history.append(row + 0.5 * history[-4])
    np.testing.assert_allclose(run(Function(lagged), [x, h])[0], history[-1])
