"""A lazy operator requests its inputs one by one: if it requests input 1 only, the producers of input 0 do not run."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
from hybridnet import gluon, nd, test_utils


class Second(mx.operator.CustomOp):
    """Returns its second input and never requests the first."""

    def lazy_step(self, is_train, req, in_data, out_data, aux):
        if in_data[1] is None:
            return [1]
        assert in_data[0] is None
        self.assign(out_data[0], req[0], in_data[1])
        return []


@mx.operator.register("second_of_row_4")
class SecondProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(lazy=True)

    def list_arguments(self):
        return ["first", "second"]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Second()


class Net(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.Custom(F.dot(x, x).exp(), x.sin(), op_type="second_of_row_4")


def test_producers_of_the_first_input_do_not_run() -> None:
    net = Net()
    net.hybridize(strict=True)
    x = nd.array(np.eye(3))
    net(x)
    with test_utils.exec_counts() as ran:
        out = net(x)
    np.testing.assert_allclose(out.asnumpy(), np.sin(np.eye(3)), rtol=1e-6)
    operators = [op for op, _ in ran]
    assert "sin" in operators
    assert "dot" not in operators
    assert "exp" not in operators
