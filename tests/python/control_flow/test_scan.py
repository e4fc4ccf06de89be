# ruff: noqa: C408  (dict(input=x, taps=[...]) reads as the arguments that it holds)
"""scan, map, reduce, foldl and foldr: results and gradients on arrays, in graphs, in files and in C++."""

from __future__ import annotations

import random

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import foldl, foldr, foreach, map, reduce, scan, until

from . import c_model
from .blocks import Block, exported, flat, operators
from .rewrite_checks import evaluate, loops_of, normal, runs, same_everywhere

nd = mx.nd
MODES = pytest.mark.parametrize("mode", ["imperative", "hybrid", "exported"])


def results(function, arrays, mode, folder):
    """Runs a function of arrays in a mode and returns the results as NumPy arrays."""
    arrays = [nd.array(a, dtype="float64" if np.asarray(a).dtype.kind == "f" else np.asarray(a).dtype) for a in arrays]
    block = Block(function)
    if mode != "imperative":
        block.hybridize(strict=True)
    out = flat(block(*arrays))
    if mode == "exported":
        out = flat(exported(block, folder, len(arrays))(*arrays))
    return [a.asnumpy() for a in out]


def check(function, arrays, wanted, mode, folder):
    for got, want in zip(results(function, arrays, mode, folder), wanted, strict=True):
        np.testing.assert_allclose(got.reshape(np.shape(want)), want, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------- small programs
@MODES
class TestSmallPrograms:
    def test_two_taps_of_an_output(self, mode, tmp_path):
        def fibonacci(start):
            return scan(lambda two, one: two + one, outputs_info=dict(initial=start, taps=[-2, -1]), n_steps=6)

        check(fibonacci, [[0.0, 1.0]], [[1, 2, 3, 5, 8, 13]], mode, tmp_path)

    def test_backwards_in_the_order_of_the_steps(self, mode, tmp_path):
        def function(x):
            return scan(lambda a, s: 2 * s + a, x, 0, go_backwards=True)

        check(function, [np.arange(4.0)], [[3, 8, 17, 34]], mode, tmp_path)

    def test_two_taps_of_a_sequence(self, mode, tmp_path):
        def function(x):
            return scan(lambda a, b: 10 * a + b, dict(input=x, taps=[0, 2]))

        check(function, [np.arange(6.0)], [[2, 13, 24, 35]], mode, tmp_path)

    def test_until_keeps_the_step_that_ends_it(self, mode, tmp_path):
        def function(start):
            return scan(lambda h: (2 * h, until(2 * h > 10)), outputs_info=start, n_steps=100)

        check(function, [[1.0]], [[2, 4, 8, 16]], mode, tmp_path)

    def test_until_that_never_holds(self, mode, tmp_path):
        check(lambda x: scan(lambda a: (a, until(a > 10)), x), [np.arange(4.0)], [np.arange(4.0)], mode, tmp_path)

    def test_until_backwards(self, mode, tmp_path):
        def function(x):
            return scan(lambda a, s: (a + s, until(a + s > 10)), x, 0, go_backwards=True)

        check(function, [np.arange(10.0)], [[9, 17]], mode, tmp_path)

    def test_sequences_are_cut_to_the_shortest(self, mode, tmp_path):
        def function(x, y):
            return scan(lambda a, b: [a + b, a * b], [x, y])

        check(function, [np.arange(4.0), np.arange(6.0)], [[0, 2, 4, 6], [0, 1, 4, 9]], mode, tmp_path)

    def test_backwards_the_ends_meet(self, mode, tmp_path):
        def function(x, y):
            return scan(lambda a, b: a + b, [x, y], go_backwards=True)

        check(function, [np.arange(4.0), np.arange(6.0)], [[8, 6, 4, 2]], mode, tmp_path)

    def test_n_steps_cuts_sequences(self, mode, tmp_path):
        def function(x):
            return [
                scan(lambda a: 2 * a, x, n_steps=2),
                scan(lambda a: 2 * a, x, n_steps=2, go_backwards=True),
                scan(lambda a, b: a - b, dict(input=x, taps=[-1, 1]), n_steps=2),
            ]

        check(function, [np.arange(5.0)], [[0, 2], [8, 6], [-2, -2]], mode, tmp_path)

    def test_arguments_come_in_the_order_of_taps(self, mode, tmp_path):
        def function(x, h, g, w):
            def fn(a, b, c, d, e, f, v):
                return [a + 10 * b + 100 * c, d + 10 * e + 100 * f + 0 * v]

            return scan(
                fn, [x, dict(input=x, taps=[2, -1])],
                [dict(initial=h, taps=[-1, -3]), dict(initial=g, taps=[-1])], w,
            )  # fmt: skip

        # The steps read rows 0, 1 of x, and rows 3, 0 and 4, 1 of x by taps; tap -1 of h is its last row, -3 its first.
        x, h, g, w = np.arange(5.0), np.array([7.0, 8, 9]), np.array([5.0]), np.zeros(1)
        first = [0 + 30 + 0, 9 + 70 + 500]
        second = [1 + 40 + 100, first[0] + 80 + 100 * first[1]]
        check(function, [x, h, g, w], [[first[0], second[0]], [first[1], second[1]]], mode, tmp_path)

    def test_no_steps(self, mode, tmp_path):
        def function(x):
            return [scan(lambda a, s: a + s, x, 3, n_steps=0), reduce(lambda a, s: a + s, x, 3)]

        check(function, [np.arange(3.0)], [np.zeros((0, 1)), 6], mode, tmp_path)

    def test_one_step(self, mode, tmp_path):
        def function(h):
            return scan(lambda a, b: a * b, outputs_info=dict(initial=h, taps=[-3, -1]), n_steps=1)

        check(function, [[2.0, 3, 5]], [[10]], mode, tmp_path)

    def test_views(self, mode, tmp_path):
        def function(x):
            return [
                map(lambda a: a * a, x),
                reduce(lambda a, s: a - s, x, 0),
                foldl(lambda a, s: a - s, x, 0),
                foldr(lambda a, s: a - s, x, 0),
            ]

        check(function, [np.arange(4.0)], [[0, 1, 4, 9], 2, 2, -2], mode, tmp_path)

    def test_a_reduction_of_several_values(self, mode, tmp_path):
        def function(x):
            return reduce(lambda a, s, m: [s + a, m * a], x, [0, 1])

        check(function, [np.arange(1.0, 5.0)], [10, 24], mode, tmp_path)


# ------------------------------------------------------------------------------- against a plain loop, at random
def plain(x, y, initials, taps, sequence_taps, steps, backwards):
    """Computes the scan of TestAgainstALoop in NumPy."""
    if backwards:
        x, y = x[::-1], y[::-1]
        sequence_taps = [[-tap for tap in taps_of_one] for taps_of_one in sequence_taps]
    before = [max(0, -min(one)) for one in sequence_taps]
    usable = [len(s) - b - max(0, *one) for s, b, one in zip((x, y), before, sequence_taps, strict=True)]
    count = min(usable) if steps is None else steps
    histories = [list(initial) for initial in initials]
    for t in range(count):
        rows = [
            s[b + t + tap]
            for s, b, one in zip((x, y), before, sequence_taps, strict=True)
            for tap in one
        ]  # fmt: skip
        previous = [history[tap] for history, one in zip(histories, taps, strict=True) for tap in one]
        for history, out in zip(histories, mixed(np, rows, previous), strict=True):
            history.append(out)
    return [np.array(h[len(i) :]).reshape(count, *x.shape[1:]) for h, i in zip(histories, initials, strict=True)]


def mixed(F, rows, previous):
    total = sum((k + 1) * 0.3 * row for k, row in enumerate(rows))
    carried = sum((k + 1) * 0.2 * value for k, value in enumerate(previous))
    return [F.sin(total + carried), F.cos(total) * carried]


class TestAgainstALoop:
    """Random taps, lengths and directions against a loop in NumPy."""

    @pytest.mark.parametrize("seed", range(24))
    def test_results(self, seed, tmp_path):
        draw = random.Random(seed)
        sequence_taps = [draw.sample(range(-3, 4), draw.randint(1, 3)) for _ in range(2)]
        taps = [[-tap for tap in draw.sample(range(1, 21 if draw.random() < 0.3 else 5), 2)] for _ in range(2)]
        lengths = [draw.randint(6, 12) for _ in range(2)]
        steps = draw.choice([None, 0, 1])
        backwards = draw.random() < 0.4
        x, y = (normal(n, 2, seed=seed + i) for i, n in enumerate(lengths))
        initials = [normal(-min(one), 2, seed=seed + 7 + i) for i, one in enumerate(taps)]

        def function(x, y, *starts):
            F = operators(x)
            count = sum(len(one) for one in sequence_taps)
            return scan(
                lambda *a: mixed(F, a[:count], a[count:]),
                [dict(input=s, taps=one) for s, one in zip((x, y), sequence_taps, strict=True)],
                [dict(initial=s, taps=one) for s, one in zip(starts, taps, strict=True)],
                n_steps=steps,
                go_backwards=backwards,
            )

        wanted = plain(x, y, initials, taps, sequence_taps, steps, backwards)
        for mode in ("imperative", "hybrid", "exported"):
            check(function, [x, y, *initials], wanted, mode, tmp_path)

    def test_one_plan_for_all_lengths(self):
        """Tracing does not depend on the length of a single sequence."""
        block = Block(lambda x, h: scan(lambda a, b, s: a + b + s, dict(input=x, taps=[-1, 1]), h))
        block.hybridize()
        for length in (4, 3, 20):
            x = normal(length, 2)
            wanted = np.cumsum(x[:-2] + x[2:], axis=0)
            np.testing.assert_allclose(block(nd.array(x), nd.zeros((2,))).asnumpy(), wanted, rtol=1e-5, atol=1e-6)
        assert len(next(iter(block._variants.values())).table) == 1

    def test_lengths_that_differ_are_cut_for_each_call(self):
        block = Block(lambda x, y: scan(lambda a, b: a + b, [x, y]))
        block.hybridize()
        for one, two in ((3, 5), (5, 3), (2, 9)):
            assert block(nd.ones((one, 2)), nd.ones((two, 2))).shape == (min(one, two), 2)


# ------------------------------------------------------------------------------------------------------------ gradients
def damped(a, b, h, g):
    return (a * h - b * g * 0.5 + g).sin()


GRADIENTS = {
    "taps": lambda x, i: scan(damped, dict(input=x, taps=[-1, 1]), dict(initial=i, taps=[-3, -1])),
    "long taps": lambda x, i: scan(damped, dict(input=x, taps=[0, 2]), dict(initial=stretched(i), taps=[-20, -1])),
    "backwards": lambda x, i: scan(
        damped, dict(input=x, taps=[-1, 1]), dict(initial=i, taps=[-3, -1]), go_backwards=True
    ),
    "until": lambda x, i: scan(
        lambda a, h, g: ((a * h + g).sin(), until((a * h + g).sum() > 1.2)), x, dict(initial=i, taps=[-3, -1])
    ),
    "until, backwards": lambda x, i: scan(
        lambda a, h, g: ((a * h + g).sin(), until((a * h + g).sum() > 1.2)), x, dict(initial=i, taps=[-3, -1]),
        go_backwards=True,
    ),
    "several outputs": lambda x, i: scan(
        lambda a, h, g: [(a * h).sin(), h * a, g * a + h], x, [i[0], None, dict(initial=x, taps=[-7])]
    ),
    "n_steps": lambda x, i: scan(lambda a, h: (a + h).sin(), x, i[0], n_steps=3),
    "reductions": lambda x, i: [
        reduce(lambda a, h: (a + h).sin(), x, i[0]),
        foldr(lambda a, h: (a * h).sin(), x, i[0]),
        map(lambda a: a * a.sin(), x),
    ],
    "checkpoint": lambda x, i: scan(lambda a, h: (a + h).sin(), x, i[0], checkpoint="sqrt"),
    "truncated": lambda x, i: scan(lambda a, h: (a + h).sin(), x, i[0], truncate_gradient=3),
    "detached": lambda x, i: scan(lambda a, h: (a + h).sin(), x, i[0], detach_every=3),
    "no steps": lambda x, i: scan(lambda a, h: (a + h).sin(), x, i[0], n_steps=0) + i[0],
    "a scan in a scan": lambda x, i: scan(lambda a, h: inner(a, i[1:] * h)[3], x, i[0]),
}  # fmt: skip


def inner(a, start):
    return scan(lambda b, g: (b * g).sin() + a, outputs_info=dict(initial=start, taps=[-2, -1]), n_steps=4)


def stretched(rows):
    return operators(rows).concat(*[rows * (0.2 * k) for k in range(1, 8)], dim=0)[1:]


@pytest.mark.parametrize("name", GRADIENTS)
def test_first_and_second_gradients_are_those_of_the_loop_on_arrays(name):
    same_everywhere(GRADIENTS[name], (normal(7, 2), normal(3, 2, seed=1)))


def test_third_gradient():
    """The recurrence h[t] = x h[t-1] h[t-2] from (a, b) gives x^4 a^2 b^3 after three steps (Fibonacci exponents)."""

    def function(x, start):
        return scan(lambda a, h, g: a * h * g, [x], dict(initial=start, taps=[-2, -1]))[-1].sum()

    for hybridized in (False, True):
        block = Block(function)
        if hybridized:
            block.hybridize()
        x, start = nd.array([[1.1], [1.2], [1.3]], dtype="float64"), nd.array([[0.7], [0.9]], dtype="float64")
        start.attach_grad()
        with mx.autograd.record():
            value = block(x, start)
            for _ in range(2):
                value = mx.autograd.grad(value, start, create_graph=True, retain_graph=True)[0][1].sum()
        value.backward()
        scale = 1.1**2 * 1.2 * 1.3  # x1^2 x2 x3 a^2 b^3
        np.testing.assert_allclose(start.grad.asnumpy(), [[2 * 0.7 * scale * 6 * 0.9], [0.7**2 * scale * 6]], rtol=1e-9)


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, 129),
        *[({"truncate_gradient": k}, w) for k, w in ((1, 16), (2, 40), (3, 68))],
        *[({"detach_every": k}, w) for k, w in ((1, 31), (2, 41), (3, 57))],
    ],
)
def test_cut_gradients(options, wanted, hybridized):
    """h' = w h from h = 1 with w = 2, five steps: the gradient of the sum of all h by w."""
    block = Block(lambda w: scan(lambda h, w: w * h, outputs_info=nd_ones(w), non_sequences=w, n_steps=5, **options))
    if hybridized:
        block.hybridize()
    w = nd.array([2.0])
    w.attach_grad()
    with mx.autograd.record():
        loss = block(w).sum()
    loss.backward()
    assert loss.asscalar() == 62
    assert w.grad.asscalar() == wanted


