"""C++ kernels and operators written in Python give the same results in one plan."""

from __future__ import annotations

import hybridnet as mx
import numpy as np


class Square(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


@mx.operator.register("row8_square")
class SquareProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Square()


def test_both_kinds_in_one_plan_agree():
    x = mx.sym.var("x")
    inner = mx.sym.tanh(x) + 1
    f = mx.function([x], [mx.sym.Custom(inner, op_type="row8_square") * 2, mx.sym.square(inner) * 2])
    data = mx.nd.array(np.random.RandomState(8).randn(4, 5))
    data.attach_grad()
    gradients = []
    for which in (0, 1):
        with mx.autograd.record():
            out = f(data)[which]
        out.backward()
        gradients.append(data.grad.asnumpy())
    python, native = f(data)
    np.testing.assert_allclose(python.asnumpy(), native.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-5)
    text = f.plan_text()
    assert "Custom" in text
    assert "square" in text or "_fused_elementwise" in text
