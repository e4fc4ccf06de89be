"""Branches of unequal size in Symbols, whose sizes are known only when arrays are bound, work as on arrays."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors
from hybridnet.contrib import cond, foreach
from hybridnet.gluon import SymbolBlock

from .blocks import Block, operators

nd, sym = mx.nd, mx.sym
VALUES = np.array([0.5, -1.0, 2.0])


def uneven(x, p, **options):
    """Returns all numbers doubled, or the sines of the first two."""
    return cond(p, lambda: x * 2, lambda: first(x, 2).sin(), **options)


def total(x):
    """Returns the sum of any number of values as one element."""
    return operators(x).sum(x, axis=0, keepdims=True)


def first(x, count=1):
    """Returns the first `count` values."""
    return operators(x).slice_axis(x, axis=0, begin=0, end=count)


def times(x, y):
    """Multiplies with broadcasting."""
    return operators(x).broadcast_mul(x, y)


def plus(x, y):
    """Adds with broadcasting."""
    return operators(x).broadcast_add(x, y)


GRAPHS = {
    "the output": uneven,
    "work behind it": lambda x, p: (uneven(x, p) * 3).tanh(),
    "reduced": lambda x, p: times(x, total(uneven(x, p))),
    "in front of another": lambda x, p: uneven(uneven(x, p), p),
    "a branch that chooses by it": lambda x, p: cond(total(uneven(x, p)) > 1, lambda: x * x, lambda: first(x)),
    "inside a branch": lambda x, p: cond(total(x) > 0, lambda: total(uneven(x, p)), lambda: first(x)),
    "inside both of a branch": lambda x, p: cond(total(x) > 9, lambda: first(x), lambda: uneven(x * x, p)),
    "inside a loop": lambda x, p: foreach(lambda d, h: (total(uneven(times(x, d), p)), h), x, p)[0].flatten(),
    "beside equal ones": lambda x, p: plus(cond(p, lambda: x.exp(), lambda: x.cos()), total(uneven(x, p))),
}  # fmt: skip


def bound(graph, pred, *, train=True, values=VALUES):
    """Returns result and gradient of x with head gradients 1, 2, ..., from Symbol.bind."""
    made = GRAPHS[graph](sym.var("x", dtype="float64"), sym.var("p")) if isinstance(graph, str) else graph
    arrays = {"x": nd.array(values, dtype="float64"), "p": nd.array([pred])}
    grads = {"x": nd.zeros(len(values), dtype="float64")}
    executor = made.bind(mx.cpu(), arrays, args_grad=grads, grad_req={"x": "write"})
    result = executor.forward(is_train=train)[0]
    executor.backward(nd.arange(1, result.size + 1, dtype="float64").reshape(result.shape))
    return result.asnumpy(), grads["x"].asnumpy()


def recorded(function, pred, *, hybridized=False, values=VALUES):
    """Returns the same as bound(), from arrays or a hybridized block."""
    block = Block(function) if not isinstance(function, mx.gluon.Block) else function
    if hybridized:
        block.hybridize()
    x, p = nd.array(values, dtype="float64"), nd.array([pred])
    x.attach_grad()
    with mx.autograd.record():
        result = block(x, p)
    result.backward(nd.arange(1, result.size + 1, dtype="float64").reshape(result.shape))
    return result.asnumpy(), x.grad.asnumpy()


def same(found, want):
    for one, two in zip(found, want, strict=True):
        assert one.shape == two.shape
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("pred", [0, 1])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("mode", ["bound", "bound for prediction", "hybridized", "loaded", "loaded, hybridized"])
def test_every_mode_equals_arrays(mode, graph, pred, tmp_path):
    want = recorded(GRAPHS[graph], pred)
    if mode.startswith("bound"):
        found = bound(graph, pred, train=mode == "bound")
    elif mode == "hybridized":
        found = recorded(GRAPHS[graph], pred, hybridized=True)
    else:
        inputs = [sym.var("x", dtype="float64"), sym.var("p")]
        GRAPHS[graph](*inputs).save(str(tmp_path / "graph-symbol.json"))
        loaded = SymbolBlock(sym.load(str(tmp_path / "graph-symbol.json")), inputs)
        found = recorded(loaded, pred, hybridized="hybridized" in mode)
    same(found, want)


@pytest.mark.parametrize("pred", [0, 1])
def test_gradients_are_those_of_differences(pred):
    heads = np.arange(1, 4)

    def loss(values):
        result = bound("work behind it", pred, values=values)[0]
        return float((result * heads[: len(result)]).sum())

    gradient = bound("work behind it", pred)[1]
    for i in range(3):
        step = np.eye(3)[i] * 1e-6
        assert gradient[i] == pytest.approx((loss(VALUES + step) - loss(VALUES - step)) / 2e-6, abs=1e-8)


@pytest.mark.parametrize("pred", [0, 1])
@pytest.mark.parametrize("graph", GRAPHS)
def test_second_order_gradients_are_those_of_arrays(graph, pred):
    def second(hybridized):
        inputs = [sym.var("x", dtype="float64"), sym.var("p")]
        block = SymbolBlock(GRAPHS[graph](*inputs), inputs) if hybridized else Block(GRAPHS[graph])
        if hybridized:
            block.hybridize()
        x, p = nd.array(VALUES, dtype="float64"), nd.array([pred])
        x.attach_grad()
        with mx.autograd.record():
            first = mx.autograd.grad((block(x, p) ** 2).sum(), [x], create_graph=True, retain_graph=True)[0]
            loss = (first * first).sum()
        loss.backward()
        return loss.asnumpy(), x.grad.asnumpy()

    same(second(True), second(False))


class TestShapes:
    X, P = sym.var("x"), sym.var("p")

    def test_shape_inference_knows_the_sizes_that_branches_share(self):
        x = self.X
        graph = cond(self.P, lambda: x * 2, lambda: sym.slice_axis(x, axis=1, begin=0, end=2))
        assert graph.infer_shape(x=(4, 3), p=(1,)) == (None, None, None)
        assert graph.infer_shape_partial(x=(4, 3), p=(1,)) == ([(1,), (4, 3)], [(4, 0)], [])
        assert graph.infer_shape(x=(4, 2), p=(1,)) == ([(1,), (4, 2)], [(4, 2)], [])
        assert total(graph).infer_shape_partial(x=(4, 3), p=(1,))[1] == [(1, 0)]

    def test_readers_of_one_branch_imply_no_shape_of_the_other(self):
        graph = uneven(self.X, self.P) + sym.var("y", shape=(3,))
        assert graph.infer_shape(x=(3,), p=(1,))[1] == [(3,)]
        arrays = {"x": nd.array(VALUES), "p": nd.array([1]), "y": nd.ones(3)}
        np.testing.assert_allclose(graph.bind(mx.cpu(), arrays).forward()[0].asnumpy(), VALUES * 2 + 1, rtol=1e-6)
        arrays["p"][:] = 0
        with pytest.raises(errors.ShapeError, match=r"\(2,\)"):
            graph.bind(mx.cpu(), arrays).forward()[0].asnumpy()

    def test_simple_bind_needs_the_shapes_of_arguments_only(self):
        executor = uneven(self.X, self.P).simple_bind(mx.cpu(), x=(3,), p=(1,))
        for pred, size in ((1, 3), (0, 2), (1, 3)):
            assert executor.forward(is_train=True, p=nd.array([pred]))[0].shape == (size,)
            executor.backward()
            assert executor.grad_dict["x"].asnumpy().astype(bool).sum() == size
        assert "Total" in executor.debug_str()
        assert executor.reshape(x=(5,), p=(1,), allow_up_sizing=True).forward(p=nd.array([1]))[0].shape == (5,)

    def test_simple_bind_names_the_arguments_that_stay_unknown(self):
        with pytest.raises(errors.ValueError, match="'x'"):
            uneven(self.X, self.P).simple_bind(mx.cpu(), p=(1,))

    @pytest.mark.parametrize("saved", [False, True])
    def test_strict_shape_refuses_them(self, saved):
        graph = uneven(self.X, self.P, strict_shape=True)
        if saved:
            graph = sym.load_json(graph.tojson())
        assert graph.infer_shape(x=(2,), p=(1,))[1] == [(2,)]
        with pytest.raises(errors.ShapeError, match=r"(?s)\(3,\).*\(2,\).*Fix:"):
            graph.infer_shape(x=(3,), p=(1,))
        with pytest.raises(errors.ShapeError, match=r"(?s)\(3,\).*\(2,\).*Fix:"):
            bound(graph, 1)

    @pytest.mark.parametrize(("other", "kind"), [
        (lambda x: x.astype("int32"), errors.DTypeError),
        (lambda x: x.reshape((3, 1)), errors.ShapeError),
    ])  # fmt: skip
    def test_other_dtypes_and_numbers_of_axes_are_errors(self, other, kind):
        x = sym.var("x", shape=(3,), dtype="float32")
        with pytest.raises(kind, match="branch"):
            cond(self.P, lambda: x * 2, lambda: other(x)).infer_shape(p=(1,))


def test_a_cut_serves_its_own_sizes_only():
    """Sizes for which the branches agree keep one plan; for other sizes the graph is cut once."""
    inputs = [sym.var("x"), sym.var("p")]
    block = SymbolBlock(uneven(*inputs), inputs)
    block.hybridize()
    pred = nd.array([1])
    for _ in range(2):
        for size in (2, 3, 2, 4):
            assert block(nd.ones(size), pred).shape == (size,)
    assert "cut at _cond" not in plan_of(block, nd.ones(2), pred)
    assert "cut at _cond" in plan_of(block, nd.ones(3), pred)


def plan_of(block, *arrays):
    block(*arrays).wait_to_read()
    return block.plan_text()
