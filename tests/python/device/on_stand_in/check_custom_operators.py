"""Operators written in Python get arrays on the GPU, imperatively and in graphs, and may launch own kernels."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon

GPU = mx.gpu(0)
KERNEL = mx.cuda.RawKernel(
    """
extern "C" __global__ void scale(const float* x, float* y, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}
""",
    "scale",
)
seen: list[mx.Context] = []


def scaled(x: mx.nd.NDArray, y: mx.nd.NDArray, factor: float) -> None:
    seen.append(x.context)
    if x.context == GPU:
        KERNEL((4,), (32,), (x, y, factor, x.size))
    else:
        y[:] = x * factor


class Scale(mx.operator.CustomOp):
    """Three times the data; counts its calls in an auxiliary state."""

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        scaled(in_data[0], out_data[0], 3.0)
        aux[0][:] = aux[0] + 1

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        scaled(out_grad[0], in_grad[0], 3.0)


@mx.operator.register("scale_on_gpu")
class ScaleProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self) -> list[str]:
        return ["calls"]

    def infer_shape(self, in_shape: Any) -> Any:
        return in_shape, [in_shape[0]], [(1,)]

    def create_operator(self, ctx: str, shapes: Any, dtypes: Any) -> Scale:
        return Scale()


class Net(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.calls = self.params.get("calls", shape=(1,), init="zeros", grad_req="null")

    def hybrid_forward(self, F: Any, x: Any, calls: Any) -> Any:
        return F.tanh(F.Custom(x * 0.5, calls, op_type="scale_on_gpu")) + 1


def run(ctx: mx.Context, **options: Any) -> list[np.ndarray]:
    net = Net()
    net.initialize(ctx=ctx)
    if options:
        net.hybridize(**options)
    values = np.random.default_rng(0).standard_normal((7, 13)).astype("float32")
    found = []
    for step in range(3):
        x = mx.nd.array(values + step, ctx=ctx)
        x.attach_grad()
        with autograd.record():
            y = net(x)
        y.backward()
        found += [y.asnumpy(), x.grad.asnumpy()]
    return [*found, net.calls.data().asnumpy()]


@pytest.mark.parametrize("options", [{}, {"active": True}, {"static_alloc": True, "static_shape": True}])
def test_graphs_give_arrays_of_the_gpu(options: dict[str, bool]) -> None:
    seen.clear()
    found = run(GPU, **options)
    assert set(seen) == {GPU}
    for value, expected in zip(found, run(mx.cpu(), **options), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert found[-1] == 3


def test_loops_call_the_operator_on_the_gpu() -> None:
    class Loop(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            out, _ = F.contrib.foreach(
                lambda row, total: (F.Custom(row, F.zeros((1,)), op_type="scale_on_gpu"), total + row), x, F.zeros((2,))
            )
            return out

    found = []
    for ctx in (GPU, mx.cpu()):
        net = Loop()
        net.hybridize()
        x = mx.nd.arange(6, ctx=ctx).reshape((3, 2))
        x.attach_grad()
        with ctx, autograd.record():
            y = net(x)
        y.backward()
        found.append((y.asnumpy(), x.grad.asnumpy()))
    for value, expected in zip(*found, strict=True):
        assert (value == expected).all()


def test_an_error_in_the_operator_names_it_and_the_next_call_works() -> None:
    net = Net()
    net.initialize(ctx=GPU)
    net.hybridize()
    x = mx.nd.ones((2, 3), ctx=GPU)
    net(x).wait_to_read()
    original, Scale.forward = Scale.forward, lambda *_, **__: 1 / 0
    try:
        with pytest.raises(ZeroDivisionError):
            net(x).wait_to_read()
    finally:
        Scale.forward = original
    np.testing.assert_allclose(net(x).asnumpy(), np.tanh(1.5) + 1, rtol=1e-6)


def test_arrays_without_elements() -> None:
    x = mx.nd.zeros((0, 3), ctx=GPU)
    with mx.util.np_shape(True):
        net = Net()
        net.initialize(ctx=GPU)
        net.hybridize()
        assert net(x).shape == (0, 3)
