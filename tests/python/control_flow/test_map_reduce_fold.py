"""map, reduce, foldl and foldr equal their plain Python forms."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hybridnet.contrib import foldl, foldr, reduce
from hybridnet.contrib import map as map_rows

from .scans import TRIPS, Function, check_same, normal, run

BOTH = pytest.mark.parametrize("hybridized", [False, True])


def mixed(a, s):
    return a - 0.5 * s


@BOTH
@pytest.mark.parametrize("rows", TRIPS)
def test_folds(rows, hybridized):
    x, start = normal(rows, 3), normal(3, seed=1)
    forwards = functools.reduce(lambda s, a: mixed(a, s), x, start)
    backwards = functools.reduce(lambda s, a: mixed(a, s), x[::-1], start)
    for view, wanted in ((foldl, forwards), (reduce, forwards), (foldr, backwards)):
        (got,) = run(Function(lambda x, s, v=view: v(mixed, x, s), hybridized=hybridized), [x, start])
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    block = Function(lambda x, s: reduce(mixed, x, s, go_backwards=True), hybridized=hybridized)
    np.testing.assert_allclose(run(block, [x, start])[0], backwards, rtol=1e-12)


@BOTH
@pytest.mark.parametrize("rows", TRIPS)
def test_map(rows, hybridized):
    x, y = normal(rows, 3), normal(rows, 3, seed=1)
    (got,) = run(Function(lambda x, y: map_rows(lambda a, b: a * b + 1, [x, y]), hybridized=hybridized), [x, y])
    np.testing.assert_allclose(got, np.array([a * b + 1 for a, b in zip(x, y, strict=True)]).reshape(rows, 3))


@BOTH
def test_map_backwards(hybridized):
    (got,) = run(
        Function(lambda x: map_rows(lambda a: a * 2, x, go_backwards=True), hybridized=hybridized), [normal(4, 1)]
    )
    np.testing.assert_allclose(got, 2 * normal(4, 1)[::-1])


@BOTH
def test_several_values(hybridized):
    block = Function(lambda x: reduce(lambda a, s, n: [s + a, n + 1], x, [0, 0]), hybridized=hybridized)
    total, count = run(block, [np.arange(5.0)])
    assert (total.item(), count.item()) == (10, 5)


def test_gradients():
    check_same(lambda x, s: [foldl(mixed, x, s), foldr(mixed, x, s).sin()], normal(5, 2), normal(2, seed=1))
