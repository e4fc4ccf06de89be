"""Outputs of a hybridized call that no loss reads do not affect gradients, as without hybridize()."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.errors import GradientError
from hybridnet.gluon import nn

MODES = [{}, {"static_alloc": True}, {"static_alloc": True, "static_shape": True}]
ROUNDS = [(0,), (0,), (0, 1), (1,), (0, 1), (0,)]  # outputs that the loss reads, call by call


class Parts(gluon.HybridBlock):
    """Returns the outputs of a function of (F, x)."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, x):
        return self.function(F, x)


# Pairs of outputs: the derivative of the first is finite at 0, that of the second is not.
PAIRS = {
    "sqrt": lambda F, x: (x * 2, F.sqrt(x)),
    "log": lambda F, x: (F.sin(x), F.log(x)),
    "power": lambda F, x: (x * x, x**0.25),
    "division": lambda F, x: (x + 1, 1 / x),
    "shared": lambda F, x: (F.exp(x), F.exp(x) / x),
    "norm": lambda F, x: (x * 3, F.norm(x[1:3])),
    "loss": lambda F, x: (x * 3, F.SoftmaxOutput(x.reshape((1, 4)), F.ones((1,)))),
    "loop": lambda F, x: F.contrib.foreach(lambda d, h: (d * 2, h * F.sqrt(d)), x, F.ones((1,))),
}


def gradient(net, x, read):
    x = nd.array(x)
    x.attach_grad()
    with autograd.record():
        outputs = net(x)
        loss = sum((outputs[i] * (i + 2)).sum() for i in read)
    loss.backward()
    return x.grad.asnumpy()


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_those_of_the_outputs_that_were_read(name, mode):
    plain, hybrid = Parts(PAIRS[name]), Parts(PAIRS[name])
    hybrid.hybridize(**mode)
    for read in ROUNDS:
        for x in ([0.0, 1.0, 4.0, 2.0], [0.0, 0.0, 0.0, 0.0]):
            np.testing.assert_allclose(gradient(hybrid, x, read), gradient(plain, x, read), rtol=1e-6)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_second_order_gradients_ignore_unread_outputs(mode):
    net = Parts(lambda F, x: (x * x * x, F.sqrt(x)))
    net.hybridize(**mode)
    for _ in range(2):
        x = nd.array([0.0, 2.0])
        x.attach_grad()
        with autograd.record():
            first = autograd.grad(net(x)[0], [x], create_graph=True)[0]
        first.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), [0.0, 12.0])


def test_random_draws_and_state_updates_stay_as_in_the_call():
    net = nn.HybridSequential()
    net.add(nn.BatchNorm(in_channels=2), Parts(lambda F, x: (F.Dropout(x, p=0.5), F.sqrt(x))))
    net.initialize()
    net.hybridize()
    momentum = 0.9
    for call in range(1, 4):
        x = nd.array([[1.0, 2.0], [3.0, 5.0], [4.0, -1.0], [0.0, 6.0]])
        x.attach_grad()
        with autograd.record():
            kept = net(x)[0]
            loss = (kept * kept).sum()
        loss.backward()
        assert np.isfinite(x.grad.asnumpy()).all()
        beta = net[0].beta.grad().asnumpy()
        np.testing.assert_allclose(beta, (4 * kept).sum(axis=0).asnumpy(), rtol=1e-5, atol=1e-5)
        running = net[0].running_mean.data().asnumpy()
        np.testing.assert_allclose(running, (1 - momentum**call) * x.asnumpy().mean(axis=0), rtol=1e-5)


def test_row_sparse_gradients_stay_row_sparse():
    class Lookup(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(5, 2), init="ones", grad_stype="row_sparse")

        def hybrid_forward(self, F, x, weight):
            rows = F.Embedding(x, weight, input_dim=5, output_dim=2, sparse_grad=True)
            return rows * 3, F.sqrt(rows - 1)

    net = Lookup()
    net.initialize()
    net.hybridize()
    for _ in range(3):
        with autograd.record():
            loss = net(nd.array([1, 3, 3]))[0].sum()
        loss.backward()
        grad = net.weight.grad()
        assert grad.stype == "row_sparse"
        np.testing.assert_array_equal(grad.asnumpy(), [[0, 0], [3, 3], [0, 0], [6, 6], [0, 0]])


def test_states_that_a_truncated_loop_passes_on_have_no_gradient():
    plain, hybrid = gluon.rnn.GRU(3, input_size=2), gluon.rnn.GRU(3, input_size=2)
    plain.initialize(mx.init.Uniform(0.5))
    hybrid.initialize()
    for a, b in zip(plain.collect_params().values(), hybrid.collect_params().values()):
        b.set_data(a.data())
    hybrid.hybridize(static_alloc=True)
    for seed in range(3):
        x = nd.array(np.random.RandomState(seed).rand(4, 1, 2))
        found = []
        for net in (plain, hybrid):
            with autograd.record():
                out, _ = net(x, net.begin_state(1))
                loss = (out * out).sum()
            loss.backward()
            found.append([p.grad().asnumpy().copy() for p in net.collect_params().values()])
        for a, b in zip(*found):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_inputs_that_were_written_since_are_not_read_by_a_gradient_of_fewer_outputs():
    net = Parts(lambda F, x: (x * 2, x + 1))
    net.hybridize()
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = net(x)[0]
    x += 1
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [2.0, 2.0])


def test_an_output_that_is_read_for_the_first_time_needs_the_inputs_of_its_call():
    net = Parts(lambda F, x: (x * 2, x * x))
    net.hybridize()
    assert gradient(net, [1.0, 2.0], (0,)).tolist() == [4.0, 4.0]
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = net(x)[1]
    x += 1
    with pytest.raises(GradientError, match="overwritten in place"):
        y.backward()


def test_calls_that_read_the_same_outputs_compile_once():
    net = Parts(PAIRS["sqrt"])
    net.hybridize()
    for _ in range(2):
        gradient(net, [0.0, 1.0], (0,))
    before = net._cached_op.num_rewritten
    for _ in range(5):
        gradient(net, [0.0, 1.0], (0,))
    assert net._cached_op.num_rewritten == before == 2


def test_python_code_in_a_block_runs_once_for_each_call():
    calls = []

    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            calls.append("forward")
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("twice_of_unread")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    net = Parts(lambda F, x: (F.Custom(x, op_type="twice_of_unread"), x + 1))
    net.hybridize()
    for call in range(1, 4):
        assert gradient(net, [1.0, 2.0], (0,)).tolist() == [4.0, 4.0]
        assert calls == ["forward"] * call
