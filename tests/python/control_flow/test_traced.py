# ruff: noqa: E501
"""foreach, while_loop and cond in hybridized blocks and in exported files."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, gluon
from hybridnet.contrib import cond, foreach, while_loop

from . import c_model
from .blocks import Block, flat

nd = mx.nd


def rows(count=4, width=3, seed=0):
    return nd.array(np.random.default_rng(seed).normal(size=(count, width)).astype("float32"))


FORMS = {
    "reverse": lambda x: foreach(lambda d, s: (s, s * 2 + d), x, nd.zeros((3,)), reverse=True),
    "index": lambda x: foreach(lambda i, d, s: (s + i.astype("float32"), s), x, x[0], with_index=True),
    "length": lambda x: foreach(lambda d, s: (s, s * 2), [], x, length=3),
    "map": lambda x: foreach(lambda d, s: (d * 2, []), x, [])[0],
    "fold": lambda x: foreach(lambda d, s: ([], s + d), x, x[0])[1],
    "unused": lambda x: foreach(lambda d, s: (d[0] * 1, s), [x, x + 1], [x, x * 2]),
    "swapped": lambda x: foreach(lambda d, s: (s[0] + d, [s[1], s[0]]), x, [x[0], x[1]]),
    "echo": lambda x: foreach(lambda d, s: ([d, s, s], s), x, x[1]),
    "number": lambda x: foreach(lambda d, s: (s, s + d.sum()), x, 1.0),
    "vector": lambda x: foreach(lambda d, s: (d * s, s + d), x.reshape((-1,)), x[0, 0:1]),
    "dict": lambda x: list(foreach(lambda d, s: ({"a": d}, {"h": s["h"] + d}), x, {"h": x[0]})[1].values()),
    "while": lambda x: while_loop(lambda i, v: i < 3, lambda i, v: (v, (i + 1, v * 2)), (0, x), 5),
    "while count": lambda x: while_loop(lambda i, v: i < 3, lambda i, v: (v, (i + 1, v * 2)), (0, x), 5, return_count=True),
    "while never": lambda x: while_loop(lambda i, v: i < 0, lambda i, v: (v, (i + 1, v * 2)), (0, x), 5, return_count=True),
    "while to the limit": lambda x: while_loop(lambda v: v.sum() > -1e9, lambda v: (v + 1, v * 0.5), x, 4),
    "while without outputs": lambda x: while_loop(lambda v: (v * v).sum() < 1e3, lambda v: v * 1.5, x, has_outputs=False),
    "cond": lambda x: cond(x.sum() > 0, lambda: [x * 1, x.sum()], lambda: [x * 2, x.max().reshape((1,))]),
    "cond of integers": lambda x: cond((x.sum() < 0).astype("int8"), lambda: x * 1, lambda: x),
    "nested": lambda x: foreach(lambda d, s: foreach(lambda e, t: (e * t, t + e * d.sum()), d, s), x, x[0, :1]),
    "slice of the outer loop": lambda x: foreach(lambda d, s: (while_loop(lambda v: v.sum() < 3, lambda v: (v + d * d + 0.1), s, 9, has_outputs=False), s), x, x[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore:The 0-th input")
def test_hybridized_and_exported_as_on_arrays(name, tmp_path):
    block, x = Block(FORMS[name]), rows()
    want = flat(block(x))
    block.hybridize()
    got = flat(block(x))
    files = block.export(str(tmp_path / "m"))
    loaded = flat(gluon.SymbolBlock.imports(files[0], ["data"], files[1])(x))
    for one, two in zip(c_model.run(*files, {"data": x.asnumpy()}), loaded, strict=True):
        np.testing.assert_array_equal(one, two.asnumpy())
    assert len(got) == len(want) == len(loaded)
    for a, b, c in zip(got, want, loaded, strict=True):
        assert a.shape == b.shape == c.shape and a.dtype == b.dtype == c.dtype
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(a.asnumpy(), c.asnumpy())


def test_no_iterations_in_numpy_shapes():
    with mx.util.np_shape(True):
        block = Block(lambda x, s: foreach(lambda d, t: ([d * 2, t], t + d), x, s))
        block.hybridize()
        outs, last = block(nd.array(np.zeros((0, 3), "float32")), nd.ones((3,)))
        assert outs[0].shape == outs[1].shape == (0, 3)
        np.testing.assert_array_equal(last.asnumpy(), [1, 1, 1])


class TestClosures:
    def test_arrays_become_constants_of_the_graph(self, tmp_path):
        constant, x = nd.array([[1.0, 2.0, 3.0]]), rows()
        block = Block(
            lambda x: foreach(
                lambda d, s: (d * constant, cond(s.sum() > 0, lambda: s + constant.reshape((3,)), lambda: s)), x, x[0]
            )
        )
        want = block(x)[0].asnumpy()
        block.hybridize()
        np.testing.assert_allclose(block(x)[0].asnumpy(), want, rtol=1e-6)
        files = block.export(str(tmp_path / "m"))
        np.testing.assert_allclose(
            gluon.SymbolBlock.imports(files[0], ["data"], files[1])(x)[0].asnumpy(), want, rtol=1e-6
        )

    def test_deferred_parameters_inside_nested_bodies(self):
        inner, outer = gluon.nn.Dense(5), gluon.nn.Dense(2)
        block = Block(
            lambda x: foreach(
                lambda a, s: foreach(lambda b, t: (outer(inner(b.reshape((1, -1)))), t), a.expand_dims(0), s), x, x[0]
            ),
            inner,
            outer,
        )
        block.hybridize()
        assert block(rows())[0].shape == (4, 1, 1, 2)
        assert inner.weight.shape == (5, 3) and outer.weight.shape == (2, 5)

    def test_parameters_get_gradients(self):
        dense = gluon.nn.Dense(3, in_units=3)
        block, x = (
            Block(lambda x: foreach(lambda d, s: (dense(s), dense(s).tanh() + d), x.expand_dims(1), x[:1])[0], dense),
            rows(),
        )
        gradients = []
        for hybridized in (False, True):
            block.hybridize(hybridized)
            with mx.autograd.record():
                (block(x) ** 2).sum().backward()
            gradients.append([p.grad().asnumpy() for p in (dense.weight, dense.bias)])
        for one, two in zip(*gradients, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)

    def test_equal_names(self):
        a, b = mx.sym.var("x"), mx.sym.var("y")
        outs, state = mx.sym.contrib.foreach(lambda d, s: (d + s, mx.sym.broadcast_add(s, s, name="same")), a, b)
        again, _ = mx.sym.contrib.foreach(lambda d, s: (d * s, mx.sym.broadcast_mul(s, s, name="same")), outs, state)
        group = mx.sym.Group([again, state])
        assert group.list_arguments() == ["x", "y"]
        _, shapes, _ = group.infer_shape(x=(3, 2), y=(2,))
        assert shapes == [(3, 2), (2,)]

    def test_auxiliary_states_of_bodies_are_those_of_the_graph(self):
        data = mx.sym.var("data")
        outs, _ = mx.sym.contrib.foreach(lambda d, s: (mx.sym.BatchNorm(d, name="bn"), s), data, [])
        assert outs.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
        assert outs.infer_shape(data=(2, 5, 3))[2] == [(3,), (3,)]


class TestLeaks:
    @pytest.mark.parametrize("use", [
        lambda x, kept: (foreach(lambda d, s: (kept.append(d * 2) or d, s), x, x[0]), kept[-1] + 1)[1],
        lambda x, kept: (cond(x.sum() > 0, lambda: kept.append(x * 2) or x, lambda: x + 1), kept[-1] + 1)[1],
        lambda x, kept: (foreach(lambda d, s: (kept.append(d) or d, s), x, x[0]), foreach(lambda d, s: (kept[-1] + d, s), x, x[0]))[1],
    ])  # fmt: skip
    def test_values_do_not_leave_their_body(self, use):
        block = Block(lambda x: use(x, []))
        block.hybridize(strict=True)
        with pytest.raises(errors.TraceError, match="is read outside of it") as caught:
            block(rows())
        assert str(caught.value).count("test_traced.py:") >= 2  # the line that made it, the line that read it

    def test_work_that_reads_nothing_of_the_loop_may_be_kept(self):
        kept = []
        block = Block(
            lambda x: (foreach(lambda d, s: (d + (kept.append(x.sum()) or kept[-1]), s), x, x[0]), kept[-1] * 2)[1]
        )
        block.hybridize()
        np.testing.assert_allclose(block(rows()).asnumpy(), 2 * rows().asnumpy().sum(), rtol=1e-5)


class TestMisuse:
    @pytest.mark.parametrize(("function", "kind", "parts"), [
        (lambda x: foreach(lambda d, s: (d, s.sum()), x, x[0]), errors.ShapeError, ("foreach", "states", "(3,)", "(1,)")),
        (lambda x: foreach(lambda d, s: (d, s.astype("int32")), x, x[0]), errors.DTypeError, ("states", "int32")),
        (lambda x: while_loop(lambda v: v, lambda v: (v, v), x, 3), errors.ShapeError, ("one element", "max()")),
        (lambda x: cond(x > 0, lambda: x, lambda: x), errors.ShapeError, ("cond", "one element")),
        (lambda x: cond(x.sum() > 0, lambda: x, lambda: [x, x]), errors.TypeError, ("an array", "a list of 2")),
        (lambda x: cond(x.sum() > 0, lambda: x[:2], lambda: x[:3], strict_shape=True), errors.ShapeError, ("(2, 3)", "(3, 3)")),
        (lambda x: cond(x.sum() > 0, lambda: x, lambda: x[0]), errors.ShapeError, ("(4, 3)", "(3,)")),
        (lambda x: while_loop(lambda v: v.sum() > 0, lambda v: (v, v), x), errors.ValueError, ("max_iterations", "exact=True")),
    ])  # fmt: skip
    def test_errors_name_construct_line_and_fix(self, function, kind, parts):
        block = Block(function)
        block.hybridize()
        with pytest.raises(kind) as caught:
            block(rows())
        text = str(caught.value)
        assert "Fix: " in text and "test_traced.py:" in text
        for part in parts:
            assert part in text

    def test_reading_a_traced_value(self):
        block = Block(lambda x: foreach(lambda d, s: (d if d.sum() > 0 else -d, s), x, x[0]))
        block.hybridize(strict=True, autograph=False)
        with pytest.raises(errors.HybridNetError, match="cond"):
            block(rows())

    def test_by_default_a_conditional_in_a_body_becomes_a_branch(self):
        def function(x):
            return foreach(lambda d, s: (d if d.sum() > 0 else d * -3, s), x, x[0])[0]

        block = Block(function)
        block.hybridize(strict=True)
        signs = mx.nd.array([[1], [-1], [-1], [1]])
        for x in (rows() * signs, rows() * -signs):
            np.testing.assert_array_equal(block(x).asnumpy(), function(x).asnumpy())

    def test_a_failed_body_leaves_no_trace_behind(self):
        def fails(d, s):
            raise RuntimeError("from the body")

        block = Block(lambda x: foreach(fails, x, x[0]))
        block.hybridize()
        with pytest.raises(RuntimeError, match="from the body"):
            block(rows())
        good = Block(lambda x: foreach(lambda d, s: (d * 2, s), x, x[0])[0])
        good.hybridize()
        np.testing.assert_allclose(good(rows()).asnumpy(), rows().asnumpy() * 2)


def branches_in_a_loop(x):
    return foreach(lambda d, s: (cond(d.sum() > 0, lambda: x[:2], lambda: x[:3] * d).sum(axis=0), s), x, [])[0]


class TestShapesThatOnlyRunningTells:
    FUNCTIONS = {
        "branches of different sizes": lambda x: cond(x.sum() > 0, lambda: x[:2] * 3, lambda: x[:3] * 2).sum(axis=1),
        "one row per iteration": lambda x: while_loop(lambda i, v: i < 3 + v.min(), lambda i, v: (v * 2, (i + 1, v * 1.5)), (0, x), 6, exact=True)[0],
        "no iteration": lambda x: while_loop(lambda i, v: i < 0, lambda i, v: (v * 2, (i + 1, v * 1.5)), (0, x), 6, exact=True)[0].sum(axis=0) + x,
    }  # fmt: skip

    @pytest.mark.parametrize("sign", [1, -1])
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_results_equal_arrays(self, name, sign, tmp_path):
        with mx.util.np_shape(True):
            found = []
            for hybridized in (False, True):
                block, x = Block(self.FUNCTIONS[name]), nd.ones((4, 3)) * sign
                block.hybridize(hybridized)
                x.attach_grad()
                with mx.autograd.record():
                    out = block(x)
                    (out * out).sum().backward()
                found.append((out.asnumpy(), x.grad.asnumpy()))
            for one, two in zip(*found, strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-6)
            files = block.export(str(tmp_path / "m"))
            loaded = gluon.SymbolBlock.imports(files[0], ["data"], files[1])(x)
            np.testing.assert_allclose(loaded.asnumpy(), found[0][0], rtol=1e-6)

    def test_in_the_body_of_a_loop(self):
        found = []
        for hybridized in (False, True):
            block, x = Block(branches_in_a_loop), rows()
            block.hybridize(hybridized)
            x.attach_grad()
            with mx.autograd.record():
                out = block(x)
                (out * out).sum().backward()
            found.append((out.asnumpy(), x.grad.asnumpy()))
        for one, two in zip(*found, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5)


class TestRunTimeLimit:
    def test_one_graph_for_all_limits(self):
        block = Block(lambda x, n: while_loop(lambda v: v < 100, lambda v: v + 1, x, n, has_outputs=False))
        block.hybridize()
        for limit in (7, 0, 9):
            assert block(nd.zeros((1,)), nd.array([limit], dtype="int32")).asscalar() == limit
        assert block._cached_op.num_plans == 1


class TestTruncation:
    @pytest.mark.parametrize(("options", "want"), [
        ({}, 129), ({"truncate_gradient": 1}, 16), ({"truncate_gradient": 2}, 40), ({"truncate_gradient": 3}, 68),
        ({"truncate_gradient": 9}, 129), ({"detach_every": 1}, 31), ({"detach_every": 2}, 41), ({"detach_every": 3}, 57),
    ])  # fmt: skip
    @pytest.mark.parametrize("reverse", [False, True])
    def test_reference_numbers(self, options, want, reverse):
        block = Block(
            lambda w, one: foreach(lambda x, h: (h * w, h * w), [], one, length=5, reverse=reverse, **options)[0].sum()
        )
        block.hybridize()
        w, one = nd.array([2.0]), nd.ones((1,))
        w.attach_grad()
        with mx.autograd.record():
            block(w, one).backward()
        assert w.grad.asscalar() == want

    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize(
        "options", [*({"truncate_gradient": k} for k in (2, 4, 5, 6)), *({"detach_every": k} for k in (2, 5))]
    )
    def test_gradients_of_data_and_states_as_on_arrays(self, options, reverse):
        block = Block(
            lambda x, s: foreach(lambda d, h: ((h * d).sin(), h * 0.5 + d), x, s, reverse=reverse, **options)[0].sum()
        )
        gradients = []
        for hybridized in (False, True):
            block.hybridize(hybridized)
            x, s = rows(5), rows(1)[0]
            x.attach_grad()
            s.attach_grad()
            with mx.autograd.record():
                block(x, s).backward()
            gradients.append((x.grad.asnumpy(), s.grad.asnumpy()))
        for one, two in zip(*gradients, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


class TestStatesAndRandomness:
    def test_running_statistics_advance_once_per_iteration(self):
        found = []
        for hybridized in (False, True):
            norm = gluon.nn.BatchNorm(in_channels=3)
            block = Block(lambda x, n=norm: foreach(lambda d, s: (n(d), s), x, [])[0], norm)
            block.hybridize(hybridized)
            x = nd.array(np.random.default_rng(1).normal(size=(5, 8, 3)).astype("float32"))
            x.attach_grad()
            with mx.autograd.record():
                (block(x) ** 3).sum().backward()
            found.append((norm.running_mean.data().asnumpy(), norm.running_var.data().asnumpy(), x.grad.asnumpy()))
        for one, two in zip(*found, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)

    def test_statistics_of_the_taken_branch_only(self):
        norms = [gluon.nn.BatchNorm(in_channels=3), gluon.nn.BatchNorm(in_channels=3)]
        block = Block(lambda x: cond(x.sum() > 0, lambda: norms[0](x), lambda: norms[1](x)), *norms)
        block.hybridize()
        with mx.autograd.train_mode():
            block(nd.ones((4, 3)) * 5).wait_to_read()
        assert norms[0].running_mean.data().asnumpy().all()
        assert not norms[1].running_mean.data().asnumpy().any()

    def test_statistics_in_a_while_loop_in_a_loop(self):
        norm = gluon.nn.BatchNorm(in_channels=3)
        block = Block(
            lambda x: foreach(
                lambda d, s: (
                    while_loop(lambda v: v.max() < 4, lambda v: norm(v) * 0 + v + 1, d, 6, has_outputs=False),
                    s,
                ),
                x,
                [],
            )[0],
            norm,
        )
        x = nd.array(np.random.default_rng(2).normal(size=(2, 4, 3)).astype("float32"))
        found = []
        for hybridized in (False, True):
            norm.running_mean.set_data(nd.zeros((3,)))
            block.hybridize(hybridized)
            with mx.autograd.train_mode():
                block(x).wait_to_read()
            found.append(norm.running_mean.data().asnumpy())
        np.testing.assert_allclose(found[0], found[1], rtol=1e-5)

    def test_statistics_stay_when_an_iteration_fails(self):
        norm = gluon.nn.BatchNorm(in_channels=3)

        def body(d, s):
            return mx.sym.take(norm(d).sum().reshape((1,)) * 0, s, mode="raise"), s + 1

        block = Block(lambda x, s: foreach(body, x, s)[0], norm)
        block.hybridize()
        before = norm.running_mean.data().asnumpy(), norm.running_var.data().asnumpy()
        x = nd.array(np.random.default_rng(1).normal(size=(4, 8, 3)) + 5)
        with mx.autograd.train_mode(), pytest.raises(errors.HybridNetError, match="iteration 2"):
            block(x, nd.array([-1.0])).wait_to_read()
        np.testing.assert_array_equal(norm.running_mean.data().asnumpy(), before[0])
        np.testing.assert_array_equal(norm.running_var.data().asnumpy(), before[1])

    def test_the_same_seed_gives_the_same_draws_in_every_form(self):
        drop = gluon.nn.Dropout(0.5)
        found = []
        for options in ({}, {"checkpoint": "sqrt"}, {"checkpoint": 2}):
            block = Block(lambda x, o=options: foreach(lambda d, s: (drop(d) * s, s), x, nd.ones((50,)), **o)[0], drop)
            block.hybridize()
            for _ in range(2):
                mx.random.seed(7)
                with mx.autograd.train_mode():
                    found.append(block(nd.ones((5, 50))).asnumpy())
            with mx.autograd.train_mode():
                assert (block(nd.ones((5, 50))).asnumpy() != found[-1]).any()
            np.testing.assert_array_equal(found[-1], found[-2])

    def test_each_iteration_draws_anew_and_backward_sees_the_same_mask(self):
        drop = gluon.nn.Dropout(0.5)
        block = Block(lambda x: foreach(lambda d, s: (drop(d), s), x, [])[0], drop)
        block.hybridize()
        x = nd.ones((4, 2000))
        x.attach_grad()
        with mx.autograd.record():
            out = block(x)
            out.sum().backward()
        kept = out.asnumpy() > 0
        np.testing.assert_array_equal(x.grad.asnumpy() > 0, kept)
        assert abs(kept.mean() - 0.5) < 0.05
        for a in range(4):
            for b in range(a):
                assert 0.4 < (kept[a] == kept[b]).mean() < 0.6

    def test_a_draw_outside_is_the_same_in_all_iterations(self):
        block = Block(
            lambda x: (lambda mask: foreach(lambda d, s: (d * mask, s), x, [])[0])(
                mx.sym.random.uniform(shape=(50,)) if isinstance(x, mx.sym.Symbol) else nd.random.uniform(shape=(50,))
            )
        )
        block.hybridize()
        out = block(nd.ones((3, 50))).asnumpy()
        np.testing.assert_array_equal(out[0], out[1])
        assert out[0].std() > 0


def test_an_error_names_loop_iteration_and_line():
    def body(d, s):
        return mx.sym.take(d, s, mode="raise"), s + 1

    block = Block(lambda x, i: foreach(body, x, i)[0])
    block.hybridize()
    with pytest.raises(errors.HybridNetError, match=r"foreach0, iteration 2: .*take") as caught:
        block(rows(4, 3), nd.ones((1,))).wait_to_read()
    assert "test_traced.py:" in str(caught.value)


def test_trip_count_changes_neither_graph_nor_memory():
    def compiled(count):
        block = Block(lambda x: foreach(lambda d, s: ([], (s + d).tanh()), x, x[0])[1])
        block.hybridize()
        block(rows(count, 16))
        summary = block._cached_op.summary()
        return len(block._cached_graph[1].tojson()), summary.split("arena ")[1].split(" bytes")[0]

    assert compiled(10) == compiled(10_000)


class TestUnreadOutputs:
    """Unread values are not computed, and other values and gradients stay the same."""

    FUNCTIONS = {
        "foreach state": lambda x: foreach(lambda d, s: ([d * 2, s[0]], [s[0] + d, s[1] * d, s[2] + s[1]]), x, [x[0], x[1], x[2]])[1][0],
        "foreach out": lambda x: foreach(lambda d, s: ([d * 2, s[0] * d], [s[0] + d, s[1] * d]), x, [x[0], x[1]])[0][1],
        "foreach without data": lambda x: foreach(lambda d, s: ([d[0], s[0]], [s[0] * 1.5, s[1] + d[1]]), [x, x], [x[0], x[1]])[1][0],
        "while variable": lambda x: while_loop(lambda i, a, b: i < 3, lambda i, a, b: (a * b, (i + 1, a * 1.1, b + a)), (0, x, x), 5)[1][1],
        "while count": lambda x: while_loop(lambda i, a: i < 3, lambda i, a: (a, (i + 1, a * 2)), (0, x), 5, return_count=True)[2].astype("float32") * x,
        "while condition": lambda x: while_loop(lambda a, b: b.sum() < 9, lambda a, b: (a, (a + 1, b + 1 + b * b * 0.1)), (x, x), 7)[1][0],
        "cond": lambda x: cond(x.sum() > -99, lambda: [x * 2, x.sin()], lambda: [x * 3, x])[1],
        "nested": lambda x: foreach(lambda d, s: (foreach(lambda e, t: ([e, t[0] * e], [t[0] + e]), d, [s])[0][1], s), x, x[0, :1])[0],
    }  # fmt: skip

    @pytest.mark.parametrize("name", FUNCTIONS)
    @pytest.mark.filterwarnings("ignore:The 0-th input")
    def test_results_and_gradients(self, name):
        found = []
        for hybridized in (False, True):
            block, x = Block(self.FUNCTIONS[name]), rows()
            block.hybridize(hybridized)
            x.attach_grad()
            with mx.autograd.record():
                out = block(x)
                (out * out).sum().backward()
            found.append((out.asnumpy(), x.grad.asnumpy()))
        for one, two in zip(*found, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)

    def test_the_graph_shrinks_and_shows_its_bodies(self):
        block = Block(self.FUNCTIONS["foreach state"])
        block.hybridize()
        block(rows())
        text = block._cached_op.graph_text()
        assert text.count(" carry{") == 1
        assert " do\n    %" in text and "elemwise_add" in text


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_states_returned_unchanged(count, reverse):
    """A body returns states twice, swapped, unchanged, and equal to one another."""

    def function(x, a, b):
        def body(d, s):
            first, second, third, fourth, _ = s
            return [first, first, second, fourth], [second * d, first + d, third, second * d, fourth]

        outs, last = foreach(body, x, [a, b, a, b, a], reverse=reverse)
        return [*outs, *last]

    r = np.random.default_rng(0)
    arrays = [nd.array(r.normal(size=shape)) for shape in ((count, 3), (3,), (3,))]
    block = Block(function)
    want = [o.asnumpy() for o in block(*arrays)]
    block.hybridize()
    for train in (False, True):
        with mx.autograd.record() if train else mx.autograd.pause():
            got = [o.asnumpy() for o in block(*arrays)]
        for one, two in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 9])
def test_variables_returned_unchanged(limit):
    """Rows behind the last iteration are zero, whatever the value of the state."""

    def function(x):
        outs, last = while_loop(lambda i, s: i < limit, lambda i, s: (s, (i + 1, s * 2)), (x[:1] * 0, x), 4)
        return [outs, *last]

    block = Block(function)
    x = nd.array([1.0, 2.0, 3.0])
    want = [o.asnumpy() for o in block(x)]
    block.hybridize()
    for one, two in zip(block(x), want, strict=True):
        np.testing.assert_array_equal(one.asnumpy(), two)
    assert not want[0][min(limit, 4) :].any()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("sizes", [(3,), (4, 2), (2, 0, 3)])
def test_numbers_of_iterations_follow_the_data_of_every_run(dtype, sizes, tmp_path):
    def function(x):
        return foreach(lambda t, d, s: (t + s, s + t * t), x, nd.array([5], dtype="int64"), with_index=True)

    block = Block(function)
    block.hybridize()
    block(nd.ones(sizes, dtype=dtype))
    symbol_file, params_file = block.export(str(tmp_path / "numbered"))
    loaded = mx.gluon.SymbolBlock.imports(symbol_file, ["data"], params_file)
    for length in (1, 5, 200):
        found = [out.asnumpy() for out in loaded(nd.ones((length, *sizes[1:]), dtype=dtype))]
        numbers = np.arange(length)
        states = 5 + np.cumsum(numbers**2)
        np.testing.assert_array_equal(found[0].ravel(), numbers + states - numbers**2)
        np.testing.assert_array_equal(found[1], states[-1:])


def test_symbols_of_unknown_shape_are_numbered_too():
    data = mx.sym.var("data")
    out, _ = mx.sym.contrib.foreach(lambda t, d, s: (d * t.astype("float32"), s), data, [], with_index=True)
    np.testing.assert_array_equal(out.eval(data=nd.ones((3, 1)))[0].asnumpy().ravel(), [0, 1, 2])
