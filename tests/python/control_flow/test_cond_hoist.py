"""Equal work of both branches of a cond runs in front of it (cond_hoist_common); other work does not move."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, gluon
from hybridnet.contrib import cond, foreach
from hypothesis import given, settings
from hypothesis import strategies as st

from .test_loop_rewrites import Block, evaluate, normal, operators, runs

nd = mx.nd
WITHOUT = "fast_run,-hoist"
MATRIX = nd.array(normal(3, 3, seed=5), dtype="float64")


def total(counts):
    return sum(counts.values())


def times_fired(block, name, stage="branches"):
    """Counts how often a pass changed the outermost graph, without bodies, in one of its stages."""
    count, inside = 0, False
    for line in block.pass_report().splitlines():
        words = line.split()
        if words[1:2] == ["fired"]:
            inside = words[0] == name and f" us in {stage}," in line
            count += int(words[2]) if inside else 0
        elif inside and words[1:3] == ["in", "the"]:
            count -= int(words[0])
        else:
            inside = False
    return count


def fired(function, arrays):
    _, block = evaluate(function, arrays)
    return times_fired(block, "cond_hoist_common") > 0


def same_with_and_without(function, arrays, exact=True):
    """Checks that results (to the bit) and gradients to second order are the same without the pass and on arrays."""
    for order in (0, 1, 2):
        plain, _ = evaluate(function, arrays, hybridized=False, order=order)
        without, _ = evaluate(function, arrays, passes=WITHOUT, order=order)
        found, _ = evaluate(function, arrays, order=order)
        outputs = len(found) - (len(arrays) if order else 0)
        for i, (one, two, three) in enumerate(zip(found, without, plain, strict=True)):
            if exact and i < outputs:
                np.testing.assert_array_equal(one, two)
            np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(one, three, rtol=1e-9, atol=1e-10)


def both_signs(function, *arrays, exact=True):
    """Checks the function with both signs of the predicate, its last argument, so that each branch is taken once."""
    for sign in (-1.0, 1.0):
        same_with_and_without(function, (*arrays, np.full(1, sign)), exact)


class TestWhereItFires:
    def test_a_node_that_stands_outside_too_runs_once(self):
        def function(a, c):
            F = operators(a)
            chosen = cond(c.sum() > 0, lambda: F.dot(a, a).sin(), lambda: F.dot(a, a) * 2)
            return chosen + F.dot(a, a)

        for sign in (-1.0, 1.0):
            arrays = normal(3, 3), np.full(1, sign)
            assert runs(function, arrays)["dot"] == 1
            assert runs(function, arrays, passes="fast_run,-fusion,-hoist")["dot"] == 2
            # the backward runs two products per product of the forward
            assert runs(function, arrays, order=1)["dot"] == 3
            assert runs(function, arrays, order=1, passes="fast_run,-fusion,-hoist")["dot"] == 6
        both_signs(function, normal(3, 3))

    def test_whole_cones_move(self):
        def function(a, b, c):
            F = operators(a)

            def shared():
                return F.exp(F.dot(a, b).sin() * 0.1)

            chosen = cond(c.sum() > 0, lambda: F.dot(shared(), a), lambda: shared() - b)
            return chosen + shared()

        for sign in (-1.0, 1.0):
            arrays = normal(3, 3), normal(3, 3, seed=1), np.full(1, sign)
            with_pass, without = runs(function, arrays), runs(function, arrays, passes="fast_run,-fusion,-hoist")
            assert with_pass["exp"] == with_pass["sin"] == 1
            assert without["exp"] == without["sin"] == 2
        both_signs(function, normal(3, 3), normal(3, 3, seed=1))

    def test_conditionals_one_after_the_other_share_it(self):
        def function(a, c):
            F = operators(a)
            outs = [cond(c.sum() > k, lambda k=k: F.dot(a, a) + k, lambda k=k: F.dot(a, a) * (k + 2)) for k in range(6)]
            return sum(outs[1:], outs[0])

        for at in (-1.0, 2.5, 9.0):
            assert runs(function, (normal(3, 3), np.full(1, at)))["dot"] == 1
        both_signs(function, normal(3, 3))

    def test_nested_branches_level_by_level(self):
        def function(a, c):
            F = operators(a)
            deep = cond(
                c.sum() > 0,
                lambda: cond(c.sum() > 1, lambda: F.dot(a, a).sin(), lambda: F.dot(a, a).cos()),
                lambda: cond(c.sum() > -1, lambda: F.dot(a, a) * 2, lambda: F.dot(a, a) + 1),
            )
            return deep * F.dot(a, a)

        for at in (-2.0, -0.5, 0.5, 2.0):
            arrays = normal(3, 3), np.full(1, at)
            assert runs(function, arrays)["dot"] == 1
            same_with_and_without(function, arrays)

    def test_operands_of_commutative_operators_in_any_order(self):
        def function(a, b, c):
            return cond(c.sum() > 0, lambda: (a + b).sin(), lambda: (b + a).exp()) + (a + b)

        arrays = normal(3), normal(3, seed=1), np.ones(1)
        assert runs(function, arrays)["elemwise_add"] == 2
        both_signs(function, normal(3), normal(3, seed=1))

    def test_constants_of_the_same_array(self):
        def function(a, c):
            F = operators(a)
            return cond(c.sum() > 0, lambda: F.dot(a, MATRIX).sin(), lambda: F.dot(a, MATRIX) * 3) + F.dot(a, MATRIX)

        assert runs(function, (normal(2, 3), np.ones(1)))["dot"] == 1
        both_signs(function, normal(2, 3))

    def test_loops_that_both_branches_run(self):
        def function(a, c):
            def loop():
                return foreach(lambda d, s: (d.exp() * s, s + d), a, a[0])[0]

            return cond(c.sum() > 0, lambda: loop().sin(), lambda: loop() * 2) + loop()[0]

        arrays = normal(4, 3), np.ones(1)
        assert runs(function, arrays)["_foreach"] <= 2
        assert fired(function, arrays)
        both_signs(function, normal(4, 3), exact=False)

    def test_an_output_that_is_the_same_in_both_needs_no_branch(self):
        def function(a, c):
            F = operators(a)
            one, two = cond(c.sum() > 0, lambda: [F.dot(a, a), a + 1], lambda: [F.dot(a, a), a * 2])
            return one * 2, two

        both_signs(function, normal(3, 3))
        counts = runs(lambda a, c: function(a, c)[0], (normal(3, 3), np.ones(1)))
        assert "_cond" not in counts and counts["dot"] == 1

    def test_inputs_handed_through_by_both(self):
        def function(a, b, c):
            return cond(c.sum() > 0, lambda: [a, b.sin(), a], lambda: [a, b * 2, b])

        both_signs(function, normal(3), normal(3, seed=1))

    def test_operators_that_may_fail(self):
        """Both branches run the operator, so it fails no more often in front of them."""

        def function(a, index, c):
            F = operators(a)

            def part():
                return F.take(a, index, mode="raise")

            return cond(c.sum() > 0, lambda: part().sin(), lambda: part() * 2) + part()

        arrays = normal(3), np.ones(1), np.ones(1)
        assert runs(function, arrays)["take"] == 1
        with pytest.raises(errors.IndexError):
            evaluate(function, (normal(3), np.full(1, 7.0), np.ones(1)))
        same_with_and_without(function, arrays)

    def test_in_front_of_an_inner_branch_it_still_belongs_to_the_outer_one(self):
        def function(a, index, c):
            F = operators(a)

            def part():
                return F.take(a, index, mode="raise")

            return cond(
                c.sum() > 0,
                lambda: cond(c.sum() > 1, lambda: part().sin(), lambda: part() * 2),
                lambda: a[:1] * 3,
            )

        a = normal(3)
        (found,), _ = evaluate(function, (a, np.full(1, 7.0), np.full(1, -1.0)))
        np.testing.assert_array_equal(found, a[:1] * 3)
        with pytest.raises(errors.IndexError):
            evaluate(function, (a, np.full(1, 7.0), np.full(1, 1.0)))

    def test_in_the_body_of_a_loop(self):
        def function(x, w, s):
            def body(d, h):
                F = operators(h)
                value = cond(d.sum() > 0, lambda: F.dot(h, w).sin(), lambda: F.dot(h, w) * 0.5)
                return value + F.dot(h, w), value

            return foreach(body, x, s)

        arrays = normal(5, 3), normal(3, 3, seed=1) * 0.5, normal(3, seed=2)
        assert runs(function, arrays)["dot"] == 5
        assert runs(function, arrays, passes="fast_run,-fusion,-hoist")["dot"] == 10
        same_with_and_without(function, arrays)

    @pytest.mark.parametrize("checkpoint", ["sqrt", 2, lambda node: node.op == "_cond", lambda node: False])
    def test_in_loops_that_compute_again(self, checkpoint):
        def function(x, w, s):
            def body(d, h):
                F = operators(h)
                value = cond(d.sum() > 0, lambda: F.dot(h, w).sin(), lambda: F.dot(h, w).exp() * 0.1)
                return value, value * 0.5

            return foreach(body, x, s, checkpoint=checkpoint)

        same_with_and_without(function, (normal(5, 3), normal(3, 3, seed=1), normal(3, seed=2)))

    def test_gradients_of_both_branches_share_their_work(self):
        def function(a, b, c):
            F = operators(a)
            return cond(c.sum() > 0, lambda: F.dot(a, b) * 2, lambda: F.dot(a, b) * 3)

        both_signs(function, normal(3, 3), normal(3, 3, seed=1))


class TestWhereItMustNotFire:
    def test_random_draws(self):
        def function(x, c):
            F = operators(x)

            def draw():
                return F.random.uniform(shape=(64,), dtype="float64") + 0 * x

            return cond(c.sum() > 0, lambda: draw() + 0, lambda: draw() * 2), draw()

        for sign in (-1.0, 1.0):
            block = Block(function)
            block.hybridize()
            arrays = nd.zeros((64,), dtype="float64"), nd.array([sign], dtype="float64")
            one, two = (a.asnumpy() for a in block(*arrays))
            assert not np.array_equal(one, two) and not np.array_equal(one, 2 * two)
        mx.random.seed(3)
        with_pass = evaluate(function, (np.zeros(64), np.ones(1)))[0]
        mx.random.seed(3)
        without = evaluate(function, (np.zeros(64), np.ones(1)), passes=WITHOUT)[0]
        for one, two in zip(with_pass, without, strict=True):
            np.testing.assert_array_equal(one, two)

    def test_work_on_random_draws_does_not_move(self):
        def function(x, c):
            F = operators(x)
            return cond(c.sum() > 0, lambda: F.Dropout(x).exp() * 1, lambda: F.Dropout(x).exp() * 2)

        block = Block(function)
        block.hybridize(passes="fast_run,-fusion")
        x, c = nd.ones((8,)), nd.ones((1,))
        with mx.autograd.train_mode():
            block(x, c)
        assert times_fired(block, "cond_hoist_common") == 0

    def test_running_statistics_advance_once_per_run_of_a_branch(self):
        class Net(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                self.norm = gluon.nn.BatchNorm(in_channels=2)

            def forward(self, x, c):
                return cond(c > 0, lambda: self.norm(x) * 2, lambda: self.norm(x) + 1)

        found = []
        for passes in (None, "fast_run", WITHOUT):
            net = Net()
            net.initialize()
            net.hybridize(**({"passes": passes} if passes else {"active": False}))
            x = nd.array(normal(6, 2) + 4)
            for sign in (-1.0, 1.0, 1.0):
                with mx.autograd.record():
                    net(x, nd.array([sign])).wait_to_read()
            found.append([net.norm.running_mean.data().asnumpy(), net.norm.running_var.data().asnumpy()])
        for other in found[1:]:
            for one, two in zip(other, found[0], strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-6)

    def test_other_parameters_other_operands_other_order(self):
        def function(a, b, c):
            return cond(
                c.sum() > 0,
                lambda: [(a - b).sin(), a.sum(axis=0), a * 2],
                lambda: [(b - a).sin(), a.sum(axis=1), a * 3],
            )

        arrays = normal(3, 3), normal(3, 3, seed=1), np.ones(1)
        assert not fired(function, arrays)
        both_signs(function, normal(3, 3), normal(3, 3, seed=1))

    def test_work_of_one_branch(self):
        def function(a, c):
            F = operators(a)
            return cond(c.sum() > 0, lambda: F.dot(a, a), lambda: a * 2)

        arrays = normal(3, 3), np.full(1, -1.0)
        assert not fired(function, arrays)
        assert "dot" not in runs(function, arrays)

    def test_views_and_fills_alone(self):
        def function(a, c):
            F = operators(a)
            return cond(
                c.sum() > 0,
                lambda: a.reshape((9,)) * 2 + F.zeros((9,), dtype="float64"),
                lambda: a.reshape((9,)).sin() + F.zeros((9,), dtype="float64"),
            )

        assert not fired(function, (normal(3, 3), np.ones(1)))
        both_signs(function, normal(3, 3))

    def test_values_of_loops_inside_the_branches(self):
        def function(a, s, c):
            def loop(scale):
                return foreach(lambda d, h: ((d * h).exp(), h * scale), a, s)[0]

            return cond(c.sum() > 0, lambda: loop(1.0), lambda: loop(0.5))

        both_signs(function, normal(4, 3), normal(3, seed=1))

    @pytest.mark.parametrize("order", [0, 1])
    def test_branches_of_unequal_size(self, order):
        def function(a, c):
            return cond(c.sum() > 0, lambda: (a * a).exp(), lambda: (a * a)[:2])

        for sign in (-1.0, 1.0):
            arrays = normal(3), np.full(1, sign)
            want, _ = evaluate(function, arrays, hybridized=False, order=order)
            found, _ = evaluate(function, arrays, order=order)
            for one, two in zip(found, want, strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-12)


class TestBesideCondSink:
    def test_neither_undoes_the_other(self):
        """One value is read by both branches, and one by each branch alone."""

        def function(a, c):
            F = operators(a)
            p, q, both = F.dot(a, a), F.dot(a, a + 1), F.dot(a + 2, a)
            return cond(c.sum() > 0, lambda: p + both + F.dot(a, a * 3), lambda: q - both + F.dot(a, a * 3))

        for sign in (-1.0, 1.0):
            counts = runs(function, (normal(3, 3), np.full(1, sign)))
            assert counts["dot"] == 3
            _, block = evaluate(function, (normal(3, 3), np.full(1, sign)))
            for name in ("cond_hoist_common", "cond_sink"):
                assert times_fired(block, name) == 1
                assert times_fired(block, name, "control_parts") == 0  # the joint pass found no work
        both_signs(function, normal(3, 3))

    def test_upstream_work_of_one_branch_still_moves_in(self):
        def function(a, index, c):
            F = operators(a)
            probe = F.take(a, index, mode="raise")
            return cond(
                c.sum() > 0, lambda: F.exp(a).sum() + probe, lambda: F.exp(a).sum() * F.ones((1,), dtype="float64")
            )

        a = normal(3)
        (found,), _ = evaluate(function, (a, np.full(1, 9.0), np.full(1, -1.0)))
        np.testing.assert_allclose(found, np.exp(a).sum())

    def test_batch_norm_that_predicts_moves_into_its_branch(self):
        class Net(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                self.norm = gluon.nn.BatchNorm(in_channels=2)

            def forward(self, x, index, c):
                F = operators(x)
                above = self.norm(F.take(x, index, mode="raise"))
                return cond(c > 0, lambda: above * 2, lambda: x[:1])

        net = Net()
        net.initialize()
        net.hybridize()
        x = nd.array(normal(3, 2))
        np.testing.assert_array_equal(net(x, nd.array([9.0]), nd.array([-1.0])).asnumpy(), x[:1].asnumpy())
        with pytest.raises(errors.IndexError):
            net(x, nd.array([9.0]), nd.array([1.0])).wait_to_read()


# ------------------------------------------------------------------------------------------------------ random graphs
UNARY = ("sin", "tanh", "half", "dot", "view")
BINARY = ("add", "mul", "sub")


@st.composite
def terms(draw, depth=3, leaves=3):
    """Draws a term over numbered leaves, so small that two terms often have equal parts."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.integers(0, leaves - 1))
    if draw(st.booleans()):
        return (draw(st.sampled_from(UNARY[:3])), draw(terms(depth - 1, leaves)))
    if draw(st.integers(0, 2)) == 0:
        return (draw(st.sampled_from(UNARY[3:])), draw(terms(depth - 1, leaves)))
    return (draw(st.sampled_from(BINARY)), draw(terms(depth - 1, leaves)), draw(terms(depth - 1, leaves)))


