"""Methods of NumPy's arrays: std, var, round(), and the display in notebooks."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": (0, 2)}, {"axis": -1, "keepdims": True}, {"ddof": 1}])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_spread_is_that_of_numpy(name, options, dtype, rng):
    values = rng.integers(-9, 9, size=(3, 4, 5)).astype(dtype)
    found = getattr(mx.nd.array(values, dtype=dtype), name)(**options)
    expected = getattr(values.astype("float64"), name)(**options)
    assert found.dtype == np.dtype("float32" if dtype == "int32" else dtype)
    np.testing.assert_allclose(found.asnumpy().reshape(expected.shape), expected, rtol=1e-5)


def test_spread_takes_a_type_and_an_array_to_fill():
    x = mx.nd.array([1, 2, 3, 6])
    assert x.var(dtype="float64").dtype == np.float64
    out = mx.nd.zeros((1,))
    assert x.std(out=out) is out
    np.testing.assert_allclose(out.asnumpy(), [np.std([1, 2, 3, 6])], rtol=1e-6)


def test_spread_has_a_gradient():
    x = mx.nd.array([1.0, 2.0, 6.0])
    x.attach_grad()
    with autograd.record():
        y = x.var()
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [-4 / 3, -2 / 3, 2], rtol=1e-6)


def test_round_rounds_halves_away_from_zero_as_nd_round_does():
    x = mx.nd.array([0.5, 1.5, -2.5, 2.4])
    assert round(x).asnumpy().tolist() == x.round().asnumpy().tolist() == [1, 2, -3, 2]
    np.testing.assert_allclose(round(mx.nd.array([1.236, -1.234]), 2).asnumpy(), [1.24, -1.23], rtol=1e-6)


def test_notebooks_show_the_text_of_an_array_escaped():
    shown = mx.nd.array([1, 2])._repr_html_()
    assert shown.startswith("<pre>[1. 2.]") and "&lt;NDArray 2 @cpu(0)&gt;</pre>" in shown


DRAWS = ["uniform", "normal", "gamma", "exponential", "poisson", "negative_binomial", "generalized_negative_binomial"]


@pytest.mark.parametrize("name", DRAWS)
def test_draws_like_an_array_have_its_shape_and_type(name):
    drawn = getattr(mx.nd.random, name)(data=mx.nd.zeros((2, 3), dtype="float64"))
    assert drawn.shape == (2, 3) and drawn.dtype == np.float64


def test_draws_like_an_array_take_parameters_in_blocks_too():
    class Noise(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.random.normal(loc=5, scale=0.001, data=x)

    net = Noise()
    net.hybridize()
    for shape in ((2, 3), (4, 1)):
        drawn = net(mx.nd.ones(shape)).asnumpy()
        assert drawn.shape == shape and abs(drawn - 5).max() < 0.1


def test_draws_like_an_array_take_no_other_shape():
    with pytest.raises(ValueError, match="give data, whose shape the result has"):
        mx.nd.random.normal(data=mx.nd.ones((2,)), shape=(2,))
    assert mx.nd.random.normal(data=mx.nd.ones((2,)), dtype="float64").dtype == np.float64
