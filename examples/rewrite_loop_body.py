"""A rule that fuses two operators in the body of a loop into a custom operator, and its effect on the graph.

    python examples/rewrite_loop_body.py

The pipeline applies the rule wherever the two operators are adjacent: here in the body of a foreach, forward only.
"""

from __future__ import annotations

import argparse

import hybridnet as mx
import numpy as np
from hybridnet import rewrite as rw


class ScaledTanh(mx.operator.CustomOp):
    """scale * tanh(x) in one step."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], self.scale * in_data[0].tanh())

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        tanh = out_data[0] / self.scale
        self.assign(in_grad[0], req[0], out_grad[0] * self.scale * (1 - tanh * tanh))


@mx.operator.register("scaled_tanh")
class ScaledTanhProp(mx.operator.CustomOpProp):
    def __init__(self, scale="1") -> None:
        super().__init__(need_top_grad=True)
        self.scale = float(scale)

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return ScaledTanh(self.scale)


class Net(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x, h):
        def step(row, state):
            state = 1.5 * F.tanh(row + state)
            return state, state

        return F.contrib.foreach(step, x, h)[0]


def result_and_gradient(net, x, h):
    x.attach_grad()
    with mx.autograd.record():
        out = net(x, h)
        (out * out).sum().backward()
    return out.asnumpy(), x.grad.asnumpy()


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    x, h = mx.nd.random.normal(shape=(5, 4)), mx.nd.zeros((4,))
    plain = Net()
    plain.hybridize()
    expected = result_and_gradient(plain, x, h)

    rw.register(
        rw.PatternSub(
            ("mul", ("tanh", "x"), rw.P.const(name="scale")),
            lambda graph, node, names: graph.add(
                "Custom", names["x"], op_type="scaled_tanh", open_attributes=f'{{"scale": "{names["scale"]}"}}'
            ),
            name="fuse_scaled_tanh",
            values="rounding",
        ),
        position=0.9,
    )
    net = Net()
    net.hybridize()
    for got, wanted in zip(result_and_gradient(net, x, h), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    report = net.pass_report().splitlines()
    place = next(number for number, line in enumerate(report) if line.strip().startswith("fuse_scaled_tanh"))
    print("\n".join(line.strip() for line in report[place : place + 2]))
    print("results and gradients agree")
    rw.unregister("fuse_scaled_tanh")


if __name__ == "__main__":
    main()
