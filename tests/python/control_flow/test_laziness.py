"""Branches that are not taken run no operator, including upstream work and gradients."""

from __future__ import annotations

import os
import time
from collections import Counter

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, test_utils
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block

nd = mx.nd


def picky(x, index):
    """Returns x at index and raises if the index is out of range: a probe that shows whether it runs."""
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
        """20 conditionals in a row: each moves into the conditional that reads it."""

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


def evaluated(function, order, *arrays):
    """Returns result, gradients and counts of operator runs of the second run of a hybridized block."""
    block = Block(function)
    block.hybridize(passes="fast_run,-fusion")
    arrays = [nd.array(a, dtype="float64") for a in arrays]
    for array in arrays:
        array.attach_grad()

    def run():
        with mx.autograd.record():
            out = loss = block(*arrays)
            if order == 2:
                loss = (mx.autograd.grad(out, [arrays[0]], create_graph=True, retain_graph=True)[0] ** 2).sum()
        if order:
            loss.backward()
        return out.asnumpy()

    run()
    with test_utils.exec_counts() as ran:
        out = run()
    counts = Counter()
    for (op, _), count in ran.items():
        counts[op] += count
    return out, [a.grad.asnumpy() for a in arrays], counts, sum(ran.values())


def nested(k, x, c):
    """k nested conditionals; every level has work in both branches and in front."""
    if k == 0:
        return x * 2
    above = x.sin() + x
    return cond(c > k, lambda: nested(k - 1, above, c), lambda: nested(k - 1, above * 0.5, c) if k < 3 else above.cos())


def chained(k, x, c):
    """k conditionals in a row; each reads its predecessor in one branch only, into which the predecessor moves."""
    value = x
    for i in range(k):
        value = cond(c > i, lambda v=value: v.sin() * 1.5, lambda i=i: x.cos() + i)
    return value


def joined(k, x, c):
    """k conditionals in a row; both branches read the predecessor."""
    value = x
    for i in range(k):
        up, down = value.sin(), value.cos() * 3
        value = cond(c > i, lambda v=value, u=up: u + v, lambda v=value, d=down: d - v)
    return value


def laddered(k, x, c):
    """Each conditional is computed in front of the next, which reads it in one branch."""
    if k == 0:
        return x * 2
    below = laddered(k - 1, x.sin(), c)
    return cond(c > k, lambda: below + 1, lambda: x.cos())


class TestCostIsProportionalToConditionals:
    """k conditionals, nested or in a row, run k bodies forward and backward, not 2^k."""

    SHAPES = {"nested": nested, "chained": chained, "joined": joined, "laddered": laddered}

    @pytest.mark.parametrize("order", [0, 1, 2])
    @pytest.mark.parametrize("shape", SHAPES)
    def test_runs_grow_evenly(self, shape, order):
        function = self.SHAPES[shape]
        for at in (100.0, 3.5) if order == 0 else (100.0,):
            counts = {}
            for k in (1, 2, 3, 4, 8, 12):
                out, grads, _, counts[k] = evaluated(lambda x, c, k=k: function(k, x, c), order, [0.5, 0.25], [at])
                plain = function(k, nd.array([0.5, 0.25], dtype="float64"), nd.array([at], dtype="float64"))
                np.testing.assert_allclose(out, plain.asnumpy())
                assert all(np.isfinite(g).all() for g in grads)
            step = max(counts[k] - counts[k - 1] for k in (2, 3, 4))
            assert counts[12] - counts[8] <= 4 * 1.5 * max(step, 1), counts

    @pytest.mark.parametrize("shape", SHAPES)
    def test_graphs_grow_evenly(self, shape):
        """The traced graph and its compilation grow in proportion: for 12 conditionals about 6 times as for 2."""
        sizes, seconds = [], []
        for k in (2, 12):
            block = Block(lambda x, c, k=k: self.SHAPES[shape](k, x, c))
            block.hybridize()
            x = nd.array([0.5, 0.25])
            x.attach_grad()
            begin = time.perf_counter()
            with mx.autograd.record():
                out = block(x, nd.array([100.0]))
            out.backward()
            nd.waitall()
            seconds.append(time.perf_counter() - begin)
            traced = self.SHAPES[shape](k, mx.sym.var("x"), mx.sym.var("c"))
            sizes.append(traced.tojson().count('"op"'))
        assert sizes[1] <= 8 * sizes[0], sizes
        assert seconds[1] < 20  # 2^12 bodies would take minutes to compile