def nd_ones(like):
    return operators(like).ones_like(like)


# --------------------------------------------------------------------------------------------------- numbers of steps
class TestStepsOfTheRun:
    """n_steps is an array: scan reads it at once on arrays, and in each run of a graph."""

    def power(self, a, k):
        return scan(lambda p, a: p * a, outputs_info=nd_ones(a), non_sequences=a, n_steps=k)

    def test_values_and_gradient(self):
        block = Block(self.power)
        block.hybridize(strict=True)
        for steps in (3, 0, 6):
            for function in (self.power, block):
                a, k = nd.array([2.0]), nd.array([steps], dtype="int32")
                a.attach_grad()
                with mx.autograd.record():
                    rows = function(a, k)
                    loss = rows.sum()
                loss.backward()
                assert rows.asnumpy().ravel().tolist() == [2.0 ** (i + 1) for i in range(steps)]
                assert a.grad.asscalar() == sum((i + 1) * 2**i for i in range(steps))
        assert len(next(iter(block._variants.values())).table) == 1

    def test_an_array_from_outside_is_read_when_the_block_is_traced(self):
        k = nd.array([3], dtype="int32")
        block = Block(lambda x: scan(lambda a, s: a + s, x, 0, n_steps=k))
        block.hybridize(strict=True)
        assert block(nd.arange(5)).shape == (3, 1)

    def test_with_sequences_the_smaller_number_counts(self):
        def function(x, k):
            return scan(lambda a, s: a + s, x, 0, n_steps=k)

        block = Block(function)
        block.hybridize(strict=True)
        for k, wanted in ((2, [0, 1]), (9, [0, 1, 3])):
            assert block(nd.arange(3), nd.array([k], dtype="int64")).asnumpy().ravel().tolist() == wanted


