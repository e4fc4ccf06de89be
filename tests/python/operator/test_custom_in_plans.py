"""Operators written in Python are instructions of the plan of a hybridized block."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, errors, gluon, nd
from hybridnet.contrib.control_flow import cond, foreach
from hybridnet.gluon import nn
from threads import in_threads

CREATED: list[mx.operator.CustomOp] = []


class Scaled(mx.operator.CustomOp):
    """Multiplies by a factor that may change between calls, so that only the operator's object knows the gradient."""

    factor = 1.0

    def forward(self, is_train, req, in_data, out_data, aux):
        self.mine, self.seen = Scaled.factor, in_data
        self.assign(out_data[0], req[0], mx.nd.array(in_data[0].asnumpy() * self.mine))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.mine)


@mx.operator.register("scaled_in_plans")
class ScaledProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        CREATED.append(Scaled())
        return CREATED[-1]


class Scale(gluon.HybridBlock):
    def forward(self, x):
        return (mx.sym if isinstance(x, mx.sym.Symbol) else nd).Custom(x, op_type="scaled_in_plans")


@pytest.fixture(autouse=True)
def fresh():
    CREATED.clear()
    Scaled.factor = 1.0


def stacks():
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dense(4), Scale(), nn.Dense(8, activation="relu"), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    return net


def test_the_operator_is_one_instruction_between_fused_stacks_and_linked_once(rng, monkeypatch):
    linked = []
    link = mx.operator.LibraryHooks.link
    monkeypatch.setattr(mx.operator.LibraryHooks, "link", lambda *given: linked.append(given) or link(*given))
    net = stacks()
    x = nd.array(rng.normal(size=(5, 6)))
    expected = net(x).asnumpy()
    CREATED.clear()
    net.hybridize()
    for _ in range(100):
        found = net(x)
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert len(linked) == len(CREATED) == net._cached_op.num_plans == 1
    text = net._cached_op.graph_text()
    assert text.count("Custom(") == 1
    assert text.count("_fused_fully_connected(") == text.count("FullyConnected(") == 2, text  # with relu
    assert "Activation(" not in text, text


def test_the_gradient_is_an_instruction_of_the_backward_plan(rng):
    values = rng.normal(size=(5, 6))
    Scaled.factor = 2.5
    net = stacks()
    found = []
    for hybridized in (False, True):
        net.hybridize(hybridized)
        x = nd.array(values)
        x.attach_grad()
        with autograd.record():
            out = net(x)
            loss = out * out
        loss.backward()
        found.append([out.asnumpy(), x.grad.asnumpy(), *[p.grad().asnumpy() for p in net.collect_params().values()]])
    for one, two in zip(*found, strict=True):
        assert np.abs(one).max() > 0
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-6)
    assert net._cached_op.num_plans == 1
    assert "_backward_Custom(" in net._cached_op.graph_text().split("backward:")[1]


def recorded(net, values, factor):
    Scaled.factor = factor
    x = nd.array(values)
    x.attach_grad()
    with autograd.record():
        return x, net(x)


def test_calls_whose_gradients_are_outstanding_have_objects_of_their_own():
    net = Scale()
    net.hybridize()
    calls = [recorded(net, [1.0, 2.0], factor) for factor in (2.0, 3.0, 5.0)]
    assert len(CREATED) == 3
    for (x, out), factor in zip(reversed(calls), (5.0, 3.0, 2.0), strict=True):
        out.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), [factor] * 2)
    del x, out, calls
    recorded(net, [1.0, 2.0], 7.0)[1].backward()
    assert len(CREATED) == 3  # one of the objects serves the new call


def test_iterations_of_a_loop_have_objects_of_their_own():
    class Loop(gluon.HybridBlock):
        def forward(self, x):
            def body(row, state):
                Scaled.factor += 1.0  # on arrays in each iteration, in graphs once, when the body is traced
                out = Scale()(row + state)
                return out, out

            return foreach(body, x, x[0] * 0)[0]

    class Counts(Scaled):
        def forward(self, is_train, req, in_data, out_data, aux):
            Scaled.factor += 1.0
            super().forward(is_train, req, in_data, out_data, aux)

    gradients = []
    for hybridized in (False, True):
        net = Loop()
        net.hybridize(hybridized)
        Scaled.factor = 1.0
        x = nd.array([[1.0], [2.0], [3.0]])
        x.attach_grad()
        original = ScaledProp.create_operator
        ScaledProp.create_operator = (lambda self, *given: Counts()) if hybridized else original
        try:
            if hybridized:
                Scaled.factor = 0.0  # tracing adds 1
            with autograd.record():
                out = net(x)
            out.backward()
        finally:
            ScaledProp.create_operator = original
        gradients.append([out.asnumpy(), x.grad.asnumpy()])
    for one, two in zip(*gradients, strict=True):
        np.testing.assert_allclose(two, one)


