"""Operators written in Python may request their inputs one by one: other inputs are not computed."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, errors, gluon, nd

RAN: list[str] = []


class Traced(mx.operator.CustomOp):
    """Copies its input and records that it ran."""

    def __init__(self, tag):
        super().__init__()
        self.tag = tag

    def forward(self, is_train, req, in_data, out_data, aux):
        RAN.append(self.tag)
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        RAN.append(self.tag + " backward")
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("traced_of_lazy_tests")
class TracedProp(mx.operator.CustomOpProp):
    def __init__(self, tag):
        super().__init__()
        self.tag = tag

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Traced(self.tag)


class Select(mx.operator.CustomOp):
    """Selects rows of two inputs by the signs of the first input; requests only the inputs that it needs."""

    def lazy_step(self, is_train, req, in_data, out_data, aux):
        if in_data[0] is None:
            return [0]
        self.positive = in_data[0].asnumpy() > 0
        wanted = [k for k, rows in ((1, self.positive), (2, ~self.positive)) if rows.any() and in_data[k] is None]
        if wanted:
            return wanted
        parts = [np.zeros(out_data[0].shape) if a is None else a.asnumpy() for a in in_data[1:]]
        self.assign(out_data[0], req[0], nd.array(np.where(self.positive[:, None], *parts)))
        return []

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        assert [r == "null" for r in req] == [a is None for a in in_data]
        for k, rows in ((1, self.positive), (2, ~self.positive)):
            if in_data[k] is not None:
                self.assign(in_grad[k], req[k], out_grad[0] * nd.array(rows[:, None] * 1.0))


@mx.operator.register("select_of_lazy_tests")
class SelectProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(lazy=True)

    def list_arguments(self):
        return ["test", "then", "otherwise"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[1]], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        assert in_shapes == [(2,), (2, 3), (2, 3)] or in_shapes == [[2], [2, 3], [2, 3]]
        return Select()


class Net(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.a = self.params.get("a", shape=(3,), init="ones")
        self.b = self.params.get("b", shape=(3,), init="ones")

    def hybrid_forward(self, F, test, x, a, b):
        def traced(value, tag):
            return F.Custom(value, op_type="traced_of_lazy_tests", tag=tag)

        then = traced(F.broadcast_mul(x, a), "then")
        otherwise = traced(traced(F.broadcast_mul(x, b), "else") * 3, "else, second")
        return F.Custom(traced(test, "test"), then, otherwise, op_type="select_of_lazy_tests")


X = np.arange(1.0, 7).reshape(2, 3)
CASES = {
    "then": ([1, 2], ["test", "then"], X),
    "else": ([-1, -2], ["test", "else", "else, second"], 3 * X),
    "both": ([1, -2], ["test", "then", "else", "else, second"], np.array([X[0], 3 * X[1]])),
}


@pytest.mark.parametrize("hybridized", [False, True], ids=["imperative", "hybridized"])
@pytest.mark.parametrize("case", CASES)
def test_only_requested_inputs_run_forward_and_backward(case, hybridized):
    test, ran, expected = CASES[case]
    net = Net()
    net.initialize()
    net.hybridize(hybridized)
    for parameter in (net.a, net.b):
        parameter.data()  # raises if it is not initialized
        parameter.grad()[:] = 7
    RAN.clear()
    with autograd.record():
        out = net(nd.array(test), nd.array(X))
    out.backward()
    forwards = [tag for tag in RAN if not tag.endswith("backward")]
    if hybridized:
        assert sorted(forwards) == sorted(ran)
        assert sorted(set(RAN) - set(ran)) == sorted(f"{tag} backward" for tag in ran if tag != "test")
    np.testing.assert_allclose(out.asnumpy(), expected)
    positive = np.array(test)[:, None] > 0
    np.testing.assert_allclose(net.a.grad().asnumpy(), (X * positive).sum(axis=0))
    np.testing.assert_allclose(net.b.grad().asnumpy(), (3 * X * ~positive).sum(axis=0))


def test_a_value_that_others_need_runs_once():
    data = mx.sym.var("x")
    shared = mx.sym.Custom(data, op_type="traced_of_lazy_tests", tag="shared")
    chosen = mx.sym.Custom(mx.sym.var("test"), shared, shared * 2, op_type="select_of_lazy_tests")
    RAN.clear()
    out = (chosen + shared).eval(test=nd.array([1, -1]), x=nd.array(X))[0]
    assert RAN == ["shared"]
    np.testing.assert_allclose(out.asnumpy(), [2 * X[0], 3 * X[1]])


def test_in_a_loop_each_iteration_decides():
    class Loop(gluon.HybridBlock):
        def forward(self, tests, x):
            def body(test, s):
                f = mx.sym if isinstance(test, mx.sym.Symbol) else mx.nd
                then = f.Custom(s + x, op_type="traced_of_lazy_tests", tag="then")
                otherwise = f.Custom(s * 2, op_type="traced_of_lazy_tests", tag="else")
                s = f.Custom(test, then, otherwise, op_type="select_of_lazy_tests")
                return s, s

            return mx.contrib.control_flow.foreach(body, tests, x)[0]

    loop = Loop()
    loop.hybridize()
    RAN.clear()
    out = loop(nd.array([[1, 1], [-1, -1], [1, -1]]), nd.array(X))
    assert RAN == ["then", "else", "then", "else"]
    np.testing.assert_allclose(out.asnumpy(), [2 * X, 4 * X, [5 * X[0], 8 * X[1]]])


class Asks(mx.operator.CustomOp):
    def __init__(self, wanted):
        super().__init__()
        self.wanted = wanted

    def lazy_step(self, is_train, req, in_data, out_data, aux):
        return self.wanted


@mx.operator.register("asks_of_lazy_tests")
class AsksProp(mx.operator.CustomOpProp):
    def __init__(self, wanted):
        super().__init__(lazy=True)
        self.wanted = [int(wanted)]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Asks(self.wanted)


def test_an_operator_that_requests_available_inputs_is_stalled():
    with pytest.raises(errors.ValueError, match=r"'asks_of_lazy_tests' has stalled.*data"):
        nd.Custom(nd.ones((2,)), op_type="asks_of_lazy_tests", wanted=0)


def test_an_operator_that_asks_for_an_input_it_does_not_have_is_an_error():
    with pytest.raises(errors.ValueError, match=r"asked for inputs \[3\].*0 to 0 \(data\)"):
        nd.Custom(nd.ones((2,)), op_type="asks_of_lazy_tests", wanted=3)


STEPS: list[tuple[bool, ...]] = []


class Early(mx.operator.CustomOp):
    """Sets one output as soon as its first input is available, and the other after the second."""

    def lazy_step(self, is_train, req, in_data, out_data, aux):
        STEPS.append(tuple(a is not None for a in in_data))
        if in_data[0] is None:
            return [0]
        if in_data[1] is None:
            self.assign(out_data[0], req[0], in_data[0] * 2)
            return [1]
        self.assign(out_data[1], req[1], out_data[0] + in_data[1])  # reads values of earlier steps
        return []

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * (out_grad[0] + out_grad[1]))
        self.assign(in_grad[1], req[1], out_grad[1])


@mx.operator.register("early_of_lazy_tests")
class EarlyProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(lazy=True)

    def list_arguments(self):
        return ["one", "two"]

    def list_outputs(self):
        return ["first", "second"]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Early()


class Early2(gluon.HybridBlock):
    def forward(self, x, c):
        f = mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd
        shared = f.Custom(x, op_type="traced_of_lazy_tests", tag="shared")

        def early():
            first, second = f.Custom(shared * 3, shared + 1, op_type="early_of_lazy_tests")
            return first * second

        return mx.contrib.cond(c > 0, early, lambda: shared * 5)


@pytest.mark.parametrize("hybridized", [False, True], ids=["imperative", "hybridized"])
def test_outputs_that_are_set_early_stay_and_a_cone_of_two_inputs_runs_once_in_a_branch_with_gradients(hybridized):
    block = Early2()
    block.hybridize(hybridized)
    x = nd.array([1.0, 2.0])
    for c, expected, gradient in (
        (1.0, 6 * X[0, :2] * (7 * X[0, :2] + 1), 84 * X[0, :2] + 6),
        (-1.0, 5 * X[0, :2], 5 + 0 * X[0, :2]),
    ):
        x.attach_grad()
        RAN.clear()
        STEPS.clear()
        with autograd.record():
            out = block(x, nd.array([c]))
        out.backward()
        np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(x.grad.asnumpy(), gradient, rtol=1e-6)
        assert RAN == ["shared", "shared backward"]
        if c < 0:
            assert STEPS == []
        elif hybridized:
            assert STEPS == [(False, False), (True, False), (True, True)]
