# ruff: noqa: E501
"""foreach, while_loop and cond on arrays: results, structures, edge cases, gradients."""

from __future__ import annotations

from collections import namedtuple

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors
from hybridnet.contrib import cond, foreach, while_loop

nd = mx.nd
Pair = namedtuple("Pair", ["h", "c"])


def same(array, want) -> None:
    np.testing.assert_allclose(array.asnumpy(), want, rtol=1e-6)
    assert array.shape == np.shape(want)


class TestForeach:
    def test_cumulative_sum(self):
        outs, last = foreach(lambda x, s: (x + s, x + s), nd.arange(6).reshape((3, 2)), nd.zeros((2,)))
        same(outs, [[0, 1], [2, 4], [6, 9]])
        same(last, [6, 9])

    def test_import_paths(self):
        for door in (nd.contrib.foreach, mx.contrib.foreach, mx.contrib.control_flow.foreach):
            assert door is foreach

    def test_reverse_writes_row_t(self):
        outs, last = foreach(lambda x, s: (s, s * 2 + x), nd.arange(4).reshape((4, 1)), nd.zeros((1,)), reverse=True)
        same(outs, [[17], [8], [3], [0]])
        same(last, [34])

    def test_slices_of_vectors(self):
        shapes = []
        foreach(lambda x, s: (shapes.append(x.shape) or x, s), nd.arange(3), [])
        assert shapes == [(1,)] * 3
        with mx.util.np_shape(True):
            outs, _ = foreach(lambda x, s: (shapes.append(x.shape) or x, s), nd.arange(3), [])
            assert shapes[3:] == [()] * 3
            assert outs.shape == (3,)

    def test_nests(self):
        data = {"a": nd.ones((2, 3)), "b": (nd.arange(2), [nd.zeros((2, 1))])}
        start = Pair(nd.zeros((3,)), {"n": nd.zeros((1,))})

        def body(x, s):
            assert isinstance(s, Pair) and set(s.c) == {"n"} and isinstance(x["b"][1], list)
            h = s.h + x["a"]
            return {"h": h, "k": [x["b"][0]]}, Pair(h, {"n": s.c["n"] + 1})

        outs, last = foreach(body, data, start)
        same(outs["h"], [[1, 1, 1], [2, 2, 2]])
        same(outs["k"][0], [[0], [1]])
        same(last.c["n"], [2])
        assert isinstance(last, Pair)

    def test_map_and_fold(self):
        outs, states = foreach(lambda x, s: (x * 2, []), nd.ones((2, 2)), [])
        same(outs, 2 * np.ones((2, 2)))
        assert states == []
        outs, total = foreach(lambda x, s: ([], s + x), nd.ones((4, 2)), nd.zeros((2,)))
        assert outs == []
        same(total, [4, 4])

    def test_unused_data_and_states(self):
        outs, states = foreach(
            lambda x, s: (x[0], s), [nd.ones((2, 1)), nd.zeros((2, 5))], [nd.zeros((1,)), nd.ones((2,))]
        )
        same(outs, [[1], [1]])
        same(states[1], [1, 1])

    def test_length_without_data(self):
        outs, last = foreach(lambda x, s: (s, s * 2), [], nd.ones((1,)), length=4)
        same(outs, [[1], [2], [4], [8]])
        same(last, [16])

    def test_index(self):
        outs, _ = foreach(
            lambda i, x, s: (x * i.astype("float32"), s), nd.ones((3, 1)), [], with_index=True, reverse=True
        )
        same(outs, [[0], [1], [2]])

    def test_no_iterations(self):
        with mx.util.np_shape(True):
            net = mx.gluon.nn.Dense(4, in_units=3)
            net.initialize()
            net(nd.ones((1, 3)))
            outs, last = foreach(lambda x, s: ([net(x), s], s), nd.zeros((0, 2, 3)), nd.ones((2,), dtype="float64"))
            assert outs[0].shape == (0, 2, 4)
            assert outs[1].shape == (0, 2) and outs[1].dtype == np.float64
            same(last, [1, 1])

    def test_number_states_take_the_bodys_dtype(self):
        outs, last = foreach(lambda x, s: (s, s + x), nd.array([[1], [2]], dtype="int32"), 5)
        assert last.dtype == np.int32
        same(outs, [[5], [6]])
        same(last, [8])

    def test_name_as_in_mxnet(self):
        outs, _ = foreach(lambda x, s: (x, s), nd.ones((2, 1)), [], "loop")
        assert outs.shape == (2, 1)

    def test_gradient(self):
        x, w = nd.array([[1.0], [2.0], [3.0]]), nd.array([2.0])
        for a in (x, w):
            a.attach_grad()
        with mx.autograd.record():
            outs, _ = foreach(lambda d, s: (s * w + d, s * w + d), x, nd.zeros((1,)))
            outs.sum().backward()
        same(x.grad, [[7], [3], [1]])
        same(w.grad, [1 + (2 + 2 * 2 * 1)])

    @pytest.mark.parametrize(("options", "want"), [
        ({}, 129), ({"truncate_gradient": 1}, 16), ({"truncate_gradient": 2}, 40), ({"truncate_gradient": 3}, 68),
        ({"truncate_gradient": 9}, 129), ({"detach_every": 1}, 31), ({"detach_every": 2}, 41), ({"detach_every": 3}, 57),
    ])  # fmt: skip
    def test_truncation(self, options, want):
        w = nd.array([2.0])
        w.attach_grad()
        with mx.autograd.record():
            outs, _ = foreach(lambda x, h: (h * w, h * w), [], nd.ones((1,)), length=5, **options)
            outs.sum().backward()
        same(w.grad, [want])

    @pytest.mark.parametrize(("truncate", "want"), [(1, 0), (2, 0), (3, 8), (4, 8)])
    def test_gradient_of_the_start_stops_only_where_iterations_are_left_out(self, truncate, want):
        start = nd.ones((1,))
        start.attach_grad()
        with mx.autograd.record():
            _, last = foreach(lambda x, h: ([], h * 2), [], start, length=3, truncate_gradient=truncate)
            loss = last + start
        loss.backward()
        same(start.grad, [want + 1])


