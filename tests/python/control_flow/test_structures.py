# ruff: noqa: E501
"""Kinds of data, states, variables, outputs, predicates, limits: the same on arrays, in graphs, files and executors."""

from __future__ import annotations

from collections import namedtuple

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, gluon
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block, exported, flat, operators

nd = mx.nd
Pair = namedtuple("Pair", "a b")
Empty = namedtuple("Empty", "")


def rows(dtype="float32", count=4, width=3):
    return nd.array(np.random.default_rng(0).normal(size=(count, width)), dtype=dtype)


def run(block, x, record):
    x = x.copy()
    if not record:
        return [array.asnumpy() for array in flat(block(x))], None
    x.attach_grad()
    with mx.autograd.record():
        outs = flat(block(x))
        loss = sum((a.astype("float64") ** 2).sum() for a in outs if np.dtype(a.dtype).kind not in "biu")
    loss.backward()
    return [array.asnumpy() for array in outs], x.grad.asnumpy()


def same_in_every_mode(function, x, folder, record=True, rtol=1e-5):
    """Checks values, shapes, dtypes and gradients in every mode; returns the values."""
    block = Block(function)
    want, gradient = run(block, x, record)
    block.hybridize()
    results = [run(block, x, record)]
    files = exported(block, folder, 1)
    results.append(run(files, x, record))
    for found, found_gradient in results:
        assert len(found) == len(want)
        for one, two in zip(found, want, strict=True):
            assert one.shape == two.shape and one.dtype == two.dtype
            np.testing.assert_allclose(one.astype("float64"), two.astype("float64"), rtol=rtol, atol=1e-6)
        if gradient is not None:
            np.testing.assert_allclose(
                found_gradient.astype("float64"), gradient.astype("float64"), rtol=10 * rtol, atol=1e-5
            )
    return want


NESTS = {
    "all kinds": lambda x: foreach(
        lambda d, s: ({"u": [d["p"].a, (s.b["k"],)], "e": [], "n": ()}, Pair(s.a + d["q"][0], {"k": s.b["k"] * 2, "z": []})),
        {"p": Pair(x, x * 2), "q": [x + 1]}, Pair(x[0], {"k": x[1], "z": []}),
    )[0]["u"],
    "empty states": lambda x: foreach(lambda d, s: (d * 2, s), x, [[], (), {}])[0],
    "an empty namedtuple": lambda x: foreach(lambda d, s: (d * 2, s), x, Empty())[0],
    "no states given": lambda x: foreach(lambda d, s: (d * 2, s), x)[0],
    "None for states and outputs": lambda x: [foreach(lambda d, s: (None, None), x, None), x][1],
    "None inside": lambda x: foreach(lambda d, s: ([d[0], None], [s[0] + d[0], s[1]]), [x, None], [x[0], None])[0][0],
    "nothing at all": lambda x: [foreach(lambda d, s: ([], []), x, []), x][1],
    "variables by name": lambda x: while_loop(lambda v: v["i"] < 3, lambda v: ({"o": [v["s"]]}, {"i": v["i"] + 1, "s": v["s"] * 2}), {"i": 0, "s": x}, 5)[0]["o"],
    "variables of a namedtuple": lambda x: while_loop(lambda a, b: a < 3, lambda a, b: ((a, b), Pair(a + 1, b * 2)), Pair(0, x), 5),
    "nested variables": lambda x: while_loop(lambda i, t: i < 3, lambda i, t: ([t["k"][0], (i,)], (i + 1, {"k": [t["k"][0] * 2, (), None]})), (0, {"k": [x, (), None]}), 5)[0],
    "branches of dicts": lambda x: cond(x.sum() > 0, lambda: {"a": x, "b": (x * 2, [], None)}, lambda: {"a": x * 5, "b": (x * 7, [], None)})["b"][0],
    "inputs of a branch": lambda x: cond(lambda d: d["a"].sum() > 0, lambda d: d["a"] * 2, lambda d: d["a"] * 3, inputs=[{"a": x}]),
}  # fmt: skip