# ------------------------------------------------------------------------------------------------- interfaces and files
class TestInterfaces:
    @staticmethod
    def numpy_scans(x):
        return [
            scan(lambda a, s: a + s, x, 0),
            scan(lambda a, b, c: a + b + c, x, dict(initial=x, taps=[-4, -1])),
            scan(lambda a, s: (a + s, until(a + s > 2)), x, mx.np.array(0.0), go_backwards=True),
        ]

    def test_numpy_arrays_and_scalars(self):
        mx.npx.set_np()
        try:
            for hybridized in (False, True):
                block = Block(self.numpy_scans)
                if hybridized:
                    block.hybridize(strict=True)
                outs = block(mx.np.arange(4.0))
                assert all(type(out) is mx.np.ndarray for out in outs)
                assert [out.tolist() for out in outs] == [[0, 1, 3, 6], [3, 5, 9, 15], [3]]
        finally:
            mx.npx.reset_np()

    def test_symbols(self):
        x, h = mx.sym.var("x"), mx.sym.var("h")
        out = mx.sym.contrib.scan(
            lambda a, b, s, w: a * b + s * w, dict(input=x, taps=[0, 1]), h, mx.sym.var("w"), name="loop"
        )
        assert out.list_arguments() == ["x", "h", "w"]
        assert "loop" in out.get_internals().list_outputs()[-1]
        ex = out.bind(mx.cpu(), {"x": nd.arange(4), "h": nd.zeros((1,)), "w": nd.array([2.0])})
        assert ex.forward()[0].asnumpy().ravel().tolist() == [0, 2, 10]

    def test_symbols_of_unknown_length_are_cut_by_n_steps(self):
        x, y = mx.sym.var("x"), mx.sym.var("y")
        for options, wanted in (({}, [0, 2, 4]), ({"go_backwards": True}, [9, 7, 5])):
            out = scan(lambda a, b: a + b, [x, y], n_steps=3, **options)
            assert out.eval(x=nd.arange(5), y=nd.arange(6))[0].asnumpy().ravel().tolist() == wanted
        with pytest.raises(mx.errors.ShapeError, match="one length"):
            scan(lambda a, b: a + b, [x, y]).eval(x=nd.arange(5), y=nd.arange(6))

    @pytest.mark.parametrize("dtype", ["int32", "float16", "float64"])
    def test_numbers_take_the_dtype_of_the_outputs(self, dtype):
        for hybridized in (False, True):
            block = Block(lambda x: [scan(lambda a, s: a + s, x, 0), scan(lambda a, s: (a + s, until(s > 99)), x, 0)])
            if hybridized:
                block.hybridize(strict=True)
            assert [out.dtype for out in block(nd.arange(4, dtype=dtype))] == [np.dtype(dtype)] * 2

    def test_names_beside_foreach(self):
        for space in (mx.contrib, mx.nd.contrib, mx.sym.contrib):
            assert space.scan is scan
            assert space.map is map
            assert {"foldl", "foldr", "map", "reduce", "scan", "until"} <= set(dir(space))

    def test_import_star_leaves_the_map_of_python(self):
        for module in ("hybridnet.contrib", "hybridnet.contrib.control_flow"):
            names: dict = {}
            exec(f"from {module} import *", names)
            assert names["scan"] is scan
            assert "map" not in names
            assert "reduce" not in names

    def test_hybrid_forward(self):
        class Sum(gluon.HybridBlock):
            def hybrid_forward(self, F, x):
                return F.contrib.scan(lambda a, s: a + s, x, 0)

        block = Sum()
        for _ in range(2):
            assert block(nd.arange(4)).asnumpy().ravel().tolist() == [0, 1, 3, 6]
            block.hybridize()

    def test_list_of_one(self):
        assert isinstance(scan(lambda a: a, nd.arange(2), return_list=True), list)
        assert scan(dict, n_steps=2) is None

    @pytest.mark.parametrize("name", ["taps", "backwards", "until"])
    def test_files_run_in_c(self, name, tmp_path):
        """Inputs may have another number of rows than in the traced call."""
        x, i = normal(7, 2).astype("float32"), normal(3, 2, seed=1).astype("float32")
        block = Block(GRADIENTS[name])
        block.hybridize()
        block(nd.array(x), nd.array(i))
        files = block.export(str(tmp_path / "model"))
        names = [str(f) for f in files] if isinstance(files, (list, tuple)) else []
        for rows in (7, 5):
            wanted = Block(GRADIENTS[name])(nd.array(x[:rows]), nd.array(i)).asnumpy()
            got = c_model.run(names[0], names[1] or "", {"data0": x[:rows], "data1": i})
            np.testing.assert_allclose(got[0], wanted, rtol=1e-5, atol=1e-6)


