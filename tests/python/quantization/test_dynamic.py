"""Dense layers that round their data to bytes agree with the products of the rounded rows in float64, in every mode."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib import quantization
from hybridnet.errors import DTypeError, ShapeError
from hybridnet.errors import ValueError as HybridNetValueError
from hybridnet.gluon import HybridBlock, SymbolBlock, nn
from smaller_isas import ISAS, run_again

UNIT = 2.0**-24  # the largest relative error of one operation in float32
TINY = np.finfo("float32").tiny


def _grids(x):
    """Step and zero point of each row: (rows, 1), float32."""
    low, high = np.minimum(x.min(1, keepdims=True), 0), np.maximum(x.max(1, keepdims=True), 0)
    step = np.maximum(high / np.float32(255) - low / np.float32(255), TINY)
    return step, np.rint(-low * (np.float32(1) / step))


def _rounded(x):
    step, zero = _grids(x)
    return (np.clip(np.rint(x * (np.float32(1) / step)) + zero, 0, 255) - zero).astype("float64") * step


def _operands(rng, rows, depth, hidden, bias=True):
    x = (rng.normal(size=(rows, depth)) + rng.normal(size=(rows, 1)) * 2).astype("float32")
    w = rng.integers(-128, 128, (hidden, depth)).astype("int8")
    scale = rng.uniform(0.001, 0.1, hidden).astype("float32")
    return x, w, scale, rng.normal(size=hidden).astype("float32") if bias else None


def _dense(x, w, scale, b):
    arrays = [mx.nd.array(a, dtype=a.dtype) for a in (x, w, scale, b) if a is not None]
    hidden = {"num_hidden": len(w), "no_bias": b is None, "flatten": False}
    return mx.nd.contrib.dynamic_quantized_fully_connected(*arrays, **hidden).asnumpy()


def _assert_near(out, x, w, scale, b):
    """The sums are exact: only the steps, the scales and the bias round, each once."""
    product = _rounded(x) @ (w.astype("float64") * scale.astype("float64")[:, None]).T
    exact = product + (0 if b is None else b)
    assert out.shape == exact.shape
    assert (np.abs(out - exact) <= 4 * UNIT * np.abs(product) + UNIT * np.abs(exact)).all()


SIZES = [(1, 768, 80), (2, 513, 65), (3, 7, 1), (8, 1024, 33), (13, 31, 16), (20, 192, 48), (49, 130, 129)]
SIZES += [(100, 64, 200), (128, 256, 96), (145, 196, 60)]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_products_agree_with_the_rounded_rows_in_float64(size, bias, rng):
    operands = _operands(rng, *size, bias)
    _assert_near(_dense(*operands), *operands)


def test_sums_of_the_largest_bytes_are_exact():
    x, scale = np.full((2, 65536), 1.0, "float32"), np.ones(2, "float32")
    x[1] = -1.0
    w = np.stack([np.full(65536, 127), np.full(65536, -128)]).astype("int8")
    _assert_near(_dense(x, w, scale, None), x, w, scale, None)


def test_rounding_costs_at_most_half_a_step_of_each_row(rng):
    x, w, scale, _ = _operands(rng, 9, 300, 40, False)
    x *= 10.0 ** np.arange(-4, 5, dtype="float32")[:, None]  # rows do not share a grid
    wide = w.astype("float64") * scale.astype("float64")[:, None]
    bound = _grids(x)[0].astype("float64") * 0.5001 * np.abs(wide).sum(1)
    error = np.abs(_dense(x, w, scale, None) - x.astype("float64") @ wide.T)
    assert (error <= bound).all()
    assert (error.max(1) > bound.max(1) / 1000).all()  # the data was rounded


@pytest.mark.parametrize("depth", [64, 70])
def test_a_row_has_the_same_bits_in_every_batch(depth, rng):
    x, w, scale, b = _operands(rng, 60, depth, 90)
    whole = _dense(x, w, scale, b)
    for rows in (1, 2, 5, 7, 12, 16, 23, 32, 50):
        np.testing.assert_array_equal(_dense(x[:rows], w, scale, b), whole[:rows])


@pytest.mark.parametrize("rows", [1, 8, 20])
@pytest.mark.parametrize("place", [0, 3, 65])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_gives_nan_and_others_stay(rows, place, bad, rng):
    x, w, scale, b = _operands(rng, rows, 66, 37)
    clean = _dense(x, w, scale, b)
    x[-1, place] = bad
    out = _dense(x, w, scale, b)
    assert np.isnan(out[-1]).all()
    np.testing.assert_array_equal(out[:-1], clean[:-1])


def test_rows_of_zeros_and_the_ends_of_floats():
    most = np.finfo("float32").max / np.float32(1.01)  # rounding may add half a step
    x = np.array([[0, 0, 0], [-0.0, 0, 0], [most, -most, 0], [TINY, 0, TINY / 4], [1e-45, 0, 0]], "float32")
    w, scale, b = np.eye(3, dtype="int8"), np.ones(3, "float32"), np.zeros(3, "float32")
    out = _dense(x, w, scale, b)
    np.testing.assert_array_equal(out[:2], 0)
    np.testing.assert_allclose(out[2], [most, -most, 0], rtol=0.005)
    np.testing.assert_array_equal(out[3], [TINY, 0, 0])  # the smallest step is TINY
    np.testing.assert_array_equal(out[4], 0)


def test_sizes_of_zero_give_empty_results_or_the_bias():
    scale, b = np.array([1, 2], "float32"), np.array([3, 4], "float32")
    assert _dense(np.zeros((0, 5), "float32"), np.ones((2, 5), "int8"), scale, b).shape == (0, 2)
    out = _dense(np.zeros((3, 0), "float32"), np.ones((2, 0), "int8"), scale, b)
    np.testing.assert_array_equal(out, [[3, 4]] * 3)


def test_other_dtypes_and_shapes_are_refused(rng):
    x, w, scale, b = _operands(rng, 2, 4, 3)
    with pytest.raises(DTypeError, match="weight"):
        _dense(x, w.astype("uint8"), scale, b)
    with pytest.raises(DTypeError, match="data"):
        _dense(x.astype("float64"), w, scale, b)
    with pytest.raises(ShapeError, match="scale"):
        _dense(x, w, scale[:1], b)
    with pytest.raises(ShapeError, match="65536 features"):
        _dense(np.zeros((1, 65537), "float32"), np.zeros((1, 65537), "int8"), scale[:1], b[:1])


class _Net(HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embed = nn.Embedding(30, 20)
        self.grow = nn.Dense(70, flatten=False, in_units=20, activation="relu")
        self.shrink = nn.Dense(20, flatten=False, in_units=70)
        self.head = nn.Dense(30, flatten=False, use_bias=False, in_units=20, params=self.embed.params)

    def hybrid_forward(self, F, words):
        x = self.embed(words)
        return self.head(x + self.shrink(self.grow(x)))


@pytest.fixture
def net():
    made = _Net()
    made.initialize(mx.init.Normal(0.3))
    made.hybridize()
    return made


def _quantized(net, **options):
    return quantization.quantize_net(net, data_shapes=[(1, 1)], mode="dynamic", **options)


def _expected(net, small, words):
    values = {name: value.data().asnumpy() for name, value in small.collect_params().items()}

    def weight(layer):
        name = f"{layer.weight.name}_quantize"
        return values[name] * values[f"{name}_scale"].astype("float64")[:, None]

    def dense(layer, x):
        bias = 0 if layer.bias is None else layer.bias.data().asnumpy()
        return (_rounded(x) @ weight(layer).T + bias).astype("float32")

    x = weight(net.embed)[words].astype("float32")
    return dense(net.head, x + dense(net.shrink, np.maximum(dense(net.grow, x), 0)))


@pytest.mark.parametrize("mode", ["imperative", "hybrid", "exported"])
@pytest.mark.parametrize("batch", [1, 8, 70])
def test_a_network_computes_with_rounded_data_and_weights(net, batch, mode, rng, tmp_path):
    words = rng.integers(0, 30, (batch,))
    small = _quantized(net)
    expected = _expected(net, small, words)
    if mode == "exported":
        graph, parameters = small.export(str(tmp_path / "net"))
        small = SymbolBlock.imports(graph, ["data"], parameters)
    small.hybridize(mode != "imperative")
    for _ in range(2):
        out = small(mx.nd.array(words.reshape(batch, 1))).asnumpy()[:, 0]
        # A float next to the middle of two bytes may round to the other one: a step of one element.
        np.testing.assert_allclose(out, expected, atol=0.02 * np.abs(expected).max())
        assert np.median(np.abs(out - expected)) < 1e-5 * np.abs(expected).max()


def test_activations_and_sums_are_the_ends_of_the_products(net):
    small = _quantized(net)
    small.hybridize(static_alloc=True)
    small(mx.nd.zeros((2, 1)))
    text = small.plan_text()
    assert text.count("_fused_dynamic_quantized_fully_connected") == 2, text
    assert text.count("byte product of rounded rows") >= 3, text


def test_weights_are_stored_once_and_in_bytes(net):
    values = {name: p.data() for name, p in _quantized(net).collect_params().items()}
    assert sum(value.dtype == np.int8 for value in values.values()) == 3  # the embedding and the head share one
    assert sum(value.size for value in values.values() if value.dtype != np.int8) == 30 + 70 + 20 + 70 + 20


def test_arguments_of_calibration_are_refused(net):
    with pytest.raises(HybridNetValueError, match=r"calib_mode(.|\n)*mode='dynamic'"):
        _quantized(net, calib_mode="naive")


@pytest.mark.parametrize("isa", ISAS)
def test_smaller_instruction_sets_give_the_same(isa):
    run_again(__file__, isa)
