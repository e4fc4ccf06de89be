# ruff: noqa: E731
"""Each rewrite of loops fires and keeps results and gradients, for no, one, two and seven iterations."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import foreach, while_loop

from .blocks import Block, operators
from .rewrite_checks import evaluate, loops_of, normal, number, runs, same_everywhere

nd = mx.nd
COUNTS = pytest.mark.parametrize("count", [0, 1, 2, 7])


@pytest.fixture(autouse=True)
def sizes_of_zero():
    with mx.util.np_shape(True):
        yield


def counted(step, start, count, outputs=True):
    """A while_loop that calls step(v) -> (output, next v) `count` times."""
    body = lambda i, v: (step(v)[0], (i + 1, step(v)[1]))
    outs, (_, last) = while_loop(lambda i, v: i < count, body, (0, start), 8)
    return (outs, last) if outputs else last


def dead_states(x, s, w):
    """A loop with two states and an output that only read each other, and unread data."""

    def body(data, h):
        d, _ = data
        return (d * h[0], h[1]), (h[0] * w + d, h[1] + h[2], h[2] * 2)

    outs, states = foreach(body, (x, x * 3), (s, s, s))
    return outs[0], states[0]


def invariant(x, s, w):
    return foreach(lambda d, h: (d * w.exp(), h * (w.sin() + 1) + d), x, s)


def rows_first(x, s, w):
    F = operators(x)
    m = F.dot(w.reshape((3, 1)), w.reshape((1, 3)))
    return foreach(lambda d, h: (h, (F.dot(d.reshape((1, 3)), m).reshape((3,)) + h).tanh()), x, s)


def work_behind(x, s, w):
    F = operators(x)
    m = F.dot(w.reshape((3, 1)), w.reshape((1, 3)))
    return foreach(lambda d, h: (F.dot((h + d).tanh().reshape((1, 3)), m), (h + d).tanh()), x, s)


def sums_of_products(x, s, w):
    F = operators(x)
    m = F.dot(w.reshape((3, 1)), w.reshape((1, 3)))
    return foreach(lambda d, h: ([], F.dot((h * d).reshape((1, 3)), m).tanh().reshape((3,)) + d), x, s)[1]


def two_states_from_one(x, s, w):
    return foreach(lambda d, h: ([], (h[0] * d + w, h[1] + d)), x, (s, s))[1]


def merged(x, s, w):
    one, last = foreach(lambda d, h: ((d * w).tanh() + h, (d * w).tanh()), x, s)
    two, _ = foreach(lambda d, h: ((d * w).tanh() * h, h + d), x, s)
    return one, two, last


def twins(x, s, w):
    return foreach(lambda d, h: ([h[0] * d[1], h[1] * d[0]], [h[0] + d[0] * w, h[1] + d[1] * w]), [x, x], [s, s])


FOREACH = {
    "cleanup": dead_states,
    "invariant": invariant,
    "rows first": rows_first,
    "work behind": work_behind,
    "sums of products": sums_of_products,
    "states in place": two_states_from_one,
    "merged": merged,
    "twins": twins,
    "kept once": lambda x, s, w: foreach(lambda d, h: ((h * w + d).tanh(),) * 2, x, s),
}


def arrays(count):
    return normal(count, 3), normal(3, seed=1), normal(3, seed=2)


@COUNTS
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", FOREACH)
def test_loops_over_data(name, reverse, count, monkeypatch):
    if reverse:
        monkeypatch.setitem(globals(), "foreach", lambda *args, **options: FORWARD(*args, reverse=True, **options))
    same_everywhere(FOREACH[name], arrays(count))


FORWARD = foreach

WHILE = {
    "cleanup": lambda s, w, n: while_loop(
        lambda i, a, b, c: i < n, lambda i, a, b, c: (b, (i + 1, a * w, b + c, c * 2)), (0, s, s, s), 8
    )[1][1],
    "invariant": lambda s, w, n: counted(lambda v: (v * w.exp(), v * (w.sin() + 1)), s, n),
    "states in place": lambda s, w, n: while_loop(
        lambda i, a, b: i < n, lambda i, a, b: (i + 1, a * b, a + b), (0, s, s), 8, has_outputs=False
    )[1:],
    "twins": lambda s, w, n: [
        s * w,
        while_loop(lambda i, a, b: i < n, lambda i, a, b: ([a * w, b * w], (i + 1, a.sin(), b.sin())), (0, s, s), 8)[0],
    ],
    "merged": lambda s, w, n: [
        *counted(lambda v: (v * w, (v * w).sin()), s, n),
        *counted(lambda v: (v + w, (v * w).sin() + v), s, n),
    ],
    "kept once": lambda s, w, n: counted(lambda v: ((v * w).tanh(),) * 2, s, n),
    "products": lambda s, w, n: counted(
        lambda v: (v, operators(v).dot(v.reshape((1, 3)), w.reshape((3, 1)) * w).reshape((3,)).tanh()), s, n
    ),
}  # fmt: skip


@COUNTS
@pytest.mark.parametrize("name", WHILE)
def test_loops_with_a_condition(name, count):
    same_everywhere(lambda s, w: WHILE[name](s, w, count), (normal(3, seed=1), normal(3, seed=2)))


# ------------------------------------------------------------------------------------------------------ 1: cleanup
class TestCleanup:
    def test_unread_values_are_removed(self):
        _, block = evaluate(dead_states, arrays(7))
        (loop,) = loops_of(block)
        assert number(loop, "num_seq") == 1
        assert number(loop, "num_carry") == 1
        assert number(loop, "num_out") == 1
        assert "_mul_scalar" not in runs(dead_states, arrays(7))

    def test_the_number_of_iterations_stays_when_the_data_that_set_it_is_removed(self):
        def function(x, s):
            return foreach(lambda d, h: ([], h * 2), x, s)[1]

        results, block = evaluate(function, (normal(5, 3), np.ones(3)))
        np.testing.assert_array_equal(results[0], np.full(3, 32.0))
        assert number(loops_of(block)[0], "num_seq") == 0

    def test_variables_read_by_the_condition_stay(self):
        def function(s):
            body = lambda i, j, v: (i + j, j + 1, v * 2)
            return while_loop(lambda i, j, v: i < 6, body, (0, 1, s), 8, has_outputs=False)[2]

        same_everywhere(function, (np.ones(3),))
        _, block = evaluate(function, (np.ones(3),))
        assert number(loops_of(block, "_while_loop")[0], "num_carry") == 3

    def test_the_rows_stay_when_a_state_goes(self):
        def function(x, s):
            return foreach(lambda d, h: (d * 2, h + d), x, s)[0]

        results, _ = evaluate(function, (normal(5, 3), normal(3)))
        assert results[0].shape == (5, 3)

    def test_running_statistics_are_read_by_the_next_operator(self):
        norm = gluon.nn.BatchNorm(in_channels=3)
        block = Block(lambda x: foreach(lambda d, s: (norm(d), s + d), x, x[0])[1], norm)
        block.hybridize()
        x = nd.array(normal(4, 5, 3))
        with mx.autograd.record():
            block(x).wait_to_read()
        assert (norm.running_mean.data().asnumpy() != 0).all()

    def test_a_loop_over_constants(self):
        data, start = nd.array(normal(4, 3), dtype="float64"), nd.array(normal(3), dtype="float64")

        def function(x):
            return foreach(lambda d, h: (d * h, h + d), data, start)[0] * x

        same_everywhere(function, (normal(3, seed=4),))


# ------------------------------------------------------------------------------------------------------- 2: invariants
class TestInvariants:
    def test_run_once(self):
        counts = runs(invariant, arrays(7))
        assert counts["exp"] == 1 and counts["sin"] == 1
        counts = runs(lambda s, w: WHILE["invariant"](s, w, 7), (normal(3), normal(3)))
        assert counts["exp"] == 1 and counts["sin"] == 1

    @pytest.mark.parametrize("kind", ["foreach", "while_loop"])
    def test_work_that_can_fail_does_not_run_without_an_iteration(self, kind):
        """An index out of range is an error if an iteration runs, and no error otherwise."""

        def function(x, s, i):
            F = operators(x)
            look = lambda: F.take(s, i, mode="raise")
            if kind == "foreach":
                return foreach(lambda d, h: (d, h + look().sum()), x, s)[1]
            step = lambda k, h: (k + 1, h + look().sum())
            return while_loop(lambda k, h: k < x.shape[0], step, (0, s), 8, has_outputs=False)[1]

        bad = np.array([9.0])
        for count in (0, 2):
            inputs = normal(count, 3), normal(3), bad
            if count == 0:
                np.testing.assert_array_equal(evaluate(function, inputs)[0][0], inputs[1])
            else:
                with pytest.raises(mx.errors.HybridNetError):
                    evaluate(function, inputs)

    def test_everything_moves_out(self):
        def function(x, s, w):
            return foreach(lambda d, h: (w.exp(), h), x, s)

        for count in (0, 1, 7):
            same_everywhere(function, arrays(count))
        assert runs(function, arrays(7))["exp"] == 1

    def test_draws_stay_in(self):
        def function(x, s):
            F = operators(x)
            return foreach(lambda d, h: (F.random.uniform(shape=(50,), dtype="float64"), h), x, s)[0]

        rows = evaluate(function, (normal(3, 1), normal(3)))[0][0]
        assert len({row.tobytes() for row in rows}) == 3

    def test_work_that_one_branch_reads_stays_in_it(self):
        def function(x, s, w):
            return foreach(lambda d, h: (mx.contrib.cond(d.sum() > 1e9, lambda: w.exp() * d, lambda: d), h), x, s)[0]

        same_everywhere(function, arrays(7))
        assert runs(function, arrays(7)).get("exp", 0) == 0


# --------------------------------------------------------------------------------------------- 3 to 5: work outside
class TestWorkOutside:
    @pytest.mark.parametrize("rows", [1, 4])
    def test_slices_against_captured_values_of_another_rank(self, rows):
        def function(x, s, w):
            return foreach(lambda d, h: (operators(d).broadcast_add(d, s) * w, h), x, s.sum())[0]

        same_everywhere(function, (normal(5, 3), normal(rows, 3), normal(3)))

    def test_products_of_rows_run_once(self):
        assert runs(rows_first, arrays(7))["dot"] <= 8

    def test_not_in_loops_with_a_condition(self):
        """The number of rows is unknown, so a product over all rows would compute past the last iteration."""
        counts = runs(lambda s, w: WHILE["products"](s, w, 3), (normal(3), normal(3)))
        assert counts["dot"] == 3

    def test_gradients_of_weights_are_summed_outside(self):
        def function(x, s, w):
            F = operators(x)
            return foreach(lambda d, h: ([], (F.dot(h, w) + d).tanh()), x, s)[1]

        inputs = normal(7, 2, 3), normal(2, 3, seed=1), normal(3, 3, seed=2)
        same_everywhere(function, inputs)
        assert runs(function, inputs, order=1)["dot"] == 7 + 7 + 1

    @pytest.mark.parametrize("start", [0, 1])
    def test_sums_that_do_not_start_at_zero(self, start):
        def function(x, s, w):
            F = operators(x)
            body = lambda d, h: ([], h + F.dot(d.reshape((3, 1)), (d * w).reshape((1, 3))))
            return foreach(body, x, s.reshape((1, 3)) * w.reshape((3, 1)) * start)[1]

        for count in (0, 1, 2, 7):
            same_everywhere(function, arrays(count))


# ------------------------------------------------------------------------------------------------- 7: the last rows
class TestLastRows:
    @pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "uint8"])
    def test_last_rows_of_any_dtype(self, dtype):
        block = Block(lambda x, s: foreach(lambda d, h: (d + h, d), x, s)[0][-2:])
        block.hybridize()
        x = nd.array(np.arange(18).reshape(6, 3), dtype=dtype)
        np.testing.assert_array_equal(
            block(x, nd.ones((3,), dtype=dtype)).asnumpy(), x.asnumpy()[-2:] + x.asnumpy()[-3:-1]
        )

    @pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
    def test_more_rows_than_there_are(self, count):
        same_everywhere(lambda x, s, w: foreach(lambda d, h: (d * h, h + w), x, s)[0][-5:], arrays(count))

    def test_the_last_of_none_is_an_error(self):
        function = lambda x, s, w: foreach(lambda d, h: (d * h, h + w), x, s)[0][-1]
        for hybridized in (False, True):
            with pytest.raises(mx.errors.HybridNetError):
                evaluate(function, arrays(0), hybridized=hybridized)


# ----------------------------------------------------------------------------------------------------- kept rows
class TestKept:
    """Rows that exist in an input or output anyway are not kept a second time for the gradient."""

    COUNT, SIZE = 100, 60

    def rows_kept(self, function):
        row = self.SIZE * 8
        inputs = normal(self.COUNT, self.SIZE), normal(self.SIZE, seed=1), normal(self.SIZE, seed=2)
        _, block = evaluate(function, inputs, order=1)
        kept = int(block._cached_op.summary().split("kept for backward ")[1].split(" bytes")[0])
        return kept / row

    def test_slices_are_those_of_the_data(self):
        assert self.rows_kept(lambda x, s, w: foreach(lambda d, h: (d * w, h), x, [])[0]) <= 3
        loop = lambda x, s, w: foreach(lambda d, h: ([], (h + 1) * d.reshape((6, 10)).reshape((-1,))), x, s)[1]
        assert self.rows_kept(loop) <= self.COUNT + 3

    def test_parts_of_slices_are_taken_again(self):
        def function(x, s, w):
            body = lambda d, h: ([], h * d.slice_axis(axis=0, begin=0, end=20) * d.slice_axis(axis=0, begin=20, end=40))
            return foreach(body, x, s[:20])[1]

        same_everywhere(function, (normal(5, 60), normal(60), normal(60)))
        assert self.rows_kept(function) <= 2 * self.COUNT * 20 / 60 + 3

    @pytest.mark.parametrize("reverse", [False, True])
    def test_states_are_kept_once(self, reverse):
        """The gradients of tanh and product read the result and the previous state: the same rows, shifted by one."""
        loop = lambda x, s, w: foreach(lambda d, h: ([], (h * w + d).tanh()), x, s, reverse=reverse)[1]
        assert self.rows_kept(loop) <= self.COUNT + 3

    @pytest.mark.parametrize("reverse", [False, True])
    def test_states_that_are_outputs_are_not_kept_again(self, reverse):
        loop = lambda x, s, w: foreach(lambda d, h: ((h * w + d).tanh(),) * 2, x, s, reverse=reverse)[0]
        assert self.rows_kept(loop) <= 3

    def test_states_of_a_loop_with_a_condition(self):
        def function(x, s, w):
            step = lambda i, v: (i + 1, (v * w + s).tanh())
            return while_loop(lambda i, v: i < 90, step, (0, s), self.COUNT, has_outputs=False)[1]

        assert self.rows_kept(function) <= self.COUNT + 3

    def test_work_on_captured_values_is_kept_once(self):
        assert (
            self.rows_kept(lambda x, s, w: foreach(lambda d, h: ([], h * w.exp().sin() + d), x, s)[1]) <= self.COUNT + 5
        )

    @pytest.mark.parametrize("count", [1, 2, 7])
    @pytest.mark.parametrize("options", [{}, {"reverse": True}, {"truncate_gradient": 2}, {"detach_every": 2}])
    def test_gradients_stay(self, options, count):
        def function(x, s, w):
            body = lambda d, h: (h[1], [(h[0] * w + d).tanh(), (h[0] * h[1]).sin() + d])
            return foreach(body, x, [s, s * 2], **options)

        for order in (1, 2):
            want, _ = evaluate(function, arrays(count), hybridized=False, order=order)
            got, _ = evaluate(function, arrays(count), order=order)
            for one, two in zip(got, want, strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)

    def test_states_without_axes(self):
        def function(x, s, w):
            body = lambda d, h: ([], (h * w.sum() + d.sum()).tanh())
            return foreach(body, x, s.sum())[1], foreach(lambda d, h: ([], (h * d).tanh()), w, s.sum())[1]

        for count in (1, 2, 7):
            same_everywhere(function, arrays(count))
