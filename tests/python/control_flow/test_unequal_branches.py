"""Branches of unequal size in loop bodies: rows of unequal size are an error, values reduced to one size work."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors
from hybridnet.contrib import cond, foreach, while_loop

from .test_loop_rewrites import Block, evaluate, operators

nd = mx.nd
ROWS = np.linspace(0.1, 1.3, 12).reshape(4, 3)
START = np.array([0.5])


def uneven(d):
    """Returns three numbers or two."""
    return cond(d.sum() > 2, lambda: d * d, lambda: d[:2].sin())


def pair(d):
    """A cond whose branches read a value of unknown size."""
    value = uneven(d)
    return cond(d[:1] > 0.7, lambda: value * 2, lambda: value[:1])


REDUCED = {
    "foreach, output": lambda x, s: foreach(lambda d, h: (uneven(d).sum(), h), x, s)[0],
    "foreach, state": lambda x, s: foreach(lambda d, h: ([], h * uneven(d).sum() + d[:1]), x, s)[1],
    "foreach, reversed": lambda x, s: foreach(lambda d, h: (uneven(d).max(), h * 0.5), x, s, reverse=True),
    "foreach, both": lambda x, s: foreach(lambda d, h: (uneven(d).mean() * h, h + uneven(d * 2).sum()), x, s),
    "foreach, padded": lambda x, s: foreach(
        lambda d, h: (operators(d).concat(uneven(d), d * 0, dim=0)[:3], h), x, s
    )[0],
    "foreach, in a loop": lambda x, s: foreach(
        lambda d, h: (foreach(lambda e, g: (uneven(d * e).sum(), g), d, h)[0].sum(), h), x, s
    )[0],
    "foreach, in a branch": lambda x, s: cond(
        x.sum() > 0, lambda: foreach(lambda d, h: (uneven(d).sum(), h), x, s)[0], lambda: x[:, :1] * 1
    ),
    "foreach, nested branches": lambda x, s: foreach(
        lambda d, h: (cond(d[:1] > 0.5, lambda: uneven(d), lambda: d[:1] * 2).sum(), h), x, s
    )[0],
    "foreach, cut gradients": lambda x, s: foreach(
        lambda d, h: (uneven(d).sum() * h, h * uneven(d).sum()), x, s, truncate_gradient=2
    )[0],
    "foreach, branches on such a value": lambda x, s: foreach(
        lambda d, h: (pair(d).sum() * cond(d[:1] > 0.3, lambda: pair(d), lambda: pair(d)[:1]).sum(), h), x, s
    )[0],
    "foreach, always one size": lambda x, s: foreach(lambda d, h: (uneven(d + 5), h), x, s)[0],
    "while_loop, output": lambda x, s: while_loop(
        lambda i, v: i < 3, lambda i, v: (uneven(v).sum(), (i + 1, v * 1.5)), (0, x[1]), 5
    )[0],
    "while_loop, variable": lambda x, s: while_loop(
        lambda i, v: i < 3, lambda i, v: ([], (i + 1, v * uneven(v).sum())), (0, x[2]), 5
    )[1][1],
    "while_loop, condition": lambda x, s: while_loop(
        lambda v: uneven(v).sum() < 9, lambda v: (v * 1, [v * 1.5]), [x[1]], 9
    )[0],
    "while_loop, exact": lambda x, s: while_loop(
        lambda i, v: i < 3, lambda i, v: (uneven(v).sum(), (i + 1, v * 1.5)), (0, x[1]), 5, exact=True
    )[0],
    "while_loop, sizes that may change": lambda x, s: while_loop(
        lambda i, v: i < 3,
        lambda i, v: ([], (i + 1, cond(i < 1, lambda: v * 1.5, lambda: v[:2]))),
        (0, x[1]),
        5,
        shape_invariants={1: (None,)},
    )[1][1],
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_values_reduced_to_one_size_equal_arrays_with_gradients(name, order):
    want, _ = evaluate(REDUCED[name], (ROWS, START), hybridized=False, order=order)
    found, _ = evaluate(REDUCED[name], (ROWS, START), order=order)
    for one, two in zip(found, want, strict=True):
        assert one.shape == two.shape
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["foreach, output", "foreach, state", "while_loop, output"])
def test_gradients_are_those_of_differences(name):
    _, block = evaluate(REDUCED[name], (ROWS, START), order=1)
    *_, gradient, _ = evaluate(REDUCED[name], (ROWS, START), order=1)[0]

    def loss(rows):
        out = block(nd.array(rows, dtype="float64"), nd.array(START, dtype="float64"))
        return float((out * out).sum().asscalar())

    for at in np.ndindex(ROWS.shape):
        step = np.zeros(ROWS.shape)
        step[at] = 1e-6
        difference = (loss(ROWS + step) - loss(ROWS - step)) / 2e-6
        assert abs(difference - gradient[at]) < 1e-6 + 1e-5 * abs(difference)


UNEQUAL = {
    "foreach, output": (
        lambda x, s: foreach(lambda d, h: (uneven(d), h), x, s)[0],
        ("foreach", "output", "iteration 2", "(2,)", "(3,)", "outputs of the same shape", "stacked"),
    ),
    "foreach, second output": (
        lambda x, s: foreach(lambda d, h: ([d, uneven(d)], h), x, s)[0],
        ("foreach", "output", "iteration 2", "(2,)", "(3,)", "outputs of the same shape", "stacked"),
    ),
    "foreach, reversed": (
        lambda x, s: foreach(lambda d, h: (uneven(d), h), x, s, reverse=True)[0],
        ("foreach", "output", "iteration 2", "(3,)", "(2,)", "outputs of the same shape", "stacked"),
    ),
    "foreach, state": (
        lambda x, s: foreach(lambda d, h: ([], cond(d.sum() > 2, lambda: h * 1, lambda: d[:2])), x, s)[1],
        ("foreach", "state", "iteration 0", "(1,)", "(2,)", "reshape the value that the function returns"),
    ),
    "while_loop, output": (
        lambda x, s: while_loop(lambda i: i < 4, lambda i: (uneven(x.take(i).reshape((3,))), (i + 1,)), (0,), 5)[0],
        ("while_loop", "output", "iteration 2", "(2,)", "(3,)", "outputs of the same shape", "stacked"),
    ),
    "while_loop, variable": (
        lambda x, s: while_loop(
            lambda i, v: i < 4, lambda i, v: ([], (i + 1, cond(i < 2, lambda: v * 1, lambda: v[:2]))), (0, x[0]), 5
        )[1][1],
        ("while_loop", "iteration 2", "(3,)", "(2,)", "shape_invariants"),
    ),
    "foreach, in a loop": (
        lambda x, s: foreach(lambda d, h: (foreach(lambda e, g: (uneven(d * e), g), d, h)[0].sum(), h), x, s)[0],
        ("foreach", "iteration 2", "iteration 1", "(2,)", "(3,)", "outputs of the same shape"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNEQUAL)
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("hybridized", [False, True], ids=["arrays", "hybridized"])
def test_unequal_rows_and_states_are_errors_that_name_both(name, train, hybridized):
    function, words = UNEQUAL[name]
    with pytest.raises(errors.ShapeError) as caught:
        evaluate(function, (ROWS, START), hybridized=hybridized, order=int(train))
    text = str(caught.value)
    for word in (*words, "Fix:", "test_unequal_branches.py"):
        assert word in text, (word, text)


def test_an_error_in_such_a_body_names_the_iteration():
    def function(x, s):
        return foreach(lambda d, h: (uneven(d).sum() + operators(d).take(h, d[:1] * 0 + 3, mode="raise"), h), x, s)[0]

    with pytest.raises(errors.IndexError, match="iteration 0"):
        evaluate(function, (ROWS, START))


def test_a_block_serves_rows_of_one_size_and_then_of_another():
    """Rows must agree in size within a run, not between runs."""
    block = Block(UNEQUAL["foreach, output"][0])
    block.hybridize()
    start = nd.array(START, dtype="float64")
    small, large = nd.array(ROWS * 0.01, dtype="float64"), nd.array(ROWS + 9, dtype="float64")
    for _ in range(2):
        assert block(small, start).shape == (4, 2)
        assert block(large, start).shape == (4, 3)
