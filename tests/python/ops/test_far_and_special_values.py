"""Elementwise functions far from 0 and at NaN, infinities and other special values."""

import hybridnet as mx
import numpy as np
import pytest


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_softsign_keep_their_digits_far_from_0(dtype, hybrid):
    net = Function(lambda F, x: F.softsign(x))
    if hybrid:
        net.hybridize()
    values = np.array([-1e8, -1e4, -1.5, 0.0, 0.25, 1e3, 1e6, 1e12], dtype)
    x = mx.nd.array(values, dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward()
    expected = 1 / (1 + np.abs(values.astype("float64"))) ** 2
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-6)


class Function(mx.gluon.HybridBlock):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, x):
        return self.function(F, x)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_half_powers_of_infinities_and_zeros_are_those_of_pow(dtype, hybrid):
    net = Function(lambda F, x: x**0.5)
    if hybrid:
        net.hybridize()
    values = np.array([-np.inf, -0.0, 0.0, np.inf, 4.0, 2.25, -4.0, np.nan] * 5)
    found = net(mx.nd.array(values, dtype=dtype)).astype("float64").asnumpy()
    expected = np.array([np.inf, 0.0, 0.0, np.inf, 2.0, 1.5, np.nan, np.nan] * 5)
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[found == 0]).any()


ROUNDED = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "fix": np.fix,
    "rint": lambda x: np.ceil(x - 0.5),  # halves round down, as in MXNet
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_keeps_the_signs_of_zeros(name, dtype):
    x = np.array([-0.0, 0.0, -0.25, 0.25, -0.75, 0.75, -1.5, 2.25, np.inf, -np.inf] * 3, dtype)
    wanted = np.copysign(ROUNDED[name](x), x)
    given = mx.nd.array(x, dtype=dtype)
    net = mx.gluon.nn.HybridLambda(lambda F, x: getattr(F, name)(x))
    net.hybridize()
    for found in (getattr(mx.nd, name)(given).asnumpy(), net(given).asnumpy()):
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
