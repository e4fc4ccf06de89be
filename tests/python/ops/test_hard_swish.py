"""hard_swish: its three pieces in every dtype, gradients, sparse storage, and its form for bytes."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from hybridnet.contrib import quantization

TOLERANCE = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
SPECIAL = np.array([-np.inf, np.inf, np.nan, -3.0, 3.0, -0.0, 0.0, -1e30, 1e30, -1.5, -2.99, 2.99])


def hard_swish(x):
    x = np.asarray(x, "float64")
    with np.errstate(invalid="ignore"):
        return np.where(x <= -3, 0, np.where(x >= 3, x, x * (x + 3) / 6))


def slope(x):
    return np.where(x <= -3, 0, np.where(x >= 3, 1, x / 3 + 0.5))


def drawn(dtype, rng):
    """Values in [-6, 6] as the dtype stores them."""
    return mx.nd.array(rng.uniform(-6, 6, (37, 11)), dtype=dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values_are_those_of_the_three_pieces(dtype, rng):
    x = drawn(dtype, rng)
    found = mx.nd.contrib.hard_swish(x)
    assert found.dtype == x.dtype
    expected = hard_swish(x.astype("float64").asnumpy())
    np.testing.assert_allclose(
        found.astype("float64").asnumpy(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_belong_to_a_piece(dtype):
    x = mx.nd.array(SPECIAL, dtype=dtype)
    found = mx.nd.contrib.hard_swish(x).asnumpy()
    np.testing.assert_allclose(found, hard_swish(SPECIAL), rtol=1e-6, equal_nan=True)
    assert found[0] == 0 and found[1] == np.inf and np.isnan(found[2])


@pytest.mark.parametrize("hybrid", [False, True])
def test_gradients_are_the_slopes_of_the_pieces(hybrid, rng):
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.contrib.hard_swish(x)

    net = Net()
    if hybrid:
        net.hybridize()
    x = mx.nd.array(np.concatenate([rng.uniform(-6, 6, 40), SPECIAL]), dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = net(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), slope(x.asnumpy()), rtol=1e-12, equal_nan=True)


def test_the_second_derivative_is_a_third_between_the_ends(rng):
    x = mx.nd.array(np.concatenate([rng.uniform(-6, 6, 40), [-np.inf, np.inf]]), dtype="float64")
    x.attach_grad()
    with autograd.record():
        first = autograd.grad(mx.nd.contrib.hard_swish(x), x, create_graph=True)[0]
    first.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.where(np.abs(x.asnumpy()) < 3, 1 / 3, 0), rtol=1e-12)


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_zeros_stay_unstored(stype, rng):
    values = rng.uniform(-6, 6, (5, 4)) * (rng.random((5, 4)) < 0.5)
    values[2] = 0
    found = mx.nd.contrib.hard_swish(mx.nd.array(values).tostype(stype))
    assert found.stype == stype
    np.testing.assert_allclose(found.asnumpy(), hard_swish(values), rtol=1e-5, atol=1e-6)


def test_mixed_precision_leaves_it_in_the_type_of_its_input():
    assert "_contrib_hard_swish" in mx.contrib.amp.list_lp16_fp32_ops("float16")


# --- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reach", [0.5, 1.4, 2.0, 3.0, 8.0, 100.0])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_each_byte_becomes_the_nearest_step(dtype, reach):
    info = np.iinfo(dtype)
    data = mx.nd.array(np.arange(info.min, info.max + 1), dtype=dtype)
    low, high = mx.nd.array([0.0 if dtype == "uint8" else -reach]), mx.nd.array([reach])
    found, found_low, found_high = mx.nd.contrib.quantized_hard_swish(data, low, high)
    assert found.dtype == np.dtype(dtype)
    floats = mx.nd.contrib.dequantize(data, low, high).asnumpy()
    expected = hard_swish(floats)
    step = max(abs(found_low.asscalar()), abs(found_high.asscalar())) / (255.5 if dtype == "uint8" else 127.5)
    differences = mx.nd.contrib.dequantize(found, found_low, found_high).asnumpy() - expected
    assert np.abs(differences).max() <= step
    inside = expected[np.abs(floats) <= reach]
    assert found_low.asscalar() <= inside.min() + 1e-6
    assert inside.max() <= found_high.asscalar() + 1e-6


def test_quantized_networks_compute_it_on_bytes(rng):
    data = mx.sym.var("data")
    hidden = mx.sym.contrib.hard_swish(mx.sym.FullyConnected(data, num_hidden=16, name="fc0"), name="swish")
    symbol = mx.sym.FullyConnected(hidden, num_hidden=4, name="fc1")
    shapes, _, _ = symbol.infer_shape(data=(32, 8))
    args = {
        name: mx.nd.array(rng.normal(size=shape))
        for name, shape in zip(symbol.list_arguments(), shapes, strict=True)
        if name != "data"
    }
    values = rng.normal(size=(32, 8)).astype("float32")
    batches = mx.io.NDArrayIter(mx.nd.array(values), batch_size=8)
    graph, quantized_args, _ = quantization.quantize_model(
        symbol, args, {}, label_names=None, calib_mode="naive", calib_data=batches, quantized_dtype="int8"
    )
    assert '"_contrib_quantized_hard_swish"' in graph.tojson()
    expected = symbol.bind(mx.cpu(), {**args, "data": mx.nd.array(values)}).forward()[0].asnumpy()
    found = graph.bind(mx.cpu(), {**quantized_args, "data": mx.nd.array(values)}).forward()[0].asnumpy()
    assert np.abs(found - expected).max() < 0.1 * np.abs(expected).max()
