"""Layers of floats with weights of bytes agree with products of the rounded weights in float64, in every mode."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import quantization
from hybridnet.errors import DTypeError, ShapeError
from hybridnet.errors import ValueError as HybridNetValueError
from hybridnet.gluon import HybridBlock, SymbolBlock, nn
from smaller_isas import ISAS, run_again

# Sums in float32: each addition rounds by at most 2^-24 of the sum of absolute products.
UNIT = 2.0**-24


def _operands(rng, rows, depth, hidden, bias=True):
    x = rng.normal(size=(rows, depth)).astype("float32")
    w = rng.integers(-127, 128, (hidden, depth)).astype("int8")
    scale = rng.uniform(0.001, 0.1, hidden).astype("float32")
    b = rng.normal(size=hidden).astype("float32") if bias else None
    return x, w, scale, b


def _assert_near(out, x, w, scale, b):
    """Compares with float64, within the bound of sums in float32 for any order of the terms."""
    wide = w.astype("float64") * scale.astype("float64")[:, None]
    exact = x.astype("float64") @ wide.T
    size = np.abs(x.astype("float64")) @ np.abs(wide).T
    if b is not None:
        exact, size = exact + b, size + np.abs(b)
    assert out.shape == exact.shape
    assert (np.abs(out - exact) <= (x.shape[1] + 4) * UNIT * size).all()


def _dense(F, x, w, scale, b, hidden):
    return F.contrib.weight_only_fully_connected(x, w, scale, b, num_hidden=hidden, no_bias=b is None, flatten=False)


SIZES = [(1, 768, 80), (2, 513, 65), (3, 7, 1), (8, 1024, 33), (13, 31, 16), (49, 130, 129), (100, 64, 200)]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_products_agree_with_float64(size, bias, rng):
    x, w, scale, b = _operands(rng, *size, bias)
    arrays = [mx.nd.array(a, dtype=a.dtype) if a is not None else None for a in (x, w, scale, b)]
    _assert_near(_dense(mx.nd, *arrays, size[2]).asnumpy(), x, w, scale, b)


@pytest.mark.parametrize("depth", [64, 70])
def test_a_row_has_the_same_bits_in_every_batch(depth, rng):
    x, w, scale, b = _operands(rng, 60, depth, 90)
    arrays = [mx.nd.array(a, dtype=a.dtype) for a in (w, scale, b)]
    whole = _dense(mx.nd, mx.nd.array(x), *arrays, 90).asnumpy()
    for rows in (1, 2, 5, 7, 12, 50):
        part = _dense(mx.nd, mx.nd.array(x[:rows]), *arrays, 90).asnumpy()
        np.testing.assert_array_equal(part, whole[:rows])


@pytest.mark.parametrize("rows", [1, 8, 20])
def test_nan_and_infinities_reach_their_rows_only(rows, rng):
    x, w, scale, b = _operands(rng, rows, 66, 37)
    w[w == 0] = 1
    clean = x.copy()
    x[0, 65], x[-1, 3] = np.nan, np.inf
    arrays = [mx.nd.array(a, dtype=a.dtype) for a in (w, scale, b)]
    out = _dense(mx.nd, mx.nd.array(x), *arrays, 37).asnumpy()
    assert np.isnan(out[0]).all()
    if rows > 1:
        np.testing.assert_array_equal(out[-1], np.where(w[:, 3] > 0, np.inf, -np.inf))
        np.testing.assert_array_equal(out[1:-1], _dense(mx.nd, mx.nd.array(clean), *arrays, 37).asnumpy()[1:-1])


def test_sizes_of_zero_give_empty_results_or_the_bias():
    scale, b = mx.nd.array([1.0, 2.0]), mx.nd.array([3.0, 4.0])
    none = _dense(mx.nd, mx.nd.zeros((0, 5)), mx.nd.ones((2, 5), dtype="int8"), scale, b, 2)
    assert none.shape == (0, 2)
    out = _dense(mx.nd, mx.nd.zeros((3, 0)), mx.nd.ones((2, 0), dtype="int8"), scale, b, 2)
    np.testing.assert_array_equal(out.asnumpy(), [[3.0, 4.0]] * 3)


def test_other_dtypes_and_shapes_are_refused(rng):
    x, w, scale, b = (mx.nd.array(a, dtype=a.dtype) for a in _operands(rng, 2, 4, 3))
    with pytest.raises(DTypeError, match="weight"):
        _dense(mx.nd, x, w.astype("uint8"), scale, b, 3)
    with pytest.raises(DTypeError, match="data"):
        _dense(mx.nd, x.astype("float64"), w, scale, b, 3)
    with pytest.raises(ShapeError, match="scale"):
        _dense(mx.nd, x, w, mx.nd.ones((1,)), b, 3)


class _Decoder(HybridBlock):
    """An embedding whose matrix is also that of the last layer, as in language models."""

    def __init__(self, words=300, units=64):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(words, units)
        self.grow = nn.Dense(4 * units, flatten=False, in_units=units)
        self.shrink = nn.Dense(units, flatten=False, use_bias=False, in_units=4 * units)
        self.head = nn.Dense(words, flatten=False, use_bias=False, in_units=units, params=self.embed.params)

    def hybrid_forward(self, F, tokens):
        x = self.embed(tokens)
        x = x + self.shrink(F.Activation(self.grow(x), act_type="relu"))
        return self.head(x)


@pytest.fixture
def decoder():
    net = _Decoder()
    net.initialize(mx.init.Normal(0.1))
    net.hybridize()
    return net


def _rounded(value):
    floats = value.asnumpy().astype("float64")
    step = (np.abs(value.asnumpy()).max(axis=1) / np.float32(127)).astype("float32").astype("float64")[:, None]
    return np.rint(floats / step) * step


def _expected(net, tokens):
    embed, grow, shrink = (_rounded(layer.weight.data()) for layer in (net.embed, net.grow, net.shrink))
    x = embed[tokens]
    hidden = np.maximum(x @ grow.T + net.grow.bias.data().asnumpy(), 0)
    return (x + hidden @ shrink.T) @ embed.T


@pytest.mark.parametrize("mode", ["imperative", "hybrid", "exported"])
@pytest.mark.parametrize("batch", [1, 8, 70])
def test_a_decoder_with_weights_of_bytes_computes_with_the_rounded_weights(decoder, batch, mode, rng, tmp_path):
    tokens = rng.integers(0, 300, (batch, 1))
    net = quantization.quantize_net(decoder, data_shapes=[(1, 1)], mode="weights")
    data = mx.nd.array(tokens)
    if mode == "exported":
        graph, parameters = net.export(str(tmp_path / "decoder"))
        net = SymbolBlock.imports(graph, ["data"], parameters)
    net.hybridize(mode != "imperative")
    for _ in range(2):
        out = net(data).asnumpy()
        np.testing.assert_allclose(out, _expected(decoder, tokens), rtol=1e-5, atol=1e-5)


def test_every_weight_is_stored_once_and_in_bytes(decoder):
    net = quantization.quantize_net(decoder, data_shapes=[(1, 1)], mode="weights")
    values = {name: p.data() for name, p in net.collect_params().items()}
    bytes_ = [name for name, value in values.items() if value.dtype == np.int8]
    assert len(bytes_) == 3  # the embedding and the head share one
    floats = sum(value.size for value in values.values() if value.dtype != np.int8)
    assert floats == 300 + 256 + 64 + 256  # the scales and one bias


def test_excluded_layers_keep_their_floats(decoder):
    named = quantization.quantize_net(
        decoder, data_shapes=[(1, 1)], mode="weights", exclude_layers_match=[decoder.grow.name]
    )
    names = list(named.collect_params())
    assert sum(name.endswith("_quantize") for name in names) == 2
    only = quantization.quantize_net(
        decoder, data_shapes=[(1, 1)], mode="weights", exclude_operators=["FullyConnected"]
    )
    assert sum(name.endswith("_quantize") for name in only.collect_params()) == 1


def test_rows_of_zeros_stay_zero(decoder):
    weight = decoder.shrink.weight
    values = weight.data().asnumpy().copy()
    values[5] = 0
    weight.set_data(mx.nd.array(values))
    net = quantization.quantize_net(decoder, data_shapes=[(1, 1)], mode="weights")
    assert np.isfinite(net(mx.nd.array([[7]])).asnumpy()).all()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "weight"}, "mode"),
        ({"calib_mode": "naive"}, "calib_mode"),
        ({"quantized_dtype": "uint8"}, "quantized_dtype"),
        ({"quantize_mode": "smart"}, "quantize_mode"),
        ({"num_calib_examples": 3}, "num_calib_examples"),
    ],
)
def test_arguments_without_a_use_are_refused(decoder, options, text):
    with pytest.raises(HybridNetValueError, match=text):
        quantization.quantize_net(decoder, data_shapes=[(1, 1)], **{"mode": "weights", **options})


def test_weights_that_are_not_finite_are_refused_by_name(decoder):
    values = decoder.grow.weight.data().asnumpy().copy()
    values[9, 1] = np.nan
    decoder.grow.weight.set_data(mx.nd.array(values))
    with pytest.raises(HybridNetValueError, match=r"weight.*row 9"):
        quantization.quantize_net(decoder, data_shapes=[(1, 1)], mode="weights")


@pytest.mark.parametrize("isa", ISAS)
def test_smaller_instruction_sets_give_the_same(isa):
    run_again(__file__, isa)
