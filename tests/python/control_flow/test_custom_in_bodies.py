"""Operators written in Python give the same results and gradients in loops and branches of graphs as on arrays."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, errors, gluon, nd
from hybridnet.contrib.control_flow import cond, foreach, while_loop

from .blocks import Block, flat

RAN: list[str] = []


class Square(mx.operator.CustomOp):
    def __init__(self, tag: str) -> None:
        super().__init__()
        self.tag = tag

    def forward(self, is_train, req, in_data, out_data, aux):
        RAN.append(self.tag)
        x = in_data[0].asnumpy()  # waits, which is allowed: this code does not run in a task of the engine
        self.assign(out_data[0], req[0], mx.nd.array(x * x))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        RAN.append(self.tag + " backward")
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


@mx.operator.register("square_in_body")
class SquareProp(mx.operator.CustomOpProp):
    def __init__(self, tag="square"):
        super().__init__()
        self.tag = tag

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Square(self.tag)


def square(x, tag="square"):
    f = mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd
    return f.Custom(x, op_type="square_in_body", tag=tag)


def rows(count=4):
    return nd.array(np.linspace(0.1, 1.3, count * 3, dtype=np.float32).reshape(count, 3))


def inner_loop(x):
    return while_loop(lambda i, v: i < 2, lambda i, v: (v + i, (i + 1, square(v))), (0, x), 3)[0].sum(axis=0)


BODIES = {
    "foreach": lambda x: foreach(lambda d, s: (square(d) + s, s * d), x, x[0]),
    "foreach, reversed": lambda x: foreach(lambda d, s: (square(d) + s, s * d), x, x[0], reverse=True),
    "foreach, last state": lambda x: foreach(lambda d, s: ([], square(s) + d), x, x[0])[1],
    "foreach over a vector": lambda x: foreach(lambda d, s: (square(d) * s, s + d), x[0], x[0][:1] * 0 + 1),
    "foreach, index": lambda x: foreach(
        lambda t, d, s: (square(d) * t.astype("float32"), s), x, x[0], with_index=True
    )[0],
    "foreach, two data": lambda x: foreach(lambda d, s: (square(d[0]) * d[1], s), [x, x + 1], x[0])[0],
    "foreach, closure": lambda x: foreach(lambda d, s: (square(d * x[1]), s), x, x[0])[0],
    "foreach, truncated": lambda x: foreach(lambda d, s: (square(s) + d, s * d), x, x[0], truncate_gradient=2),
    "foreach, detached": lambda x: foreach(lambda d, s: (square(s) + d, s * d), x, x[0], detach_every=2),
    "foreach, no iteration": lambda x: foreach(lambda d, s: (square(d) + s, s * d), x[:0], x[0]),
    "while_loop": lambda x: while_loop(
        lambda i, v: i < 3, lambda i, v: (square(v), (i + 1, v * 1.5)), (0, x), 5
    ),
    "while_loop, no iteration": lambda x: while_loop(
        lambda i, v: i > 3, lambda i, v: (square(v), (i + 1, v * 1.5)), (0, x), 5
    ),
    "while_loop, exact": lambda x: while_loop(
        lambda i, v: i < 3, lambda i, v: (square(v), (i + 1, v * 1.5)), (0, x), 5, exact=True
    )[0],
    "while_loop, Custom in the condition": lambda x: while_loop(
        lambda i, v: square(v).sum() < 100, lambda i, v: (v, (i + 1, v * 1.5)), (0, x), 9
    ),
    "cond": lambda x: cond(x.sum() > 0, lambda: square(x), lambda: square(x, tag="untaken")),
    "cond, else": lambda x: cond(x.sum() < 0, lambda: square(x, tag="untaken"), lambda: square(x) * 2),
    "loop in a loop": lambda x: foreach(lambda d, s: (inner_loop(d), s + d), x, x[0]),
    "branch in a loop": lambda x: foreach(
        lambda d, s: (cond(d.sum() > 2, lambda: square(d), lambda: d * 2), s), x, x[0]
    )[0],
    "loop beside a compiled loop": lambda x: foreach(lambda d, s: (square(d), s), x, x[0])[0]
    * foreach(lambda d, s: (d + s, s + d), x, x[0])[0],
}  # fmt: skip


def run(block, x):
    x.attach_grad()
    with autograd.record():
        outs = flat(block(x))
        loss = sum((out * (k + 2)).sum() for k, out in enumerate(outs))
    loss.backward()
    return [a.asnumpy() for a in outs] + [x.grad.asnumpy()]


@pytest.mark.parametrize("name", BODIES)
def test_values_and_gradients_are_those_on_arrays(name):
    found = []
    for hybridized in (False, True):
        RAN.clear()
        block = Block(BODIES[name])
        block.hybridize(hybridized)
        found.append(run(block, rows()))
        assert not any(tag.startswith("untaken") for tag in RAN)
        found[-1] = [*found[-1], *[np.array(v) for v in run(block, rows() * 2)]]  # the graph still works
    for one, two in zip(*found, strict=True):
        assert one.shape == two.shape
        np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)


def test_a_bound_graph_has_them_too():
    x = mx.sym.var("x")
    out = mx.sym.contrib.foreach(lambda d, s: (square(d) + s, s * d), x, x.sum(axis=0))[0]
    args, grads = {"x": rows()}, {"x": nd.zeros((4, 3))}
    executor = out.bind(mx.cpu(), args, args_grad=grads)
    (result,) = executor.forward(is_train=True)
    executor.backward(nd.ones(result.shape))
    block = Block(lambda a: foreach(lambda d, s: (square(d) + s, s * d), a, a.sum(axis=0))[0])
    y = rows()
    y.attach_grad()
    with autograd.record():
        expected = block(y)
    expected.backward()
    np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), rtol=1e-5)
    np.testing.assert_allclose(grads["x"].asnumpy(), y.grad.asnumpy(), rtol=1e-5)


def test_files_keep_the_loop(tmp_path):
    block = Block(BODIES["foreach"])
    block.hybridize()
    expected = flat(block(rows()))
    files = block.export(str(tmp_path / "m"))
    loaded = flat(gluon.SymbolBlock.imports(files[0], ["data"], files[1])(rows()))
    for one, two in zip(expected, loaded, strict=True):
        np.testing.assert_allclose(two.asnumpy(), one.asnumpy(), rtol=1e-6)


def test_an_error_says_in_which_iteration():
    block = Block(lambda x, i: foreach(lambda d, s: (x.take(d, mode="raise") + square(d), s), i, x[0])[0])
    block.hybridize()
    with pytest.raises(errors.IndexError, match=r"iteration 2.*take") as caught:
        block(rows(), nd.array([0.0, 1.0, 99.0, 1.0])).wait_to_read()
    assert "test_custom_in_bodies.py" in str(caught.value)


class Raises(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if in_data[0].asnumpy().max() > 1:
            raise KeyError("of the user")
        self.assign(out_data[0], req[0], in_data[0])


@mx.operator.register("raises_in_body")
class RaisesProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Raises()


def test_an_exception_of_the_operator_keeps_its_class_and_the_graph_goes_on():
    block = Block(lambda x: foreach(lambda d, s: (mx.sym.Custom(d, op_type="raises_in_body"), s), x, x[0])[0])
    block.hybridize()
    small = rows() / 2
    for _ in range(3):
        with pytest.raises(KeyError, match="of the user"):
            block(rows())
        np.testing.assert_array_equal(block(small).asnumpy(), small.asnumpy())


class RaisesOn(mx.operator.CustomOp):
    """Copies its input; raises if the input, or in backward the gradient, contains 99."""

    def forward(self, is_train, req, in_data, out_data, aux):
        if (in_data[0].asnumpy() == 99).any():
            raise LookupError("forwards")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        if (out_grad[0].asnumpy() == 99).any():
            raise LookupError("backwards")
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("raises_on_99")
class RaisesOnProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return RaisesOn()


class StepsRaise(mx.operator.CustomOp):
    def lazy_step(self, is_train, req, in_data, out_data, aux):
        return [0] if in_data[0] is None else [7]


@mx.operator.register("steps_raise")
class StepsRaiseProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(lazy=True)

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return StepsRaise()


def raises(x, op_type="raises_on_99"):
    return (mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd).Custom(x, op_type=op_type)


def text_with_notes(error):
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


class TestErrorsOfPythonCodeTellTheIteration:
    LOOPS = {
        "foreach": (lambda x: foreach(lambda d, s: (raises(d), s), x, x[0])[0], r"foreach\d+, iteration 2"),
        "foreach, reversed": (
            lambda x: foreach(lambda d, s: (raises(d), s), x, x[0], reverse=True)[0],
            r"foreach\d+, iteration 1",
        ),
        "while_loop": (
            lambda x: while_loop(
                lambda i, v: i < 4, lambda i, v: (raises(x.take(i).reshape((3,))), (i + 1, v)), (0, x[0]), 5
            )[0],
            r"while_loop\d+, iteration 2",
        ),
        "condition of while_loop": (
            lambda x: while_loop(
                lambda i, v: raises(x.take(i).reshape((3,))).sum() < 1e9, lambda i, v: (v, (i + 1, v)), (0, x[0]), 4
            )[0],
            r"while_loop\d+, iteration 2",
        ),
        "loop in a loop": (
            lambda x: foreach(lambda d, s: (foreach(lambda e, t: (raises(e), t), d, s[:1])[0], s), x, x[0])[0],
            r"foreach\d+, iteration 2: \S*foreach\d+, iteration 1",
        ),
        "branch in a loop": (
            lambda x: foreach(lambda d, s: (cond(d.sum() > 50, lambda: raises(d), lambda: d), s), x, x[0])[0],
            r"foreach\d+, iteration 2: \S*cond\d+, then branch",
        ),
    }  # fmt: skip

    def data(self):
        x = np.ones((4, 3), np.float32)
        x[2, 1] = 99
        return x

    @pytest.mark.parametrize("name", LOOPS)
    def test_hybridized(self, name):
        function, place = self.LOOPS[name]
        block = Block(function)
        block.hybridize()
        with pytest.raises(LookupError, match="forwards") as caught:
            block(nd.array(self.data()))
        (note,) = caught.value.__notes__
        assert re.search(place, note), note
        assert re.search(r"custom|raises_on_99", note) and "test_custom_in_bodies.py" in note
        assert np.isfinite(flat(block(nd.ones((4, 3))))[0].asnumpy()).all()  # the graph still works

    @pytest.mark.parametrize("name", ["foreach", "loop in a loop"])
    def test_bound_symbols(self, name):
        function, place = self.LOOPS[name]
        executor = function(mx.sym.var("x", shape=(4, 3))).bind(mx.cpu(), {"x": nd.array(self.data())})
        with pytest.raises(LookupError, match="forwards") as caught:
            executor.forward()
        assert re.search(place, text_with_notes(caught.value)), text_with_notes(caught.value)

    def test_backwards(self):
        block = Block(lambda x: foreach(lambda d, s: (raises(d), s), x, x[0])[0])
        block.hybridize()
        x = nd.ones((4, 3))
        x.attach_grad()
        with autograd.record():
            out = block(x)
        with pytest.raises(LookupError, match="backwards") as caught:
            out.backward(nd.array(self.data()))
        assert re.search(r"foreach\d+, iteration 2", text_with_notes(caught.value)), text_with_notes(caught.value)

    def test_lazy_operators(self):
        block = Block(lambda x: foreach(lambda d, s: (raises(d, "steps_raise"), s), x, x[0])[0])
        block.hybridize()
        with pytest.raises(errors.ValueError, match="asked for inputs") as caught:
            block(nd.ones((4, 3)))
        assert re.search(r"foreach\d+, iteration 0", text_with_notes(caught.value)), text_with_notes(caught.value)

    def test_on_arrays_errors_have_no_place(self):
        with pytest.raises(LookupError) as caught:
            raises(nd.array(self.data()))
        assert not getattr(caught.value, "__notes__", [])


def test_parameters_of_a_body_get_gradients():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = gluon.nn.Dense(3, flatten=False)

        def forward(self, x):
            return foreach(lambda d, s: (square(self.dense(d)) + s, s), x, x[0])[0]

    net = Net()
    net.initialize(mx.init.Constant(0.3))
    found = []
    for hybridized in (False, True):
        net.hybridize(hybridized)
        with autograd.record():
            loss = net(rows()).sum()
        loss.backward()
        found.append([p.grad().asnumpy().copy() for p in net.collect_params().values()])
    for one, two in zip(*found, strict=True):
        assert np.abs(one).max() > 0
        np.testing.assert_allclose(two, one, rtol=1e-5)


def test_inputs_of_the_untaken_branch_do_not_run_and_have_zero_gradients():
    def function(x, y):
        above = square(y, tag="untaken")
        return cond(x.sum() > 0, lambda: square(x), lambda: above)

    block = Block(function)
    block.hybridize()
    x, y = rows(), rows()
    x.attach_grad()
    y.attach_grad()
    y.grad[:] = 7
    RAN.clear()
    with autograd.record():
        out = block(x, y)
    out.backward()
    assert "untaken" not in RAN
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * x.asnumpy(), rtol=1e-6)
    np.testing.assert_array_equal(y.grad.asnumpy(), 0)