@pytest.mark.parametrize("name", NESTS)
def test_nests(name, tmp_path):
    same_in_every_mode(NESTS[name], rows(), tmp_path)


def test_none_comes_back_as_none():
    for hybridized in (False, True):
        block = Block(
            lambda x: foreach(lambda d, s: ((d, None), {"h": s["h"] + d, "c": s["c"]}), x, {"h": x[0], "c": None})
        )
        block.hybridize(hybridized)
        (_, nothing), last = block(rows())
        assert nothing is None and last["c"] is None
    with pytest.raises(errors.TypeError, match="expected None, got an array"):
        foreach(lambda d, s: (d, [d]), rows(), [None])


@pytest.mark.parametrize("np_shape", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64"])
def test_dtypes_of_data_states_numbers_and_predicates(dtype, np_shape, tmp_path):
    x = (rows().abs() * 2 + 1).astype(dtype)
    rtol = 2e-2 if "16" in dtype else 1e-5
    record = "float" in dtype
    with mx.util.np_shape(np_shape):
        for function in (
            lambda x: foreach(lambda d, s: (d + s, s + d), x, x[0]),
            lambda x: foreach(lambda d, s: (d, s + d.sum()), x, 1),
            lambda x: while_loop(lambda i, v: i < 2, lambda i, v: (v, (i + 1, v + v)), [0, x], 4),
            lambda x: while_loop(lambda i, v: i < 0, lambda i, v: (v, (i + 1, v + v)), [0, x], 4)[0],
            lambda x: while_loop(lambda i, v: i, lambda i, v: (v, (i - i, v + v)), [x.sum(), x], 4),
            lambda x: cond(x[0, :1].reshape((1,)), lambda: [x, x.max()], lambda: [x, x.min()]),
        ):
            results = same_in_every_mode(function, x, tmp_path, record, rtol)
            assert all(result.dtype == np.dtype(x.dtype) for result in results[:1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -1.0, 0.5, 6e-8, float("nan"), float("inf")])
def test_predicates_hold_unless_they_are_zero(value, dtype):
    for hybridized in (False, True):
        branch = Block(lambda p: cond(p, lambda: p * 0 + 1, lambda: p * 0 + 2))
        loop = Block(
            lambda p: while_loop(
                lambda q, n: q, lambda q, n: (operators(q).zeros_like(q), n + 1), (p, 0), 3, has_outputs=False
            )[1]
        )
        for block, taken in ((branch, np.array([1, 2])), (loop, np.array([1, 0]))):
            block.hybridize(hybridized)
            found = block(nd.array([value], dtype=dtype)).asscalar()
            want = taken[0] if np.dtype(dtype).type(value) != 0 else taken[1]
            assert found == want or (block is branch and not np.isfinite(value))


LIMITS = {
    "int": 3, "a whole float": 3.0, "NumPy": np.int8(3), "(1,)": nd.array([3], dtype="int32"),
    "(1, 1)": nd.array([[3]], dtype="int64"), "float array": nd.array([3.0]), "0-d": nd.array(np.array(3, "int32")),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name):
    for hybridized in (False, True):
        block = Block(
            lambda x: while_loop(
                lambda a: a.sum() < 1e9, lambda a: (a, a.abs() + 1), x, LIMITS[name], return_count=True
            )
        )
        block.hybridize(hybridized)
        outs, _, count = block(rows())
        assert outs.shape == (3, 4, 3) and int(count.asscalar()) == 3


@pytest.mark.parametrize(
    "limit",
    [
        True,
        -1,
        2.5,
        "3",
        float("nan"),
        float("inf"),
        [3],
        np.array([3]),
        nd.array([1, 2]),
        nd.array([-3]),
        nd.array([2.5]),
    ],
    ids=repr,
)
def test_invalid_limits_are_errors(limit):
    for hybridized in (False, True):
        block = Block(lambda x: while_loop(lambda a: a.sum() < 10, lambda a: (a, a + 1), x, limit))
        block.hybridize(hybridized)
        with pytest.raises(errors.HybridNetError, match="while_loop: max_iterations"):
            block(rows())


@pytest.mark.parametrize("value", [2.5, -2.0])
def test_invalid_limits_in_arrays_are_errors_of_the_run(value):
    for hybridized in (False, True):
        block = Block(lambda x, n: while_loop(lambda a: a.sum() < 1e9, lambda a: a + 1, x, n, has_outputs=False))
        block.hybridize(hybridized)
        with pytest.raises(errors.ParamError, match=r"expected an integer of at least 0, got -?2"):
            block(rows(), nd.array([value])).wait_to_read()


@pytest.mark.parametrize("function", [
    lambda x: while_loop(lambda a: a.sum() < 60, lambda a: a.abs() * 1.5 + 1, x, 2**40, has_outputs=False),
    lambda x: while_loop(lambda a: a.sum() < 60, lambda a: ([], a.abs() * 1.5 + 1), x, 2**40)[1],
    lambda x: while_loop(lambda a: a.sum() < 60, lambda a: (a * a, a.abs() * 1.5 + 1), x, 2**40, exact=True),
    lambda x: foreach(lambda d, s: (while_loop(lambda a: a.sum() < 60, lambda a: a.abs() * 1.5 + d.sum().abs() + 1, s, 10**7, has_outputs=False), s + d), x, x[0])[0],
    lambda x: while_loop(lambda a: a.sum() < 60, lambda a: while_loop(lambda b: b.sum() < a.sum() + 9, lambda b: b.abs() * 1.2 + 1, a, 10**7, has_outputs=False), x, 10**6, has_outputs=False),
    lambda x: cond(x.sum() > -1e9, lambda: while_loop(lambda a: a.sum() < 60, lambda a: a.abs() * 1.5 + 1, x, 10**7, has_outputs=False), lambda: x),
])  # fmt: skip
def test_a_limit_that_is_a_safety_net_takes_no_memory_for_iterations_that_never_come(function, tmp_path):
    same_in_every_mode(function, rows(), tmp_path)


class TestLoopsThatNeverRun:
    @pytest.fixture(autouse=True)
    def numpy_shapes(self):
        with mx.util.np_shape(True):
            yield

    @pytest.mark.parametrize("function", [
        lambda x: foreach(lambda d, s: (d * s, s + d), x, x.sum(axis=0)),
        lambda x: foreach(lambda i, d, s: (d * s + i.astype("float32"), s + d), x, x.sum(axis=0), with_index=True, reverse=True),
        lambda x: foreach(lambda d, s: (foreach(lambda e, t: (e * t, t + e), d.expand_dims(0), s)[0], s), x, x.sum(axis=0)),
        lambda x: foreach(lambda d, s: (while_loop(lambda v: v.sum() < 3, lambda v: (v, v + 1), s, 4)[0], s + d), x, x.sum(axis=0)),
        lambda x: foreach(lambda d, s: (cond(s.sum() > 0, lambda: s * 2, lambda: d), s + d), x, x.sum(axis=0)),
        lambda x: foreach(lambda d, s: (s * 2, s + 1), [], x.sum(axis=0), length=0),
    ])  # fmt: skip
    def test_no_rows_give_the_same_in_every_mode(self, function, tmp_path):
        same_in_every_mode(function, rows(count=0), tmp_path)

    @pytest.mark.parametrize("hybridized", [False, True])
    @pytest.mark.parametrize("loop", ["foreach", "while_loop"])
    def test_parameters_of_the_body_are_initialized_and_have_zero_gradients(self, loop, hybridized):
        dense = gluon.nn.Dense(5)
        block = Block(
            (lambda x: foreach(lambda d, s: (dense(d), s), x, [])[0])
            if loop == "foreach"
            else (lambda x: while_loop(lambda i, a: i < 0, lambda i, a: (dense(a), (i + 1, a)), (0, x), 2)[0]),
            dense,
        )
        block.hybridize(hybridized)
        x = nd.array(np.zeros((0, 2, 3), "float32")) if loop == "foreach" else rows()
        with mx.autograd.record():
            out = block(x)
            loss = out.sum()
        loss.backward()
        assert out.shape == ((0, 2, 5) if loop == "foreach" else (2, 4, 5))
        assert dense.weight.shape == (5, 3)
        assert not dense.weight.grad().asnumpy().any()


class TestNumbersInSymbols:
    def test_a_saved_symbol_holds_them(self):
        x = mx.sym.var("x")
        outs, last = mx.sym.contrib.while_loop(lambda i, a: i < 3, lambda i, a: (a, (i + 1, a * 2)), (1, x), 4)
        symbol = mx.sym.load_json(mx.sym.Group([outs, *last]).tojson())
        assert symbol.list_arguments() == ["x"]
        executor = symbol.simple_bind(mx.cpu(), x=(2,))
        executor.arg_dict["x"][:] = 1
        outs, count, last = (array.asnumpy() for array in executor.forward())
        np.testing.assert_array_equal(outs, [[1, 1], [2, 2], [0, 0], [0, 0]])
        assert count == 3 and (last == 4).all()

    def test_large_integers_stay_exact(self):
        for hybridized in (False, True):
            block = Block(lambda x: foreach(lambda d, s: (d, s + d), x, 2**60 + 1)[1])
            block.hybridize(hybridized)
            assert int(block(nd.array([[1], [2]], dtype="int64")).asscalar()) == 2**60 + 4

    def test_a_file_without_the_values_of_constants_warns(self, tmp_path):
        symbol, _ = mx.sym.contrib.foreach(lambda d, s: (d * nd.array([1, 2]), s), mx.sym.var("x"), [])
        with pytest.warns(UserWarning, match="constant0 are not in .*they are arguments"):
            symbol.save(tmp_path / "m.json")


class TestConditionsThatLearn:
    """Running statistics that the condition of a while_loop updates advance once per evaluation."""

    @pytest.mark.parametrize("limit", [2, 4, 30])
    @pytest.mark.parametrize("options", [{}, {"checkpoint": 2}, {"exact": True}])
    def test_statistics_and_gradients(self, limit, options):
        found = [self._trained(hybridized, limit, options) for hybridized in (False, True)]
        for one, two in zip(*found, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)
        assert found[0][4].any()

    @staticmethod
    def _trained(hybridized, limit, options):
        norm = gluon.nn.BatchNorm(axis=-1, in_channels=3)

        def goes_on(i, a):
            return (norm(a) * 0).sum() + a.sum() < 60

        def step(i, a):
            return a * 2, (i + 1, norm(a) + a + 1)

        block = Block(lambda x: while_loop(goes_on, step, (0, x), limit, **options), norm)
        block.hybridize(hybridized)
        x = rows()
        x.attach_grad()
        with mx.autograd.record():
            outs, (count, last) = block(x)
            loss = (outs**2).sum() + (last**2).sum()
        loss.backward()
        statistics = [norm.running_mean.data(), norm.running_var.data(), norm.gamma.grad()]
        return [a.asnumpy() for a in (outs, count, last, x.grad, *statistics)]


class TestErrorsOnArrays:
    def test_an_error_names_loop_iteration_operator_and_line(self):
        indices = nd.array([[0]] * 17 + [[9]] + [[0]])
        with pytest.raises(errors.IndexError, match="operator 'take'") as caught:
            foreach(lambda i, s: (nd.take(s, i, mode="raise"), s), indices, nd.arange(3))[0].wait_to_read()
        assert "test_structures.py:" in str(caught.value)
        assert str(caught.value).endswith("In: foreach, iteration 17")

    def test_inner_loops_come_first(self):
        def inner(x, s):
            outs, _ = while_loop(lambda i: i < 9, lambda i: (nd.take(s, i * x, mode="raise"), i + 1), nd.zeros((1,)), 9)
            return outs, s

        with pytest.raises(errors.IndexError) as caught:
            foreach(inner, nd.array([0.0, 1.0]), nd.arange(3))[0].wait_to_read()
        assert str(caught.value).endswith("In: while_loop, iteration 3\n  In: foreach, iteration 1")
