# ruff: noqa: C408  (dict(input=x, taps=[...]) reads as the arguments that it holds)
"""Errors about wrong uses of scan say the expected and the given, alike on arrays and in graphs."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors
from hybridnet.contrib import reduce, scan, until

from .blocks import Block

nd = mx.nd
ROWS = nd.arange(6)
ONE = nd.ones((1,))

WRONG = {
    "no function": (errors.TypeError, "fn must be a function", lambda x: scan(3, x)),
    "no number of steps": (
        errors.ValueError,
        "the number of steps is not known.*there are no sequences.*pass n_steps=",
        lambda x: scan(lambda: x, outputs_info=None),
    ),
    "n_steps too large": (
        errors.ShapeError,
        r"sequences\[0\] has not enough rows for n_steps=7: expected at least 7 rows, got float32\(6,\)",
        lambda x: scan(lambda a: a, x, n_steps=7),
    ),
    "n_steps too large for the taps": (
        errors.ShapeError,
        r"expected at least 7 rows with taps \[-1, 2\], got float32\(6,\).*enough for 3 steps",
        lambda x: scan(lambda a, b: a, dict(input=x, taps=[-1, 2]), n_steps=4),
    ),
    "n_steps below zero": (
        errors.ParamError,
        "n_steps: expected an integer of at least 0, got -1",
        lambda x: scan(lambda a: a, x, n_steps=-1),
    ),
    "n_steps of several elements": (
        errors.ShapeError,
        r"n_steps: expected one element, got float32\(6,\)",
        lambda x: scan(lambda a: a, x, n_steps=x),
    ),
    "unknown key": (
        errors.ParamError,
        r"sequences\[0\]: expected a dict with the keys 'input' and 'taps', got the key 'inputs'",
        lambda x: scan(lambda a: a, dict(inputs=x)),
    ),
    "no taps": (
        errors.ParamError,
        r"taps of sequences\[0\]: expected at least one integer, got \[\]",
        lambda x: scan(lambda a: a, dict(input=x, taps=[])),
    ),
    "a NumPy array": (
        errors.TypeError,
        r"sequences\[0\]: expected an array, or a dict.*got a ndarray.*mx\.nd\.array",
        lambda x: scan(lambda a: a, np.arange(3)),
    ),
    "too few initial rows": (
        errors.ShapeError,
        r"the initial values of outputs_info\[0\]: expected 7 rows, oldest first, got float32\(6,\).*tap is -7",
        lambda x: scan(lambda a: a, outputs_info=dict(initial=x, taps=[-7]), n_steps=2),
    ),
    "taps of the future": (
        errors.ParamError,
        r"taps of outputs_info\[0\]: expected negative integers: -1 is the step before this one, got \[1\]",
        lambda x: scan(lambda a: a, outputs_info=dict(initial=x, taps=[1]), n_steps=2),
    ),
    "taps without initial values": (
        errors.ValueError,
        r"outputs_info\[0\] has taps but no 'initial'",
        lambda x: scan(lambda a: a, x, dict(taps=[-2])),
    ),
    "another number of outputs": (
        errors.TypeError,
        "another number of outputs than outputs_info describes: expected 1, got 2",
        lambda x: scan(lambda a, s: [a, a], x, 0),
    ),
    "another shape": (
        errors.ShapeError,
        r"outputs_info\[1\] changes its shape in the loop: expected float32\(6,\), got float32\(1,\)",
        lambda x: scan(lambda a, s: [a, a], x, [None, x]),
    ),
    "another dtype": (
        errors.DTypeError,
        r"outputs_info\[0\] changes its dtype.*float32\(1,\), got int32\(1,\)",
        lambda x: scan(lambda a, s: s.astype("int32"), x, x[:1]),
    ),
    "text as an output": (
        errors.TypeError,
        "output 0 is a str: expected arrays, then a dict of updates, then until",
        lambda x: scan(lambda a: "a", x),
    ),
    "a condition of several elements": (
        errors.ShapeError,
        r"the condition must have one element, got float32\(6,\)",
        lambda x: scan(lambda s: (s, until(s > 1)), outputs_info=x, n_steps=2),
    ),
    "truncate_gradient with until": (
        errors.ParamError,
        r"truncate_gradient: expected -1 if the function returns until\(\.\.\.\), got 2",
        lambda x: scan(lambda a: (a, until(a > 1)), x, truncate_gradient=2),
    ),
    "truncate_gradient of 0": (
        errors.ParamError,
        "scan: truncate_gradient: expected -1 or at least 1, got 0",
        lambda x: scan(lambda a: a, x, truncate_gradient=0),
    ),
    "text as a non-sequence": (
        errors.TypeError,
        r"non_sequences\[0\]: expected an array, a number or a Parameter, got a str",
        lambda x: scan(lambda a: a, x, non_sequences="a"),
    ),
    "strict": (
        errors.ValueError,
        r"strict=True: the function reads values that are not its arguments, got .*pass them in non_sequences",
        lambda x: scan(lambda a: a * x, x, strict=True),
    ),
}


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_message(name, hybridized):
    kind, message, function = WRONG[name]
    block = Block(function)
    if hybridized:
        block.hybridize(strict=True)
    with pytest.raises(kind, match=re.compile(message, re.DOTALL)):
        block(ROWS)


@pytest.mark.parametrize("hybridized", [False, True])
def test_strict_allows_arguments_and_constants_of_the_function(hybridized):
    def function(x, w):
        def step(a, s, w):
            return a * nd.array([2.0]) + s * w

        return scan(step, x, 0, w, strict=True)

    block = Block(function)
    if hybridized:
        block.hybridize(strict=True)
    assert block(nd.arange(3), nd.array([3.0])).asnumpy().ravel().tolist() == [0, 2, 10]


def test_strict_names_a_parameter():
    block = Block(lambda x: None)
    block.weight = block.params.get("weight", shape=(1,), init="ones")
    block.function = lambda x: scan(lambda a: a * block.weight.data(), x, strict=True)
    block.initialize()
    with pytest.raises(errors.ValueError, match=r"got 'block\d+_weight\w*'"):
        block(ROWS)


def test_sequences_that_differ_in_a_later_call():
    """The error comes when the graph is bound to the arrays of the second call: traced with equal lengths."""
    block = Block(lambda x, y: scan(lambda a, b: a + b, [x, y]))
    block.hybridize(strict=True)
    assert block(nd.ones((3,)), nd.ones((3,))).shape == (3, 1)
    with pytest.raises(errors.ShapeError, match=r"length|rows"):
        block(nd.ones((3,)), nd.ones((4,))).wait_to_read()


def test_values_of_a_step_stay_inside():
    kept = []

    def function(x):
        scan(lambda a: kept.append(a * 2) or a, x)
        return kept[0]

    block = Block(function)
    block.hybridize(strict=True)
    with pytest.raises(errors.TraceError, match=r"a value made inside the body of scan .* is read outside of it"):
        block(ROWS)


def test_errors_name_the_step():
    with pytest.raises(errors.ShapeError, match="In: scan, iteration 2"):
        scan(lambda a, s: s if a.asscalar() < 2 else nd.ones((2,)), nd.arange(4), ONE)


def test_reduce_without_rows():
    assert reduce(lambda a, s: a + s, nd.array(np.zeros((0, 2))), nd.ones((2,))).asnumpy().tolist() == [1, 1]