# ----------------------------------------------------------------------------------------------------------------- cost
class TestCost:
    def test_a_scan_of_a_cell_is_the_foreach_that_one_would_write(self):
        def loop(x, h, w):
            F = operators(x)

            def body(a, s):
                s = (F.dot(s, w) + a).tanh()
                return s, s

            return foreach(body, x, h)[0]

        def scanned(x, h, w):
            F = operators(x)
            return scan(lambda a, s, w: (F.dot(s, w) + a).tanh(), x, h, w)

        arrays = normal(6, 2, 3), normal(2, 3), normal(3, 3)
        for order in (0, 1):
            assert runs(loop, arrays, order=order) == runs(scanned, arrays, order=order)

    def test_conditions_cost_one_loop(self):
        def function(x):
            return scan(lambda a, s: (a + s, until(a + s > 3)), x, 0)

        _, block = evaluate(function, [np.arange(5.0)])
        assert len(loops_of(block, "_while_loop")) == 1

    def test_the_function_is_called_once_per_step_on_arrays_and_once_in_a_trace(self):
        calls = []

        def function(x):
            return scan(lambda a: calls.append(a) or a, x)

        function(nd.arange(5))
        assert len(calls) == 5
        block = Block(function)
        block.hybridize()
        block(nd.arange(5))
        block(nd.arange(7))
        assert len(calls) == 6
