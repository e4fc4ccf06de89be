"""Rewrites of loops with a condition: two loops become one, and equal variables are carried once."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block, operators
from .rewrite_checks import evaluate, loops_of, normal, number, runs, same_everywhere

nd = mx.nd
TRIPS = pytest.mark.parametrize("trips", [0, 1, 2, 7])
ARRAYS = normal(3), normal(3, seed=1)


def loop(trips, step, start, limit=8, **options):
    """A while_loop that calls step(i, v) -> (output, next v) while i < trips."""

    def body(i, v):
        out, v = step(i, v)
        return out, (i + 1, v)

    outs, (_, last) = while_loop(lambda i, v: i < trips, body, (0, start), limit, **options)
    return outs, last


def count_of_loops(function, arrays=ARRAYS, order=0):
    return runs(function, arrays, order=order)["_while_loop"]


class TestMergedLoops:
    """Loops with the same condition become one (merge_loops)."""

    @staticmethod
    def two(trips, **other):
        def function(x, w):
            one, last = loop(trips, lambda i, v: (v * w, (v * w).sin()), x)
            two, end = loop(trips, lambda i, v: ((v * w).sin() + v.exp(), (v * w).sin()), x, **other)
            return one, two, last + end

        return function

    @TRIPS
    def test_results_stay(self, trips):
        same_everywhere(self.two(trips), ARRAYS)

    def test_limits_that_end_the_loop(self):
        same_everywhere(self.two(9, limit=8), ARRAYS)
        same_everywhere(self.two(9, limit=0), ARRAYS)

    def test_shared_work_and_the_condition_run_once(self):
        counts = runs(self.two(7), ARRAYS)
        assert counts["_while_loop"] == 1
        assert counts["sin"] == 7 and counts["exp"] == 7
        assert counts["_lesser_scalar"] == 8 and counts["_plus_scalar"] == 7
        assert runs(self.two(7), ARRAYS, passes="fast_run,-fusion,-loop")["sin"] == 14

    def test_variables_in_another_order(self):
        def function(x, w):
            _, last = loop(5, lambda i, v: (v, v * w), x)
            end, _ = while_loop(lambda v, i: i < 5, lambda v, i: (v + w, i + 1), (x, 0), 8, has_outputs=False)
            return last, end

        same_everywhere(function, ARRAYS)
        assert count_of_loops(function) == 1

    def test_three_loops(self):
        def function(x, w):
            return [loop(5, lambda i, v, k=k: (v * w + k, (v * w).sin() + k), x)[0] for k in range(3)]

        same_everywhere(function, ARRAYS)
        assert count_of_loops(function) == 1

    def test_conditions_on_values_that_the_loops_compute_alike(self):
        def function(x, w):
            def grown(last):
                step = lambda v, n: (v * v + w, last(v, n))  # noqa: E731
                return while_loop(lambda v, n: v.sum() < w.sum() + 30, step, (x, x * 2), 8, has_outputs=False)

            return [*grown(lambda v, n: n + v), *grown(lambda v, n: n.sin() * v)]

        arrays = np.array([1.0, 1.5, 1.2]), np.array([0.1, 0.2, 0.3])
        same_everywhere(function, arrays)
        assert count_of_loops(function) == 1

    def test_counts_of_iterations(self):
        def function(x, w):
            found = []
            for k in range(2):
                _, (_, last), count = while_loop(
                    lambda i, v: i < 5,
                    lambda i, v, k=k: (v, (i + 1, v * w + k)),
                    (0, x),
                    8,
                    return_count=True,
                )
                found += [last, count.astype("float64")]
            return found

        assert count_of_loops(function) == 1
        results, _ = evaluate(function, ARRAYS)
        assert results[1] == results[3] == 5
        want, _ = evaluate(function, ARRAYS, hybridized=False)
        for one, other in zip(results, want, strict=True):
            np.testing.assert_allclose(one, other)

    DIFFERENT = {
        "another bound": lambda x, w: loop(6, lambda i, v: (v, v + w), x),
        "another test": lambda x, w: while_loop(
            lambda i, v: i <= 5, lambda i, v: (v, (i + 1, v + w)), (0, x), 8
        )[0],
        "another start": lambda x, w: while_loop(lambda i, v: i < 5, lambda i, v: (v, (i + 1, v + w)), (1, x), 8)[0],
        "another pace": lambda x, w: while_loop(lambda i, v: i < 5, lambda i, v: (v, (i + 2, v + w)), (0, x), 8)[0],
        "a pace that changes": lambda x, w: while_loop(
            lambda i, v: i < 5, lambda i, v: (v, (i * 2 + 1, v + w)), (0, x), 8
        )[0],
        "another limit": lambda x, w: loop(5, lambda i, v: (v, v + w), x, limit=9),
        "what happens at the limit": lambda x, w: loop(5, lambda i, v: (v, v + w), x, on_limit="warn"),
        "checkpoints": lambda x, w: loop(5, lambda i, v: (v, v + w), x, checkpoint="sqrt"),
        "a condition on what it computes": lambda x, w: while_loop(
            lambda i, v: (i < 5) * (v.sum() < 3).astype("float32"), lambda i, v: (v, (i + 1, v + w)), (0, x), 8
        )[0],
        "a condition on other values": lambda x, w: while_loop(
            lambda i, v: i < w.sum() * 0 + 5, lambda i, v: (v, (i + 1, v + w)), (x[:1] * 0, x), 8
        )[0],
    }  # fmt: skip

    @pytest.mark.parametrize("name", DIFFERENT)
    def test_loops_that_may_run_otherwise_stay_apart(self, name):
        def function(x, w):
            return loop(5, lambda i, v: (v * w, v * w), x)[0], self.DIFFERENT[name](x, w)

        same_everywhere(function, ARRAYS)
        assert count_of_loops(function) == 2

    def test_conditions_that_read_different_values_stay_apart(self):
        def function(x, w, a, b):
            def bounded(n, k):
                step = lambda i, v: (i + 1, v * w + k)  # noqa: E731
                return while_loop(lambda i, v: i < n, step, (x[:1] * 0, x), 8, has_outputs=False)[1]

            return bounded(a, 1), bounded(b, 2), bounded(a, 3)

        arrays = *ARRAYS, np.array([5.0]), np.array([5.0])
        same_everywhere(function, arrays)
        assert count_of_loops(function, arrays) == 2
        same_everywhere(function, (*ARRAYS, np.array([2.0]), np.array([7.0])))

    def test_variables_that_part_after_the_first_iteration(self):
        """The conditions read variables that are equal at the start and after one iteration, and differ later."""

        def function(x, w):
            start = x[:1] * 0

            def run(step):
                body = lambda i, j, v: (i + 1, step(i, j), v * w)  # noqa: E731
                return while_loop(lambda i, j, v: j < 5, body, (start, start, x), 8, has_outputs=False)[2]

            return run(lambda i, j: j + 1), run(lambda i, j: j + 1 + i)

        same_everywhere(function, ARRAYS)
        assert count_of_loops(function) == 2

    def test_a_loop_that_reads_the_other_stays(self):
        def function(x, w):
            outs, last = loop(5, lambda i, v: (v * w, v + w), x)
            return loop(5, lambda i, v: (v + w, v * w), last)[0] + outs

        same_everywhere(function, ARRAYS)
        assert count_of_loops(function) == 2

    def test_pairs_that_depend_on_each_other_crosswise(self):
        """With B1 = f(A1) and A2 = g(B2), merging both pairs (A1, A2) and (B1, B2) would make a cycle."""

        def function(x, w):
            _, a1 = loop(5, lambda i, v: (v, v + w), x)
            _, b2 = loop(5, lambda i, v: (v, v * w), x + 1)
            _, b1 = loop(5, lambda i, v: (v, v * w + 2), a1)
            _, a2 = loop(5, lambda i, v: (v, v + w * 2), b2)
            return b1, a2

        same_everywhere(function, ARRAYS)
        assert 2 <= count_of_loops(function) <= 3

    @TRIPS
    def test_variables_that_echo(self, trips):
        """A body returns variables unchanged, swapped or captured from outside."""

        def function(x, w):
            found = []
            for step in (
                lambda i, a, b: (a * b, (i + 1, b, a)),
                lambda i, a, b: (a + b, (i + 1, w, a)),
                lambda i, a, b: (a, (i + 1, a, b)),
                lambda i, a, b: (b, (i + 1, b, b)),
            ):
                outs, (_, a, b) = while_loop(lambda i, a, b: i < trips, step, (0, x, w), 8)
                found += [outs, a, b]
            return found

        same_everywhere(function, ARRAYS)
        if trips:  # without iterations the loops are removed
            assert count_of_loops(function) == 1

    def test_random_loops_stay_apart(self):
        def function(x, w):
            F = operators(x)
            draw = lambda i, v: (F.random.uniform(shape=(100,), dtype="float64"), v)  # noqa: E731
            return loop(5, draw, x)[0], loop(5, draw, x)[0]

        (one, two), _ = evaluate(function, ARRAYS)
        assert (one[:5] != two[:5]).any()

    def test_loops_in_branches_and_bodies(self):
        def function(x, w):
            def both(v):
                one, _ = loop(3, lambda i, u: (u * w, u.sin() * w), v)
                two, _ = loop(3, lambda i, u: (u + w, u.sin() * w), v)
                return one.sum(axis=0) * two.sum(axis=0)

            rows = foreach(lambda d, s: (both(d * w), s), w.reshape((3, 1)) * x, [])[0]
            return rows, cond(x.sum() < 99, lambda: both(x), lambda: x)

        same_everywhere(function, ARRAYS)

    def test_limits_known_at_run_time(self):
        def function(x, w, m):
            def run(most, k):
                step = lambda i, v: (i + 1, v * w + k)  # noqa: E731
                return while_loop(lambda i, v: i < 6, step, (0, x), most.astype("int32"), has_outputs=False)[1]

            return run(m, 0), run(m, 1), run(m + 1, 2)

        arrays = *ARRAYS, np.array([4.0])
        assert count_of_loops(function, arrays) == 2
        want, _ = evaluate(function, arrays, hybridized=False)
        for one, two in zip(evaluate(function, arrays)[0], want, strict=True):
            np.testing.assert_allclose(one, two)


class TestSharedSlots:
    """Equal inputs and outputs of a loop become one (share_loop_slots)."""

    @staticmethod
    def variables(block):
        (line,) = loops_of(block, "_while_loop")
        return number(line, "num_carry")

    @TRIPS
    def test_counters_variables_and_outputs(self, trips):
        def function(x, w):
            def body(i, j, a, b):
                return [a * w, b * w], (i + 1, j + 1, (a * w).sin() + j, (b * w).sin() + i)

            outs, (_, _, a, b) = while_loop(lambda i, j, a, b: i < trips, body, [x[:1] * 0] * 2 + [x, x], 8)
            return *outs, a, b

        same_everywhere(function, ARRAYS)
        _, block = evaluate(function, ARRAYS)
        assert self.variables(block) == 2
        assert number(loops_of(block, "_while_loop")[0], "num_out") == 1

    def test_a_condition_on_one_of_two_equal_variables(self):
        """The variable that is removed is read by the condition."""

        def function(x, w):
            body = lambda a, b: (a * w, (a * w + 1, b * w + 1))  # noqa: E731
            return while_loop(lambda a, b: (b.sum() < 9) + (a.sum() < 5), body, (x, x), 8)[0]

        same_everywhere(function, (np.ones(3), np.full(3, 1.1)))
        assert self.variables(evaluate(function, (np.ones(3), np.full(3, 1.1)))[1]) == 1

    @TRIPS
    def test_variables_that_part_later_stay_apart(self, trips):
        """The variables are equal in the first iteration and differ from the second on."""

        def function(x, w):
            body = lambda i, a, b, c: (i + 1, a + w, b + a * w, c + b * w)  # noqa: E731
            return while_loop(lambda i, a, b, c: i < trips, body, (0, x, x, x), 8, has_outputs=False)[1:]

        same_everywhere(function, ARRAYS)
        if trips:
            assert self.variables(evaluate(function, ARRAYS)[1]) == 4

    @TRIPS
    def test_variables_that_swap_and_are_equal(self, trips):
        def function(x, w):
            body = lambda i, a, b: (i + 1, b * w, a * w)  # noqa: E731
            return while_loop(lambda i, a, b: i < trips, body, (0, x, x), 8, has_outputs=False)[1:]

        same_everywhere(function, ARRAYS)
        if trips:
            assert self.variables(evaluate(function, ARRAYS)[1]) == 2

    def test_variables_with_other_starts_stay_apart(self):
        def function(x, w):
            body = lambda i, a, b: (i + 1, a * w, b * w)  # noqa: E731
            return while_loop(lambda i, a, b: i < 5, body, (0, x, x * 2), 8, has_outputs=False)[1:]

        same_everywhere(function, ARRAYS)
        assert self.variables(evaluate(function, ARRAYS)[1]) == 3

    def test_two_groups_of_equal_variables(self):
        """Four variables start equal and become two pairs."""

        def function(x, w):
            body = lambda i, a, b, c, d: (i + 1, a * w, b * w, c + w, d + w)  # noqa: E731
            return while_loop(lambda i, *v: i < 5, body, (0, x, x, x, x), 8, has_outputs=False)[1:]

        same_everywhere(function, ARRAYS)
        assert self.variables(evaluate(function, ARRAYS)[1]) == 3

    def test_a_value_returned_twice_is_two_arrays(self):
        def function(x, w):
            body = lambda i, a, b: (i + 1, a * w, b * w)  # noqa: E731
            return while_loop(lambda i, a, b: i < 5, body, (0, x, x), 8, has_outputs=False)[1:]

        block = Block(function)
        block.hybridize()
        one, two = block(nd.ones((3,)), nd.ones((3,)))
        one += 1
        np.testing.assert_array_equal(two.asnumpy(), np.ones(3))

    def test_random_variables_stay_apart(self):
        def function(x, w):
            F = operators(x)
            draw = lambda: F.random.uniform(shape=(3,), dtype="float64")  # noqa: E731
            body = lambda i, a, b: (i + 1, a + draw(), b + draw())  # noqa: E731
            return while_loop(lambda i, a, b: i < 5, body, (0, x, x), 8, has_outputs=False)[1:]

        (one, two), _ = evaluate(function, ARRAYS)
        assert (one != two).any()
