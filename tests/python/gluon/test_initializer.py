"""Initializers: distributions, rules by name, JSON, errors."""

from __future__ import annotations

import math

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import init


def fill(initializer, shape, name="fc_weight", dtype="float32", attrs=None):
    array = mx.nd.full(shape, 9.0, dtype=dtype)
    initializer(init.InitDesc(name, attrs), array)
    return array.asnumpy()


def test_uniform_and_normal_have_their_spread(rng):
    values = fill(init.Uniform(0.5), (200, 200))
    assert np.abs(values).max() <= 0.5
    assert values.std() == pytest.approx(0.5 / math.sqrt(3), rel=0.02)
    values = fill(init.Normal(0.3), (200, 200))
    assert values.std() == pytest.approx(0.3, rel=0.02)
    assert values.mean() == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("factor_type", ["avg", "in", "out"])
@pytest.mark.parametrize("rnd_type", ["uniform", "gaussian"])
def test_xavier_scales_by_fans(factor_type, rnd_type, rng):
    shape = (64, 32, 5, 5)
    fan_in, fan_out = 32 * 25, 64 * 25
    factor = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}[factor_type]
    values = fill(init.Xavier(rnd_type, factor_type, 3), shape)
    scale = math.sqrt(3 / factor)
    expected = scale / math.sqrt(3) if rnd_type == "uniform" else scale
    assert values.std() == pytest.approx(expected, rel=0.03)


def test_msra_is_xavier_for_rectifiers(rng):
    values = fill(init.MSRAPrelu("in", 0.5), (200, 300))
    assert values.std() == pytest.approx(math.sqrt(2 / 1.25 / 300), rel=0.03)


@pytest.mark.parametrize("rand_type", ["uniform", "normal"])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
def test_orthogonal_rows_or_columns(rand_type, shape, rng):
    matrix = fill(init.Orthogonal(2.0, rand_type), shape).reshape(shape[0], -1)
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-4)


def test_constants_and_arrays():
    assert (fill(init.Zero(), (2, 3)) == 0).all()
    assert (fill(init.One(), (2, 3)) == 1).all()
    assert (fill(init.Constant(2.5), (2,)) == 2.5).all()
    array = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(fill(init.Constant(mx.nd.array(array)), (2, 3)), array)


def test_bilinear_and_lstm_bias():
    kernel = fill(init.Bilinear(), (1, 1, 4, 4))[0, 0]
    row = np.array([0.25, 0.75, 0.75, 0.25])
    np.testing.assert_allclose(kernel, np.outer(row, row), rtol=1e-6)
    bias = fill(init.LSTMBias(2.0), (8,))
    assert bias.tolist() == [0, 0, 2, 2, 0, 0, 0, 0]


@pytest.mark.parametrize(("name", "value"), [("a_bias", 0), ("a_gamma", 1), ("a_beta", 0), ("a_min", 0), ("a_max", 1)])
def test_endings_of_names_decide(name, value):
    assert (fill(init.Uniform(), (3,), name) == value).all()


def test_unknown_names_and_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="Unknown initialization pattern for a_other"):
        fill(init.Uniform(), (3,), "a_other")
    with pytest.raises(ValueError, match="at least 2D"):
        fill(init.Xavier(), (3,))
    with pytest.raises(ValueError, match="rand_type"):
        init.Orthogonal(rand_type="other")
    with pytest.raises(ValueError, match="factor type"):
        fill(init.Xavier(factor_type="other"), (2, 2))
    with pytest.raises(ValueError, match="random type"):
        fill(init.Xavier(rnd_type="other"), (2, 2))


def test_attributes_of_a_variable_go_first():
    assert (fill(init.Zero(), (3,), "a_weight", attrs={"__init__": init.One().dumps()}) == 1).all()
    assert (fill(init.Zero(), (3,), "a_other", attrs={"__init__": "ones"}) == 1).all()