def test_inputs_that_an_operator_keeps_stay_unchanged():
    net = Scale()
    net.hybridize()
    kept = []
    for value in range(4):
        net(nd.array([float(value)] * 3) + 0)
        kept.append(CREATED[0].seen[0])
    np.testing.assert_array_equal([a.asnumpy() for a in kept], [[v] * 3 for v in range(4)])


def test_the_operator_may_wait_for_work_that_it_pushes(rng):
    class Waits(Scaled):
        def forward(self, is_train, req, in_data, out_data, aux):
            big = nd.ones((400, 400))
            for _ in range(3):
                big = nd.dot(big, big) / 400
            mx.nd.waitall()
            self.assign(out_data[0], req[0], in_data[0] * big[0, 0])

    @mx.operator.register("waits_in_plans")
    class Prop(ScaledProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Waits()

    net = nn.HybridLambda(lambda F, x: F.Custom(F.dot(x, x), op_type="waits_in_plans") + 1)
    net.hybridize()
    x = rng.normal(size=(300, 300)).astype("f")
    a = nd.array(x)
    for _ in range(3):
        found = net(a * 1)
    np.testing.assert_allclose(found.asnumpy(), x @ x + 1, rtol=1e-3, atol=1e-3)


def test_many_threads_call_one_graph(rng):
    net = stacks()
    x = nd.array(rng.normal(size=(5, 6)))
    expected = net(x).asnumpy()
    net.hybridize()
    net(x)

    def calls(_):
        for _ in range(30):
            np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)

    in_threads(4, calls)


def test_the_gradient_of_its_gradient_is_refused_and_other_paths_have_theirs():
    class Net(gluon.HybridBlock):
        def forward(self, x, y):
            return Scale()(x) * y * y

    net = Net()
    net.hybridize()
    x, y = nd.array([2.0]), nd.array([3.0])
    for a in (x, y):
        a.attach_grad()
    with autograd.record():
        out = net(x, y)
        with pytest.raises(errors.GradientError, match="no gradient of its gradient"):
            autograd.grad(out, x, create_graph=True)
    x = x.detach()
    with autograd.record():
        (first,) = autograd.grad(net(x, y), [y], create_graph=True)
    first.backward()
    np.testing.assert_allclose(first.asnumpy(), [12.0])
    np.testing.assert_allclose(y.grad.asnumpy(), [4.0])


class Count(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        aux[0][:] += 1
        self.assign(out_data[0], req[0], in_data[0] * aux[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * aux[0])


@mx.operator.register("count_in_plans")
class CountProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self):
        return ["calls"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [(1,)]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Count()


class Counting(gluon.HybridBlock):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.calls = self.params.get("calls", shape=(1,), init="zeros", grad_req="null")

    def hybrid_forward(self, F, x, calls):
        return self.function(x, lambda value: F.Custom(value, calls, op_type="count_in_plans"))


def test_states_advance_once_per_call_iteration_and_taken_branch():
    cases = {
        "call": (lambda x, count: count(x), 1, [1, 1, 1]),
        "foreach": (lambda x, count: foreach(lambda d, s: (count(d), s), x, x[0] * 0)[0], 3, [1, 2, 3]),
        "untaken": (lambda x, count: cond(x.sum() < 0, lambda: count(x), lambda: x * 4), 0, [4, 4, 4]),
    }
    for name, (function, advance, factors) in cases.items():
        net = Counting(function)
        net.initialize()
        net.hybridize()
        x = nd.array([1.0, 2.0, 3.0])
        x.attach_grad()
        with autograd.record():
            out = net(x)
        out.backward()
        assert net.calls.data().asscalar() == advance, name
        np.testing.assert_array_equal(out.asnumpy().ravel(), np.array(factors) * [1, 2, 3], err_msg=name)
        np.testing.assert_array_equal(x.grad.asnumpy(), factors, err_msg=name)


def test_a_run_that_fails_leaves_states_alone():
    class Fails(Count):
        def forward(self, is_train, req, in_data, out_data, aux):
            super().forward(is_train, req, in_data, out_data, aux)
            if in_data[0].asnumpy()[0] > 5:
                raise OverflowError("too much")

    @mx.operator.register("fails_in_plans")
    class Prop(CountProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Fails()

    class Net(Counting):
        def hybrid_forward(self, F, x, calls):
            return F.Custom(x, calls, op_type="fails_in_plans")

    net = Net(None)
    net.initialize()
    net.hybridize()
    net(nd.array([1.0]))
    with pytest.raises(OverflowError, match="too much") as caught:
        net(nd.array([9.0]))
    assert "custom" in "".join(caught.value.__notes__)
    assert net.calls.data().asscalar() == 1
    net(nd.array([1.0]))
    assert net.calls.data().asscalar() == 2