@st.composite
def graphs(draw, depth=2):
    """Draws a chain of conditionals, nested ones too, whose branches take their terms from one pool."""
    pool = draw(st.lists(terms(), min_size=2, max_size=3))
    part = st.sampled_from(pool)

    def branch(level):
        if level > 0 and draw(st.booleans()):
            return ("cond", draw(st.sampled_from((-0.5, 0.2, 0.7))), branch(level - 1), branch(level - 1), draw(part))
        return ("sum", draw(part), draw(part), draw(part))

    steps = [("cond", draw(st.sampled_from((-0.4, 0.1, 0.6))), branch(depth), branch(depth), draw(part))]
    steps += [
        ("cond", draw(st.floats(-1, 1)), branch(depth), branch(depth), draw(part))
        for _ in range(draw(st.integers(0, 2)))
    ]
    return tuple(pool), tuple(steps), draw(part)


def compute(term, values):
    if isinstance(term, int):
        return values[term]
    op, *operands = term
    values = [compute(operand, values) for operand in operands]
    one = values[0]
    if op == "dot":
        return operators(one).dot(one.reshape((1, 3)), MATRIX).reshape((3,))
    if op == "view":
        return one.reshape((3, 1)).reshape((3,))
    return {
        "sin": one.sin, "tanh": one.tanh, "half": lambda: one * 0.5, "add": lambda: one + values[1],
        "mul": lambda: one * values[1], "sub": lambda: one - values[1],
    }[op]()  # fmt: skip