@pytest.mark.parametrize(
    "initializer",
    [
        init.Uniform(0.3),
        init.Normal(0.2),
        init.Xavier("gaussian", "in", 2),
        init.MSRAPrelu("out", 0.1),
        init.Orthogonal(1.0, "normal"),
        init.Constant(3.0),
        init.LSTMBias(1.5),
        init.Bilinear(),
        init.Zero(),
    ],
)
def test_initializers_come_back_from_their_text(initializer):
    text = initializer.dumps()
    twin = init.create(text)
    assert twin == initializer
    assert twin.dumps() == text
    assert hash(twin) == hash(initializer)
    assert twin != init.One()


def test_creation_by_name():
    assert isinstance(init.create("xavier"), init.Xavier)
    assert isinstance(init.create("zeros"), init.Zero)
    assert init.create("normal", sigma=0.5).sigma == 0.5
    with pytest.raises(ValueError, match=r"(?i)nothing"):
        init.create("nothing")


def test_custom_initializers_register():
    @init.register
    class Seven(init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = 7

    net = mx.gluon.nn.Dense(1, in_units=1, weight_initializer="seven")
    net.initialize()
    assert net.weight.data().asscalar() == 7


def test_load_and_mixed(tmp_path):
    file = str(tmp_path / "values.params")
    mx.nd.save(file, {"arg:a_weight": mx.nd.ones((2,)) * 5, "aux:b_mean": mx.nd.ones((2,)) * 6})
    load = init.Load(file, default_init=init.Zero())
    assert (fill(load, (2,), "a_weight") == 5).all()
    assert (fill(load, (2,), "b_mean") == 6).all()
    assert (fill(load, (2,), "c_weight") == 0).all()
    with pytest.raises(ValueError, match=r"target \(3,\) vs loaded \(2,\)"):
        fill(load, (3,), "a_weight")
    with pytest.raises(ValueError, match="no default Initializer"):
        fill(init.Load(file), (2,), "c_weight")
    mixed = init.Mixed([".*special.*", ".*"], [init.One(), init.Zero()])
    assert (fill(mixed, (2,), "special_weight") == 1).all()
    assert (fill(mixed, (2,), "other_weight") == 0).all()
    with pytest.raises(ValueError, match="did not match any pattern"):
        fill(init.Mixed(["a"], [init.One()]), (2,), "b_weight")
    with pytest.raises(ValueError, match="2 patterns but 1"):
        init.Mixed(["a", "b"], [init.One()])


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_types_are_filled(dtype, rng):
    values = fill(init.Xavier(), (30, 40), dtype=dtype)
    assert values.dtype == np.dtype(dtype)
    assert values.std() == pytest.approx(math.sqrt(3 / 35) / math.sqrt(3), rel=0.1)


def test_the_same_seed_gives_the_same_values():
    results = []
    for _ in range(2):
        mx.random.seed(5)
        results.append(fill(init.Xavier(), (8, 8)))
    np.testing.assert_array_equal(*results)


def test_fused_recurrent_parameters():
    inputs, hidden, layers = 3, 4, 2
    size = 4 * hidden * (inputs + hidden + 2) + 4 * hidden * (hidden + hidden + 2)
    fused = init.FusedRNN(init.One(), hidden, layers, "lstm", forget_bias=2.0)
    values = fill(fused, (size,), "lstm_parameters", attrs={"__init__": fused.dumps()})
    weights = 4 * hidden * (inputs + hidden) + 4 * hidden * 2 * hidden
    assert (values[:weights] == 1).all()
    bias = values[weights:].reshape(4, 4, hidden)
    assert (bias[:, 1] == 2).all()
    assert (np.delete(bias, 1, 1) == 0).all()
    with pytest.raises(ValueError, match="does not fit"):
        fill(fused, (7,), "x", attrs={"__init__": fused.dumps()})
    with pytest.raises(ValueError, match="mode"):
        init.FusedRNN(None, 1, 1, "other")
