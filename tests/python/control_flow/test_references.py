"""Known sequences and gradients, on arrays and in graphs."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block

nd = mx.nd


def backwards(x, s):
    outs, _ = foreach(lambda d, s: (2 * s + d, 2 * s + d), x, s, reverse=True)
    return outs.flip(axis=0)


SEQUENCES = {
    "cumulative sum": (lambda x, s: foreach(lambda d, s: (s + d, s + d), x, s)[0], [1, 2, 3, 4], 0, [1, 3, 6, 10]),
    "Fibonacci": (
        lambda x, s: foreach(lambda d, s: (s[0] + s[1], [s[1], s[0] + s[1]]), x, [s, s + 1])[0],
        [0] * 6,
        0,
        [1, 2, 3, 5, 8, 13],
    ),
    "backwards": (backwards, [0, 1, 2, 3], 0, [3, 8, 17, 34]),
    "two taps": (
        lambda x, s: foreach(lambda d, s: (10 * d[0] + d[1], s), [x[:4], x[2:]], [])[0],
        [0, 1, 2, 3, 4, 5],
        0,
        [2, 13, 24, 35],
    ),
    "doubled until it exceeds 10": (
        lambda x, s: while_loop(lambda h: h <= 10, lambda h: (h * 2, h * 2), s + x[0], 6)[0],
        [1],
        0,
        [2, 4, 8, 16, 0, 0],
    ),
}


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.filterwarnings("ignore:The 1-th input")
def test_sequences(name, hybridized):
    function, data, start, want = SEQUENCES[name]
    block = Block(function)
    block.hybridize(hybridized)
    out = block(nd.array(data), nd.array([start]))
    np.testing.assert_array_equal(out.asnumpy().ravel(), want)


def weighted(x, w):
    outs, _ = foreach(lambda d, h: (h * w, h * w), [], x, length=5)
    return outs.sum()


@pytest.mark.parametrize("hybridized", [False, True])
def test_derivatives_of_a_polynomial_to_the_third(hybridized):
    """w + w^2 + ... + w^5 at 2: value 62, then 129, 222, 294 for the first three derivatives."""
    block = Block(weighted)
    block.hybridize(hybridized)
    x, w = nd.ones((1,)), nd.array([2.0])
    w.attach_grad()
    with mx.autograd.record():
        value = block(x, w)
        found = [value]
        for _ in range(3):
            (value,) = mx.autograd.grad(value, [w], create_graph=True, retain_graph=True)
            found.append(value)
    assert [float(f.asnumpy().reshape(())) for f in found] == [62, 129, 222, 294]


def test_a_branch_takes_its_upstream_products_with_it_in_both_directions():
    """y = cond(c){A A}{B B B}: no product runs outside of the cond, forward or backward."""

    def function(a, b, c):
        p = mx.sym.dot(a, a)
        q = mx.sym.dot(mx.sym.dot(b, b), b)
        return cond(c, lambda: p * 1, lambda: q * 1)

    block = Block(function)
    block.hybridize()
    r = np.random.default_rng(0)
    a, b = (nd.array(r.normal(size=(3, 3)).astype("float32")) for _ in range(2))
    for taken in (1.0, 0.0):
        c = nd.array([taken])
        for array in (a, b):
            array.attach_grad()
        with mx.autograd.record():
            out = block(a, b, c)
        out.backward()
        one, ones = (a if taken else b).asnumpy(), np.ones((3, 3))
        if taken:
            want = ones @ one.T + one.T @ ones
        else:
            want = ones @ (one @ one).T + one.T @ ones @ one.T + (one @ one).T @ ones
        np.testing.assert_allclose((a if taken else b).grad.asnumpy(), want, rtol=1e-4, atol=1e-5)
        assert not (b if taken else a).grad.asnumpy().any()
    outside = [line for line in block._cached_op.graph_text().splitlines() if line.startswith("%") and "dot(" in line]
    assert outside == []
