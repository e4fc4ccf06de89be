# ruff: noqa: E501
"""Each rewrite of loops: examples in which it fires and in which it must not, with the same results and gradients."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block, operators
from .rewrite_checks import evaluate, loops_of, normal, number, runs, same_everywhere

nd = mx.nd

TRIPS = pytest.mark.parametrize("count", [1, 2, 7])


class TestWorkBehindTheLoop:
    """Work that only outputs of the loop need runs over all rows at once (push_behind_loop)."""

    @staticmethod
    def projected(x, s, w, v):
        F = operators(x)

        def body(d, h):
            h = (F.dot(h, w) + d).tanh()
            return F.dot(h, v), h

        return foreach(body, x, s)

    @staticmethod
    def arrays(count):
        return normal(count, 2, 3), normal(2, 3, seed=1), normal(3, 3, seed=2), normal(3, 5, seed=3)

    @TRIPS
    def test_results_stay(self, count):
        same_everywhere(self.projected, self.arrays(count))

    def test_one_product_for_all_rows(self):
        arrays = self.arrays(7)
        assert runs(self.projected, arrays, passes="fast_run,-fusion,-loop")["dot"] == 14
        assert runs(self.projected, arrays)["dot"] == 8

    def test_gradients_of_the_weights_are_one_product(self):
        """Forward: 7 products for the recurrence, 1 projection. Backward: 2 per iteration, 2 for the projection."""
        assert runs(self.projected, self.arrays(7), order=1)["dot"] <= 8 + 2 + 14

    def test_backwards_over_the_rows(self):
        def function(x, s, w, v):
            F = operators(x)
            return foreach(lambda d, h: (F.dot(h + d, v).sin(), (h + d).tanh()), x, s + w.sum() * 0, reverse=True)

        same_everywhere(function, self.arrays(7))
        assert runs(function, self.arrays(7))["dot"] == 1

    @pytest.mark.parametrize("layer", ["FullyConnected", "Convolution"])
    def test_layers(self, layer):
        def dense(x, s, w, b):
            F = operators(x)
            return foreach(lambda d, h: (F.FullyConnected(h, w, b, num_hidden=4).relu(), h + d), x, s)

        def convolution(x, s, w, b):
            F = operators(x)
            return foreach(
                lambda d, h: (F.Convolution(h + d, w, b, kernel=(3, 3), pad=(1, 1), num_filter=4), h * d), x, s
            )

        if layer == "FullyConnected":
            function, arrays = dense, (normal(5, 2, 3), normal(2, 3), normal(4, 3), normal(4))
        else:
            function, arrays = convolution, (normal(5, 1, 2, 6, 6), normal(1, 2, 6, 6), normal(4, 2, 3, 3), normal(4))
        for order in (0, 1):
            want, _ = evaluate(function, arrays, hybridized=False, order=order)
            got, _ = evaluate(function, arrays, order=order)
            for one, two in zip(got, want, strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)
        assert runs(function, arrays)[layer] == 1

    def test_work_read_by_the_next_iteration_stays(self):
        def function(x, s, w):
            F = operators(x)

            def body(d, h):
                h = F.dot(h, w) + d
                return h, h

            return foreach(body, x, s)

        arrays = normal(7, 2, 3), normal(2, 3), normal(3, 3)
        same_everywhere(function, arrays)
        assert runs(function, arrays)["dot"] == 7

    def test_work_that_would_need_more_memory_behind_the_loop_stays(self):
        """Attention weights are larger than their context: the loop would stack rows of 50 elements instead of 2."""

        def function(x, s, v):
            F = operators(x)
            return foreach(lambda d, h: (F.dot((h + d).tanh(), v), (h * d).sin()), x, s)

        arrays = normal(7, 2, 50), normal(2, 50), normal(50, 2)
        same_everywhere(function, arrays)
        assert runs(function, arrays)["dot"] == 7

    def test_truncated_loops_stay(self):
        def function(x, s, w, v):
            F = operators(x)
            return foreach(lambda d, h: (F.dot(h, v), (F.dot(h, w) + d).tanh()), x, s, truncate_gradient=2)

        same_everywhere(function, self.arrays(7))


class TestUnchangedCarries:
    """A state that no iteration changes becomes a captured value (unchanged_carries)."""

    @pytest.mark.parametrize("count", [0, 1, 5])
    def test_results_and_gradients_stay_and_the_state_goes(self, count):
        def function(x, s, w):
            outs, (last, same) = foreach(lambda d, h: (d * h[1], [(h[0] * h[1] + d).sin(), h[1]]), x, [s, w])
            return outs, last, same

        arrays = normal(count, 3), normal(3), normal(3)
        if count:
            same_everywhere(function, arrays)
        loops = loops_of(evaluate(function, arrays)[1])
        assert [number(loop, "num_carry") for loop in loops] == ([1] if count > 1 else [])

    def test_an_empty_loop_is_removed(self):
        def function(x, s):
            return foreach(lambda d, h: ([], h), x, s)[1]

        arrays = normal(5, 3), normal(3)
        same_everywhere(function, arrays)
        assert loops_of(evaluate(function, arrays)[1]) == []

    def test_the_condition_may_read_it(self):
        def function(x, limit):
            return while_loop(lambda v, n: v.sum() < n.sum(), lambda v, n: (v, (v * 2, n)), (x, limit), 20)[1]

        arrays = np.ones(2), np.full(2, 100.0)
        same_everywhere(function, arrays)
        (loop,) = loops_of(evaluate(function, arrays)[1], "_while_loop")
        assert number(loop, "num_carry") == 1


class TestSharedSlots:
    """Equal inputs and outputs of a loop become one (share_loop_slots)."""

    def test_data_states_and_outputs(self):
        def function(x, s):
            return foreach(lambda d, h: ([h[0] + d[0], h[1] + d[1]], [h[0] + d[0], h[1] + d[1]]), [x, x], [s, s])

        arrays = normal(5, 3), normal(3)
        same_everywhere(function, arrays)
        _, block = evaluate(function, arrays)
        (loop,) = loops_of(block)
        assert number(loop, "num_seq") == 1
        assert number(loop, "num_carry") == 1
        assert number(loop, "num_out") == 1

    def test_states_that_part_later_stay_apart(self):
        """The states are equal in the first iteration and differ from the second on."""

        def function(x, s):
            return foreach(lambda d, h: ([], [h[0] + d, h[1] + h[0] * d, h[2] + h[1] * d]), x, [s, s, s])[1]

        arrays = normal(5, 3), normal(3)
        same_everywhere(function, arrays)
        _, block = evaluate(function, arrays)
        assert number(loops_of(block)[0], "num_carry") == 3

    def test_states_that_swap_and_are_equal(self):
        def function(x, s):
            return foreach(lambda d, h: ([], [h[1] * d, h[0] * d]), x, [s, s])[1]

        arrays = normal(5, 3), normal(3)
        same_everywhere(function, arrays)
        _, block = evaluate(function, arrays)
        assert number(loops_of(block)[0], "num_carry") == 1

    def test_states_with_other_starts_stay_apart(self):
        def function(x, s):
            return foreach(lambda d, h: ([], [h[0] + d, h[1] + d]), x, [s, s * 2])[1]

        arrays = normal(5, 3), normal(3)
        same_everywhere(function, arrays)
        _, block = evaluate(function, arrays)
        assert number(loops_of(block)[0], "num_carry") == 2

    @TRIPS
    def test_states_that_pass_on_the_slices(self, count):
        """The states are equal only from the second iteration on."""

        def function(x, s):
            return foreach(lambda d, h: ([h[0] * d, h[1] + d], [d, d]), [x][0], [s, s])

        same_everywhere(function, (normal(count, 3), normal(3)))

    def test_random_states_stay_apart(self):
        def function(x, s):
            F = operators(x)
            draw = lambda: F.random.uniform(shape=(1000,), dtype="float64")  # noqa: E731
            return foreach(lambda d, h: ([], [h[0] + draw(), h[1] + draw()]), x, [s, s])[1]

        (one, two), _ = evaluate(function, (normal(3, 1), normal(1000)))
        assert (one != two).any()


class TestLastRows:
    """Outputs whose last rows alone are read are not stacked (keep_last_rows)."""

    READERS = {
        "last": lambda o: o[-1],
        "last three": lambda o: o[-3:],
        "one before the last": lambda o: o[-2],
        "some of the last": lambda o: operators(o).slice_axis(o, axis=0, begin=-3, end=-1),
        "two readers": lambda o: [o[-1], o[-2:] * 2],
    }

    @staticmethod
    def loop(read, reverse=False, state=True):
        def function(x, s):
            def body(d, h):
                new = (h * d).tanh() + d
                return (new if state else new.sin() * d), new

            return read(foreach(body, x, s, reverse=reverse)[0])

        return function

    @pytest.mark.parametrize("state", [True, False])
    @pytest.mark.parametrize("reverse", [True, False])
    @pytest.mark.parametrize("name", READERS)
    def test_results_stay(self, name, reverse, state):
        for count in (3, 7, 8):
            same_everywhere(self.loop(self.READERS[name], reverse, state), (normal(count, 4), normal(4)))

    @staticmethod
    def arena(function, count):
        _, block = evaluate(function, (normal(count, 50), normal(50)))
        return int(re.search(r"arena (\d+) bytes", block._cached_op.summary())[1])

    @pytest.mark.parametrize("state", [True, False])
    @pytest.mark.parametrize("name", READERS)
    def test_memory_does_not_grow(self, name, state):
        function = self.loop(self.READERS[name], state=state)
        assert self.arena(function, 10) == self.arena(function, 1000)
        assert number(loops_of(evaluate(function, (normal(10, 5), normal(5)))[1])[0], "num_out") == 0

    def test_the_last_rows_of_a_reversed_loop_are_the_first(self):
        function = self.loop(lambda o: o[:2], reverse=True)
        same_everywhere(function, (normal(9, 4), normal(4)))
        assert self.arena(function, 10) == self.arena(function, 1000)

    @pytest.mark.parametrize(
        "read", [lambda o: o[0], lambda o: o[-1] + o.sum(axis=0), lambda o: o[::2], lambda o: o[1:], lambda o: o[-5:]]
    )
    def test_other_readers_need_all_rows(self, read):
        function = self.loop(read)
        same_everywhere(function, (normal(9, 4), normal(4)))
        assert self.arena(function, 1000) >= 1000 * 50 * 8

    def test_no_iterations(self):
        """Reading the last row of an output without rows is an error, as on arrays."""
        with mx.util.np_shape(True):
            function = self.loop(lambda o: o[-1])
            for hybridized in (False, True):
                with pytest.raises(mx.errors.HybridNetError):
                    evaluate(function, (np.zeros((0, 4)), normal(4)), hybridized=hybridized)


class TestMergedLoops:
    """Loops over the same data become one (merge_loops)."""

    @staticmethod
    def two(x, s):
        one, last = foreach(lambda d, h: ((d + h).tanh(), (d + h).tanh()), x, s)
        two, _ = foreach(lambda d, h: ((d + h).tanh() + h.exp(), (d + h).tanh()), x, s)
        return one, two, last

    @TRIPS
    def test_results_stay(self, count):
        same_everywhere(self.two, (normal(count, 3), normal(3)))

    def test_shared_work_is_done_once(self):
        arrays = normal(7, 3), normal(3)
        counts = runs(self.two, arrays)
        assert counts["_foreach"] == 1
        assert counts["tanh"] == 7 and counts["exp"] == 7
        assert runs(self.two, arrays, passes="fast_run,-fusion,-loop")["tanh"] == 14

    def test_a_loop_that_reads_the_other_stays(self):
        def function(x, s):
            one, last = foreach(lambda d, h: (d * h, h + d), x, s)
            return foreach(lambda d, h: (d + h, h * d), x, last)[0] + one

        arrays = normal(7, 3), normal(3)
        same_everywhere(function, arrays)
        assert runs(function, arrays)["_foreach"] == 2

    def test_pairs_that_depend_on_each_other_crosswise(self):
        """With B1 = f(A1) and A2 = g(B2), merging both pairs (A1, A2) and (B1, B2) would make a cycle."""

        def function(x, s):
            _, a1 = foreach(lambda d, h: ([], h + d), x, s)
            _, b2 = foreach(lambda d, h: ([], h * d), x, s + 1)
            _, b1 = foreach(lambda d, h: ([], h * d + 2), x, a1)
            _, a2 = foreach(lambda d, h: ([], h + d * 2), x, b2)
            return b1, a2

        arrays = normal(4, 3), normal(3)
        same_everywhere(function, arrays)
        assert runs(function, arrays)["_foreach"] <= 3

    @pytest.mark.parametrize(
        "other", [{"reverse": True}, {"truncate_gradient": 2}, {"detach_every": 2}, {"checkpoint": "sqrt"}]
    )
    def test_loops_that_run_otherwise_stay_apart(self, other):
        def function(x, s):
            one, _ = foreach(lambda d, h: (d * h, h + d), x, s)
            return one, foreach(lambda d, h: (d + h, h * d), x, s, **other)[0]

        arrays = normal(4, 3), normal(3)
        same_everywhere(function, arrays)
        assert runs(function, arrays, order=1)["_foreach"] >= 4

    def test_other_data_stays_apart(self):
        def function(x, s):
            return foreach(lambda d, h: (d * h, h), x, s)[0], foreach(lambda d, h: (d + h, h), x * 2, s)[0]

        arrays = normal(4, 3), normal(3)
        same_everywhere(function, arrays)
        assert runs(function, arrays)["_foreach"] == 2

    def test_random_loops_stay_apart(self):
        def function(x, s):
            F = operators(x)
            draw = lambda d, h: (F.random.uniform(shape=(100,), dtype="float64"), h)  # noqa: E731
            return foreach(draw, x, s)[0], foreach(draw, x, s)[0]

        (one, two), _ = evaluate(function, (normal(3, 1), normal(3)))
        assert (one != two).any()


@pytest.mark.parametrize("name", ["behind", "merged", "shared"])
def test_loops_that_never_run(name):
    function, arrays = {
        "behind": (TestWorkBehindTheLoop.projected, (np.zeros((0, 2, 3)), *TestWorkBehindTheLoop.arrays(2)[1:])),
        "merged": (TestMergedLoops.two, (np.zeros((0, 3)), normal(3))),
        "shared": (
            lambda x, s: foreach(lambda d, h: ([h[0] + d[0], h[1] + d[1]], [h[0] + d[0], h[1] + d[1]]), [x, x], [s, s]),
            (np.zeros((0, 3)), normal(3)),
        ),
    }[name]
    with mx.util.np_shape(True):
        same_everywhere(function, arrays)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_rows_without_elements(shape):
    """Every shape that a rewrite makes keeps sizes of zero."""

    def function(x, s):
        found = []
        for checkpoint in (None, "sqrt", 2):
            outs, last = foreach(lambda d, h: (d * h, h + d), x, s, checkpoint=checkpoint)
            found += [outs, last, outs[-1], outs[-3:]]
            rows, (_, last) = while_loop(
                lambda i, v: i < 5, lambda i, v: (v, (i + 1, v * 2)), (0, s), 9, checkpoint=checkpoint
            )
            found += [rows, last]
        return found

    with mx.util.np_shape(True):
        same_everywhere(function, (np.zeros((7, *shape)), np.zeros(shape)))


class TestStatesInPlace:
    """Loops read their first states in place, without a copy, and leave the arrays of the caller unchanged."""

    def test_the_users_array_is_unchanged(self):
        block = Block(lambda x, s: foreach(lambda d, h: ([], h * 2 + d), x, s)[1])
        block.hybridize(static_alloc=True)
        x, s = nd.ones((5, 3)), nd.ones((3,))
        for _ in range(3):
            np.testing.assert_array_equal(block(x, s).asnumpy(), np.full(3, 63.0))
            np.testing.assert_array_equal(s.asnumpy(), np.ones(3))

    def test_two_states_from_one_start(self):
        same_everywhere(
            lambda x, s: foreach(lambda d, h: ([], [h[0] * d, h[1] + d]), x, [s, s])[1], (normal(4, 3), normal(3))
        )

    @pytest.mark.parametrize("count", [0, 3])
    def test_a_state_that_is_passed_on_unchanged(self, count):
        with mx.util.np_shape(True):
            block = Block(lambda x, s: foreach(lambda d, h: (d * h, h), x, s)[1])
            block.hybridize()
            s = nd.array([1.0, 2.0, 3.0])
            out = block(nd.array(np.ones((count, 3), "float32")), s)
            out += 1
            np.testing.assert_array_equal(s.asnumpy(), [1, 2, 3])

    def test_no_allocation_per_iteration(self):
        from hybridnet import _core

        block = Block(lambda x, s: foreach(lambda d, h: ([], (h * 2 + d).tanh()), x, s)[1])
        block.hybridize()
        found = []
        for count in (10, 1000):
            x, s = nd.ones((count, 3)), nd.ones((3,))
            for _ in range(2):
                block(x, s).wait_to_read()
            nd.waitall()
            before = _core.memory_statistics(1, 0)["allocations"]
            block(x, s).wait_to_read()
            found.append(_core.memory_statistics(1, 0)["allocations"] - before)
        assert found[0] == found[1]


class TestUpstreamWork:
    """Work that only one branch reads moves into the branch; other work does not (cond_sink)."""

    def test_products_of_the_branch_not_taken_never_run(self):
        """y = cond(c){A A}{B B B}: A A runs one product forward and two backward, B B B two and four."""

        def function(a, b, c):
            F = operators(a)
            p, q = F.dot(a, a), F.dot(F.dot(b, b), b)
            return cond(c.sum() > 0, lambda: p * 1, lambda: q * 1)

        a, b = normal(3, 3), normal(3, 3, seed=1)
        for taken, forward, backward in ((1.0, 1, 2), (-1.0, 2, 4)):
            arrays = a, b, np.full(1, taken)
            assert runs(function, arrays)["dot"] == forward
            assert runs(function, arrays, order=1)["dot"] == forward + backward
            same_everywhere(function, arrays)

    def test_work_does_not_move_into_a_loop(self):
        def function(x, s):
            p = (s * 2).exp()
            return foreach(lambda d, h: (d * p, h), x, s)[0]

        assert runs(function, (normal(5, 3), normal(3)))["exp"] == 1

    def test_work_of_a_body_moves_into_its_branches(self):
        def function(x, s):
            def body(d, h):
                p = (h + d).exp()
                return cond(d.sum() > 0, lambda: p * 1, lambda: d), h * 0.5 + d

            return foreach(body, x, s)

        x = np.array([[1.0], [-1], [2], [-2], [-3]])
        assert runs(function, (x, np.zeros(1)))["exp"] == 2
        same_everywhere(function, (x, np.zeros(1)))

    def test_a_node_whose_outputs_are_read_in_both_branches_stays(self):
        def function(x, s):
            parts = operators(x).split(x.exp(), num_outputs=2, axis=0)
            return cond(s.sum() > 0, lambda: parts[0] * 1, lambda: parts[1] * 1)

        arrays = normal(4, 3), np.ones(1)
        assert runs(function, arrays)["exp"] == 1
        same_everywhere(function, arrays)

    @pytest.mark.parametrize("depth", [1, 5, 20])
    def test_the_cost_of_a_chain_is_proportional_to_its_length(self, depth):
        def function(x, s):
            for k in range(depth):
                p, q, before = (x + k).sin() * s, (x + k).cos() * s, s
                s = cond(before.sum() > k, lambda p=p, b=before: b + p, lambda q=q, b=before: b - q)
            return s

        arrays = normal(3), normal(3)
        counts = runs(function, arrays)
        assert counts["_cond"] == depth
        assert counts.get("sin", 0) + counts.get("cos", 0) == depth
        same_everywhere(function, arrays)

    def test_the_cost_of_nested_branches_is_proportional_to_their_depth(self):
        """k nested branches run k bodies, not 2^k."""

        def nested(x, k):
            if k == 0:
                return x
            return cond(x.sum() > 0, lambda: nested(x.sin(), k - 1), lambda: nested(x.sin() * -1, k - 1))

        counts = runs(lambda x: nested(x, 5), (normal(3),))
        assert counts["_cond"] == 5 and counts["sin"] == 5


class TestGradientsOfAnyOrder:
    FUNCTIONS = {
        "foreach": lambda x, w: foreach(lambda d, h: (h * w, (h * w).sin() + d), x, w)[0].sum(axis=0),
        "while_loop": lambda x, w: while_loop(lambda i, h: i < 3, lambda i, h: (h * h, (i + 1, (h * w).sin() + x[0])), (0, w), 5)[0].sum(axis=0),
        "cond": lambda x, w: cond(x.sum() > -99, lambda: (w * w * x[0]).sin(), lambda: w),
        "nested": lambda x, w: foreach(lambda d, h: (cond(d.sum() > 0, lambda: h * w * w, lambda: h + d), (h * w).tanh()), x, w)[0].sum(axis=0),
    }  # fmt: skip

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_third_derivatives_are_those_of_differences(self, name):
        x = nd.array(normal(4, 2), dtype="float64")
        block = Block(self.FUNCTIONS[name])
        block.hybridize()

        def second(value):
            w = nd.array(value, dtype="float64")
            w.attach_grad()
            with mx.autograd.record():
                loss = block(x, w).sum()
                for _ in range(2):
                    loss = (mx.autograd.grad(loss, [w], create_graph=True, retain_graph=True)[0] ** 2).sum()
            loss.backward()
            return float(loss.asnumpy().reshape(())), w.grad.asnumpy()

        at = np.array([0.3, -0.7])
        _, gradient = second(at)
        for i in range(2):
            step = np.zeros(2)
            step[i] = 1e-5
            difference = (second(at + step)[0] - second(at - step)[0]) / 2e-5
            assert abs(difference - gradient[i]) <= 1e-6 + 1e-5 * abs(gradient[i])

    @pytest.mark.parametrize("hybridized", [False, True])
    def test_padding_of_a_while_loop_has_no_gradient(self, hybridized):
        block = Block(
            lambda s, x: while_loop(lambda i, h: i < 3, lambda i, h: (h * x, (i + 1, h * x)), (0, s), 10)[0].sum()
        )
        block.hybridize(hybridized)
        s, x = nd.ones((1,)), nd.array([2.0])
        x.attach_grad()
        with mx.autograd.record():
            out = block(s, x)
        out.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), [1 + 2 * 2 + 3 * 4])

    @pytest.mark.parametrize("hybridized", [False, True])
    def test_a_while_loop_that_never_runs_passes_gradients_to_its_start(self, hybridized):
        block = Block(
            lambda s, x: while_loop(lambda i, h: i < 0, lambda i, h: (h * x, (i + 1, h * x)), (0, s), 4)[1][1]
        )
        block.hybridize(hybridized)
        s, x = nd.ones((1,)), nd.array([2.0])
        for array in (s, x):
            array.attach_grad()
        with mx.autograd.record():
            out = block(s, x) * 3 + x
        out.backward()
        assert s.grad.asscalar() == 3 and x.grad.asscalar() == 1

    @pytest.mark.parametrize("hybridized", [False, True])
    @pytest.mark.parametrize("kind", ["foreach", "while_loop"])
    @pytest.mark.parametrize("step", [lambda v, w: w, lambda v, w: w * w, lambda v, w: v * 0 + 1])
    def test_states_that_no_iteration_replaced_pass_their_gradients_on(self, step, kind, hybridized):
        """This includes loops whose body would not read the state."""

        def function(s, w, d):
            if kind == "foreach":
                return foreach(lambda row, v: ([], step(v, w)), d, s)[1]
            return while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, step(v, w)), (0, s), 4, has_outputs=False)[1]

        with mx.util.np_shape(True):
            block = Block(function)
            block.hybridize(hybridized)
            s, w, d = nd.array([2.0, 3.0]), nd.array([4.0, 5.0]), nd.zeros((0, 2))
            s.attach_grad()
            w.attach_grad()
            with mx.autograd.record():
                loss = (block(s, w, d) ** 2).sum()
            loss.backward()
        np.testing.assert_array_equal(s.grad.asnumpy(), [4, 6])
        np.testing.assert_array_equal(w.grad.asnumpy(), [0, 0])