def choose(step, values, test):
    kind, *rest = step
    if kind == "sum":
        parts = [compute(term, values) for term in rest]
        return parts[0] + parts[1].sin() * parts[2]
    at, then, other, upstream = rest
    above = compute(upstream, values).tanh()  # read in one branch only, so it sinks
    return cond(
        test > at,
        lambda: choose(then, values, test * -0.7) + above,
        lambda: choose(other, values, test * 0.9 + 0.2),
    )


def program(graph):
    def function(a, b, test):
        _, steps, last = graph
        values = [a, b, a * b]
        for step in steps:
            values[2] = choose(step, values, test)
        return values[2] + compute(last, values)

    return function


@settings(max_examples=60, deadline=None)
@given(graphs(), st.floats(-1, 1), st.integers(0, 9))
def test_no_graph_runs_more_with_the_rules_than_without_and_bits_are_the_same(graph, test, seed):
    function = program(graph)
    arrays = normal(3, seed=seed), normal(3, seed=seed + 1), np.full(1, test)
    (want,), _ = evaluate(function, arrays, passes="none")
    plain = total(runs(function, arrays, passes="fast_run,-fusion,-lazy,-cse"))
    for passes in ("fast_run,-fusion", "fast_run,-fusion,-hoist", "fast_run,-fusion,-lazy"):
        (found,), _ = evaluate(function, arrays, passes=passes)
        np.testing.assert_array_equal(found, want)
        assert total(runs(function, arrays, passes=passes)) <= plain


@settings(max_examples=25, deadline=None)
@given(graphs(), st.floats(-1, 1), st.integers(0, 9), st.sampled_from((1, 2)))
def test_gradients_of_random_graphs_are_those_without_the_rules(graph, test, seed, order):
    function = program(graph)
    arrays = normal(3, seed=seed), normal(3, seed=seed + 1), np.full(1, test)
    want, _ = evaluate(function, arrays, passes="none", order=order)
    for passes in ("fast_run", WITHOUT, "fast_run,-lazy"):
        found, _ = evaluate(function, arrays, passes=passes, order=order)
        for one, two in zip(found, want, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)


def test_the_random_graphs_make_the_rule_fire():
    """Otherwise the two tests above would prove nothing."""
    count = []

    @settings(max_examples=60, deadline=None, database=None)
    @given(graphs())
    def look(graph):
        count.append(fired(program(graph), (normal(3), normal(3, seed=1), np.zeros(1))))

    look()
    assert sum(count) > len(count) / 3
