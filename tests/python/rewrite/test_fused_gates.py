"""x * sigmoid(x), and gelu by tanh, run as one activation, which layers fuse."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn

from rewrite.graphs import Function

ROOT = 0.7978845608028654


GELU_TANH = {
    "power": lambda F, x: 0.5 * x * (1 + F.tanh(ROOT * (x + 0.044715 * x**3))),
    "products": lambda F, x: x * (F.tanh((x + x * x * x * 0.044715) * ROOT) + 1) * 0.5,
    "taken out": lambda F, x: 0.5 * x * (1 + F.tanh(ROOT * x * (1 + 0.044715 * F.square(x)))),
    "activation": lambda F, x: 0.5 * x * (1 + F.Activation(ROOT * (x + 0.044715 * x**3), act_type="tanh")),
}
SILU = {
    "product": lambda F, x: x * F.sigmoid(x),
    "activation": lambda F, x: F.Activation(x, act_type="sigmoid") * x,
}
FORMS = {**{("_gelu_tanh", k): f for k, f in GELU_TANH.items()}, **{("_silu", k): f for k, f in SILU.items()}}


def _value_and_slope(net: gluon.HybridBlock, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    data = mx.nd.array(x, dtype=x.dtype)
    data.attach_grad()
    with autograd.record():
        out = net(data)
    out.backward()
    return out.asnumpy(), data.grad.asnumpy()


def _expected(op: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if op == "_silu":
        gate = 1 / (1 + np.exp(-x))
        return x * gate, gate * (1 + x * (1 - gate))
    bent = np.tanh(ROOT * (x + 0.044715 * x**3))
    return x / 2 * (1 + bent), (1 + bent) / 2 + x / 2 * (1 - bent**2) * ROOT * (1 + 3 * 0.044715 * x**2)


@pytest.mark.parametrize(("op", "form"), FORMS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-6)])
def test_every_form_is_one_operator_with_the_right_slope(op, form, dtype, tolerance):
    x = np.linspace(-12, 12, 301).astype(dtype)
    net = Function(FORMS[op, form])
    net.hybridize()
    out, slope = _value_and_slope(net, x)
    net(mx.nd.array(x, dtype=dtype))
    assert f" {op} " in net.plan_text() and "tanh " not in net.plan_text().replace(op, "")
    for got, expected in zip((out, slope), _expected(op, x.astype("float64")), strict=True):
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("op", ["_gelu_tanh", "_silu"])
def test_far_from_zero_the_slope_is_zero_or_one(op):
    x = np.array([-1e30, -200, -100, 100, 200, 1e30], "float32")
    net = Function(FORMS[op, "product" if op == "_silu" else "taken out"])
    net.hybridize()
    out, slope = _value_and_slope(net, x)
    np.testing.assert_array_equal(slope, [0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(out, np.maximum(x, 0), atol=1e-30)


@pytest.mark.parametrize("op", ["_gelu_tanh", "_silu"])
def test_a_layer_takes_the_activation_along(op, rng):
    function = FORMS[op, "activation"]

    class Layer(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(8, in_units=16)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return function(F, self.dense(x))

    net = Layer()
    net.initialize(mx.init.Normal(1))
    data = mx.nd.array(rng.normal(size=(4, 16)))
    apart = net(data).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(data).asnumpy(), apart, rtol=2e-5, atol=1e-5)
    assert "_fused_fully_connected" in net.plan_text() and f" {op} " not in net.plan_text()


LEFT_ALONE = {
    "other factor": lambda F, x: 0.5 * x * (1 + F.tanh(ROOT * (x + 0.05 * x**3))),
    "with erf": lambda F, x: 0.5 * x * (1 + F.erf(x * 0.7071067811865476)),
    "scaled gate": lambda F, x: x * F.sigmoid(1.702 * x),
    "other gate": lambda F, x: x * F.sigmoid(x + 1),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_other_functions_stay_themselves(case, rng):
    x = mx.nd.array(rng.normal(size=(3, 4)))
    net = Function(LEFT_ALONE[case])
    expected = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert "_silu" not in net.plan_text() and "_gelu_tanh" not in net.plan_text()