class TestWhileLoop:
    def test_padded_with_zeros(self):
        outs, (i, s) = while_loop(
            lambda i, s: i < 3, lambda i, s: (s + i, [i + 1, s + i]), (nd.ones((1,)), nd.zeros((1,))), 5
        )
        same(outs, [[1], [3], [0], [0], [0]])
        same(i, [3])
        same(s, [3])

    def test_exact(self):
        outs, last = while_loop(lambda i: i < 3, lambda i: (i, i + 1), nd.zeros((1,)), exact=True)
        same(outs, [[0], [1], [2]])
        same(last, [3])

    def test_limit_stops(self):
        outs, last = while_loop(lambda i: i < 100, lambda i: (i, i + 1), nd.zeros((1,)), max_iterations=4)
        same(outs, [[0], [1], [2], [3]])
        same(last, [4])

    @pytest.mark.parametrize("limit", [2, np.int64(2), nd.array([2], dtype="int32"), 2.0])
    def test_kinds_of_limits(self, limit):
        outs, _ = while_loop(lambda i: i < 5, lambda i: ([i], [i + 1]), [nd.zeros((1,))], max_iterations=limit)
        same(outs[0], [[0], [1]])

    @pytest.mark.parametrize("exact", [False, True])
    def test_no_iterations(self, exact):
        with mx.util.np_shape(exact):
            outs, last = while_loop(
                lambda i: i < 0, lambda i: ((i, [nd.ones((2, 3))]), i + 1), nd.zeros((1,)), 4, exact
            )
            assert outs[0].shape == ((0, 1) if exact else (4, 1))
            assert outs[1][0].shape == ((0, 2, 3) if exact else (4, 2, 3))
            assert not outs[0].asnumpy().any()
            same(last, [0])

    def test_without_outputs_and_with_count(self):
        last, n = while_loop(lambda v: v < 10, lambda v: v * 2, nd.ones((1,)), has_outputs=False, return_count=True)
        same(last, [16])
        assert int(n.asscalar()) == 4

    def test_dict_variables(self):
        last = while_loop(
            lambda v: v["i"] < 3,
            lambda v: {"i": v["i"] + 1, "s": v["s"] * 2},
            {"i": 0, "s": nd.ones((2,))},
            has_outputs=False,
        )
        same(last["s"], [8, 8])

    def test_on_limit(self):
        args = (lambda i: i < 9, lambda i: (i, i + 1), nd.zeros((1,)), 2)
        with pytest.warns(UserWarning, match="max_iterations=2"):
            while_loop(*args, on_limit="warn")
        with pytest.raises(errors.ValueError, match="max_iterations=2"):
            while_loop(*args, on_limit="raise")

    def test_growing_variable(self):
        last = while_loop(
            lambda i, a: i < 6, lambda i, a: (i + 1, nd.concat(a, i.reshape((1, 1)), dim=0)), (nd.zeros((1,)), nd.zeros((1, 1))),
            has_outputs=False, shape_invariants={1: (None, 1)},
        )  # fmt: skip
        same(last[1], [[0], [0], [1], [2], [3], [4], [5]])

    def test_gradient_skips_padding(self):
        x = nd.array([2.0])
        x.attach_grad()
        with mx.autograd.record():
            outs, _ = while_loop(
                lambda i, s: i < 3, lambda i, s: (s * x, (i + 1, s * x)), (nd.zeros((1,)), nd.ones((1,))), 10
            )
            outs.sum().backward()
        same(x.grad, [1 + 2 * 2 + 3 * 4])


