"""NumpyOp and NDArrayOp: MXNet's first interface for operators in Python."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def softmax_code(base, exp):
    class Softmax(base):
        """A loss whose gradient is the prediction minus the label."""

        def __init__(self):
            super().__init__(need_top_grad=False)

        def list_arguments(self):
            return ["data", "label"]

        def infer_shape(self, in_shape):
            return [in_shape[0], in_shape[0]], [in_shape[0]]

        def forward(self, in_data, out_data):
            raised = exp(in_data[0])
            out_data[0][:] = raised / raised.sum(axis=1).reshape((-1, 1))

        def backward(self, out_grad, in_data, out_data, in_grad):
            in_grad[0][:] = out_data[0] - in_data[1]

    return Softmax


KINDS = {"numpy": (mx.operator.NumpyOp, np.exp), "ndarray": (mx.operator.NDArrayOp, mx.nd.exp)}


@pytest.mark.parametrize("kind", KINDS)
def test_operators_run_and_give_their_own_gradient(kind, rng):
    node = softmax_code(*KINDS[kind])()(data=mx.sym.var("x") * 2, name="loss")
    assert node.list_arguments() == ["x", "loss_label"]
    x, label = rng.normal(size=(3, 4)).astype("f"), np.eye(4, dtype="f")[:3]
    executor = node.simple_bind(mx.cpu(), x=(3, 4))
    executor.arg_dict["loss_label"][:] = label
    (out,) = executor.forward(is_train=True, x=x)
    expected = np.exp(2 * x) / np.exp(2 * x).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-5)
    executor.backward()
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), 2 * (expected - label), rtol=1e-4, atol=1e-6)


def test_the_default_copies_its_input_and_has_gradient_one():
    executor = mx.operator.NumpyOp().get_symbol(mx.sym.var("x")).simple_bind(mx.cpu(), x=(2, 2))
    (out,) = executor.forward(is_train=True, x=np.full((2, 2), 3.0))
    executor.backward([mx.nd.full((2, 2), 5)])
    assert (out.asnumpy() == 3).all()
    assert (executor.grad_dict["x"].asnumpy() == 1).all()


def test_it_says_that_there_is_something_newer():
    with pytest.warns(DeprecationWarning, match="CustomOp"):
        mx.operator.NDArrayOp()
