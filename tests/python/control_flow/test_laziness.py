"""Branches that are not taken cost nothing, upstream work and gradients included."""

from __future__ import annotations

import os
import time

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block

nd = mx.nd


def picky(x, index):
    """x at index; raises when it runs with an index out of range: a probe for whether it runs."""
    function = mx.sym.take if isinstance(x, mx.sym.Symbol) else nd.take
    return function(x, index, mode="raise")


def run(function, *arrays, train=False, **options):
    block = Block(function)
    block.hybridize(**options)
    if not train:
        return block(*arrays)
    for array in arrays[:2]:
        array.attach_grad()
    with mx.autograd.record():
        out = block(*arrays)
    out.backward()
    return out


GOOD, BAD = nd.array([1.0]), nd.array([7.0])


@pytest.mark.parametrize("train", [False, True])
class TestWhatRuns:
    def test_the_branch_itself(self, train):
        def function(x, c, index):
            return cond(c > 0, lambda: picky(x, index), lambda: x[:1] * 2)

        x = nd.arange(3)
        assert run(function, x, nd.zeros((1,)), BAD, train=train).asscalar() == 0
        with pytest.raises(errors.HybridNetError, match="then branch"):
            run(function, x, nd.ones((1,)), BAD, train=train).asscalar()

    def test_upstream_work_of_one_branch(self, train):
        def function(x, c, index):
            once = picky(x * 2, index)
            twice = once * once + once
            return cond(c > 0, lambda: twice.sin() + once, lambda: x[:1] * 2)

        x = nd.arange(3)
        assert run(function, x, nd.zeros((1,)), BAD, train=train).asscalar() == 0
        np.testing.assert_allclose(
            run(function, x, nd.ones((1,)), GOOD, train=train).asscalar(), np.sin(6) + 2, rtol=1e-5
        )
        with pytest.raises(errors.HybridNetError):
            run(function, x, nd.ones((1,)), BAD, train=train).asscalar()

    @pytest.mark.parametrize("use", ["both branches", "output", "predicate"])
    def test_work_that_others_read_stays_outside(self, train, use):
        def function(x, c, index):
            p = picky(x, index)
            other = (lambda: p * 3) if use == "both branches" else (lambda: x[:1])
            test = c + p * 0 if use == "predicate" else c
            out = cond(test > 0, lambda: p * 2, other)
            return out + p if use == "output" else out

        with pytest.raises(errors.HybridNetError):
            run(function, nd.arange(3), nd.zeros((1,)), BAD, train=train).asscalar()

    def test_a_chain_of_branches(self, train):
        """20 conditionals after each other: each moves its work into the one that reads it."""

        def function(x, c, index):
            value = x[:1]
            for k in range(20):
                probe, before = picky(x + k, index), value
                value = cond(c > 0, lambda p=probe, v=before: v + p, lambda v=before: v + 1)
            return value

        assert run(function, nd.arange(3), nd.zeros((1,)), BAD, train=train).asscalar() == 20

    def test_nested_branches(self, train):
        def function(x, c, index):
            probe = picky(x, index)
            deep = probe * 2
            return cond(c > -1, lambda: cond(c > 0, lambda: deep + 1, lambda: x[:1] + 5), lambda: x[:1])

        assert run(function, nd.arange(3), nd.zeros((1,)), BAD, train=train).asscalar() == 5

    def test_a_branch_in_a_loop(self, train):
        def function(x, c, index):
            def body(d, s):
                probe = picky(x, index + d * 0)
                return cond(d > 1, lambda: probe + s, lambda: d + s), s

            return foreach(body, x, c)[0].sum()

        assert run(function, nd.array([0.0, 1.0, 1.0]), nd.zeros((1,)), BAD, train=train).asscalar() == 2
        with pytest.raises(errors.HybridNetError, match="iteration 1"):
            run(function, nd.array([0.0, 2.0, 1.0]), nd.zeros((1,)), BAD, train=train).asscalar()


def test_random_draws_stay_where_they_are():
    def function(x, c):
        noise = mx.sym.random.uniform(shape=(4,)) if isinstance(x, mx.sym.Symbol) else nd.random.uniform(shape=(4,))
        return cond(c > 0, lambda: noise * 1, lambda: x), noise

    out, noise = run(function, nd.zeros((4,)), nd.ones((1,)))
    np.testing.assert_array_equal(out.asnumpy(), noise.asnumpy())


def test_without_the_rule_upstream_work_runs():
    def function(x, c, index):
        upstream = picky(x, index)
        return cond(c > 0, lambda: upstream * 2, lambda: x[:1])

    with pytest.raises(errors.HybridNetError):
        run(function, nd.arange(3), nd.zeros((1,)), BAD, passes="fast_run,-lazy").asscalar()


@pytest.mark.skipif(os.environ.get("HYBRIDNET_ENGINE_TYPE") == "NaiveEngine", reason="the naive engine runs at once")
def test_the_callers_thread_does_not_wait_for_a_loop():
    block = Block(
        lambda i, x: while_loop(
            lambda i, x: i < 400, lambda i, x: (i + 1, mx.sym.dot(x, x) * 1e-3), (i, x), 400, has_outputs=False
        )
    )
    block.hybridize()
    i, x = nd.zeros((1,)), nd.ones((300, 300))
    block(i, x)[1].wait_to_read()
    begin = time.perf_counter()
    out = block(i, x)[1]
    returned = time.perf_counter() - begin
    out.wait_to_read()
    total = time.perf_counter() - begin
    assert returned < total / 4