class TestCond:
    @pytest.mark.parametrize(("pred", "want"), [
        (True, 1), (False, 2), (0, 2), (nd.array([3.0]), 1), (nd.array([0], dtype="int8"), 2), (np.bool_(True), 1),
    ])  # fmt: skip
    def test_kinds_of_predicates(self, pred, want):
        same(cond(pred, lambda: nd.ones((1,)), lambda: nd.ones((1,)) * 2), [want])

    def test_only_the_taken_branch_runs(self):
        ran = []
        cond(nd.ones((1,)), lambda: ran.append(1) or nd.ones((1,)), lambda: ran.append(2) or nd.ones((1,)))
        assert ran == [1]

    def test_inputs_and_structure(self):
        out = cond(
            nd.ones((1,)), lambda a, b: {"s": a + b}, lambda a, b: {"s": a - b}, inputs=(nd.ones((2,)), nd.ones((2,)))
        )
        same(out["s"], [2, 2])

    def test_gradient(self):
        x = nd.array([3.0])
        x.attach_grad()
        with mx.autograd.record():
            cond(x > 2, lambda: x * x, lambda: x).backward()
        same(x.grad, [6])


class TestMisuse:
    @pytest.mark.parametrize(("call", "kind", "parts"), [
        (lambda: foreach(lambda x, s: x, nd.ones((2, 1)), []), errors.TypeError, ("foreach", "pair", "return outs, states")),
        (lambda: foreach(lambda x, s: (x, [s, s]), nd.ones((2, 1)), nd.ones((1,))), errors.TypeError, ("states", "an array", "a list of 2")),
        (lambda: foreach(lambda x, s: (x, s.astype("float64")), nd.ones((2, 1)), nd.ones((1,))), errors.DTypeError, ("float64", "float32")),
        (lambda: foreach(lambda x, s: (x, nd.ones((2,))), nd.ones((2, 1)), nd.ones((1,))), errors.ShapeError, ("(1,)", "(2,)", "reshape")),
        (lambda: foreach(lambda x, s: (x, s), [nd.ones((2, 1)), nd.ones((3, 1))], []), errors.ShapeError, ("data[1]", "data[0]")),
        (lambda: foreach(lambda x, s: (x, s), [], nd.ones((1,))), errors.ValueError, ("length",)),
        (lambda: foreach(3, nd.ones((1,)), []), errors.TypeError, ("body", "int")),
        (lambda: foreach(lambda x, s: (x, s), [nd.ones((1,)), "a"], []), errors.TypeError, ("data[1]", "str")),
        (lambda: foreach(lambda x, s: (x, s), nd.ones((1,)), [], truncate_gradient=0), errors.ParamError, ("truncate_gradient",)),
        (lambda: while_loop(lambda i: i < 1, lambda i: (i, i), nd.ones((1,))), errors.ValueError, ("max_iterations", "exact=True")),
        (lambda: while_loop(lambda i: i, lambda i: (i, i), [], 3), errors.ValueError, ("loop_vars",)),
        (lambda: while_loop(lambda i: i, lambda i: (i, i), nd.ones((2,)), 3), errors.ShapeError, ("one element", ".max()")),
        (lambda: while_loop(lambda i: i, lambda i: (i, i), nd.ones((1,)), -1), errors.ParamError, ("max_iterations", "-1")),
        (lambda: while_loop(lambda i: "a", lambda i: (i, i), nd.ones((1,)), 1), errors.TypeError, ("condition", "str")),
        (lambda: cond(nd.ones((2,)), lambda: 1, lambda: 2), errors.ShapeError, ("cond", "one element")),
        (lambda: cond(True, lambda: 1, lambda: 2), errors.TypeError, ("outputs", "int")),
    ])  # fmt: skip
    def test_errors_name_construct_line_and_fix(self, call, kind, parts):
        with pytest.raises(kind) as caught:
            call()
        text = str(caught.value)
        assert "At: " in text and "test_eager.py:" in text
        for part in parts:
            assert part in text

    def test_outputs_that_change(self):
        def body(i, x, s):
            return (x if int(i.asscalar()) == 0 else nd.ones((2,))), s

        with pytest.raises(errors.ShapeError, match="outputs differs between iterations"):
            foreach(body, nd.ones((2, 1)), [], with_index=True)