class TestMergingKeepsLaziness:
    def run(self, function, *arrays, passes="fast_run,-fusion"):
        block = Block(function)
        block.hybridize(passes=passes)
        arrays = [nd.array(a, dtype="float64") for a in arrays]
        block(*arrays).wait_to_read()
        with test_utils.exec_counts() as ran:
            out = block(*arrays).asnumpy()
        counts = Counter()
        for (op, _), count in ran.items():
            counts[op] += count
        np.testing.assert_allclose(out, Block(function)(*arrays).asnumpy())
        return counts

    @pytest.mark.parametrize(("c", "runs"), [(-1.0, 0), (0.5, 1), (2.0, 2)])
    def test_equal_work_of_two_branches_stays_two(self, c, runs):
        """A merged node would be read by two conditionals and therefore always run."""

        def function(x, c):
            one, two = x.exp(), x.exp()
            first = cond(c > 0, lambda: one + 1, lambda: x)
            return first + cond(c > 1, lambda: two * 2, lambda: x)

        assert self.run(function, [0.5, 0.25], [c])["exp"] == runs

    def test_equal_work_for_one_branch_becomes_one(self):
        def function(x, c):
            one, two = x.exp(), x.exp()
            return cond(c > 0, lambda: one + two.sin(), lambda: x)

        assert self.run(function, [0.5, 0.25], [1.0])["exp"] == 1
        assert self.run(function, [0.5, 0.25], [-1.0])["exp"] == 0

    def test_work_of_a_branch_that_runs_anyway_becomes_one_with_it(self):
        def function(x, c):
            one, two, three = x.exp(), x.exp(), x.exp()
            first = cond(c > 0, lambda: one + 1, lambda: x)
            return first + cond(c > 1, lambda: two * 2, lambda: x) + three

        for c in (-1.0, 0.5, 2.0):
            assert self.run(function, [0.5, 0.25], [c])["exp"] == 1

    def test_equal_work_merges_if_branches_take_no_work(self):
        def function(x, c):
            one, two = x.exp(), x.exp()
            first = cond(c > 0, lambda: one + 1, lambda: x)
            return first + cond(c > 1, lambda: two * 2, lambda: x)

        assert self.run(function, [0.5, 0.25], [2.0], passes="fast_run,-fusion,-lazy")["exp"] == 1

    def test_loops_for_two_branches_stay_two(self):
        def function(x, c):
            one = foreach(lambda d, s: (d.exp(), s + d), x, x[0])[0]
            two = foreach(lambda d, s: (d.tanh(), s * d), x, x[0])[0]
            return cond(c > 0, lambda: one * 1, lambda: two * 1)

        x = np.ones((4, 2))
        assert self.run(function, x, [1.0])["exp"] == 4 and self.run(function, x, [1.0])["tanh"] == 0
        assert self.run(function, x, [-1.0])["exp"] == 0 and self.run(function, x, [-1.0])["tanh"] == 4


def test_work_for_a_branch_that_the_graph_returns_stays():
    def function(x, c):
        above = x.exp()
        return [cond(c > 0, lambda: above + 1, lambda: x), above]

    block = Block(function)
    block.hybridize(passes="fast_run,-fusion")
    x, c = nd.array([0.5]), nd.array([-1.0])
    for _ in range(2):
        one, two = block(x, c)
        assert one.asscalar() == 0.5
        np.testing.assert_allclose(two.asscalar(), np.exp(0.5), rtol=1e-6)


def test_the_gradient_of_a_branch_runs_its_own_products_only():
    """y = cond(c){A A}{B B B}: the backward runs two products for the first branch or four for the second."""

    def function(a, b, c):
        dot = mx.sym.dot if isinstance(a, mx.sym.Symbol) else nd.dot
        return cond(c > 0, lambda: dot(a, a) * 1, lambda: dot(dot(b, b), b) * 1)

    def above(a, b, c):
        dot = mx.sym.dot if isinstance(a, mx.sym.Symbol) else nd.dot
        p, q = dot(a, a), dot(dot(b, b), b)
        return cond(c > 0, lambda: p * 1, lambda: q * 1)

    a, b = np.arange(9.0).reshape(3, 3) / 9, np.eye(3) * 0.5 + 0.1
    for program in (function, above):
        for c, forward, backward in ((1.0, 1, 2), (-1.0, 2, 4)):
            assert evaluated(program, 0, a, b, [c])[2]["dot"] == forward
            _, grads, counts, _ = evaluated(program, 1, a, b, [c])
            assert counts["dot"] == forward + backward
            taken = 0 if c > 0 else 1
            assert np.abs(grads[taken]).max() > 0
            np.testing.assert_array_equal(grads[1 - taken], 0)


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
