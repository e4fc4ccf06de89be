"""Recurrent layers in compiled prediction pack parameters once, keep nothing for a gradient, keep their values."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from hybridnet.gluon import rnn

SIZES = {
    "one layer": {"num_layers": 1},
    "two layers": {"num_layers": 2},
    "three layers, both ways": {"num_layers": 3, "bidirectional": True},
    "dropout": {"num_layers": 2, "dropout": 0.5},
}


def make(kind, dtype, **sizes):
    net = getattr(rnn, kind)(24, input_size=10, **sizes)
    net.initialize(mx.init.Uniform(0.4))
    net.cast(dtype)
    return net


def inputs(net, steps, batch, dtype):
    x = mx.nd.random.normal(shape=(steps, batch, 10)).astype(dtype)
    return x, [mx.nd.random.normal(shape=s.shape).astype(dtype) for s in net.begin_state(batch_size=batch)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def plain_lstm(net, x, states):
    """Computes a unidirectional LSTM in float64."""
    weights = {name[len(net.prefix) :]: p.data().asnumpy().astype("float64") for name, p in net.params.items()}
    seen, last = x.asnumpy().astype("float64"), []
    for layer in range(net._num_layers):
        i2h, h2h = weights[f"l{layer}_i2h_weight"], weights[f"l{layer}_h2h_weight"]
        bias = weights[f"l{layer}_i2h_bias"] + weights[f"l{layer}_h2h_bias"]
        h, c = (s.asnumpy()[layer].astype("float64") for s in states)
        out = []
        for row in seen:
            i, f, g, o = np.split(row @ i2h.T + h @ h2h.T + bias, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            out.append(h)
        seen = np.stack(out)
        last.append((h, c))
    return [seen, *(np.stack(part) for part in zip(*last, strict=True))]


def results(net, x, states):
    out, last = net(x, states)
    return [out.asnumpy(), *(s.asnumpy() for s in last)]


@pytest.mark.parametrize("batch", [1, 12, 33])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_prediction_is_that_of_a_plain_loop(batch, layers, dtype):
    net = make("LSTM", dtype, num_layers=layers)
    net.hybridize()
    x, states = inputs(net, 7, batch, dtype)
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    for found, expected in zip(results(net, x, states), plain_lstm(net, x, states), strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch", [3, 16])
def test_prediction_has_the_bits_of_a_run_that_keeps_all_for_its_gradient(kind, sizes, batch):
    net = make(kind, "float32", **sizes)
    x, states = inputs(net, 6, batch, "float32")
    with autograd.record(train_mode=False):
        kept = results(net, x, states)
    net.hybridize()
    for _ in range(2):
        for found, expected in zip(results(net, x, states), kept, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_sequences_of_several_lengths_have_the_bits_of_a_run_that_keeps_all(kind):
    net = getattr(rnn, kind)(24, num_layers=2, bidirectional=True, input_size=10, use_sequence_length=True)
    net.initialize(mx.init.Uniform(0.4))
    x, states = inputs(net, 6, 16, "float32")
    lengths = mx.nd.array(np.arange(16) % 7)
    with autograd.record(train_mode=False):
        out, last = net(x, states, lengths)
    expected = [out.asnumpy(), *(s.asnumpy() for s in last)]
    net.hybridize()
    out, last = net(x, states, lengths)
    for found, wanted in zip([out, *last], expected, strict=True):
        np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_packed_parameters_follow_a_write(kind):
    net = make(kind, "float32", num_layers=2)
    net.hybridize()
    x, states = inputs(net, 5, 16, "float32")
    before = results(net, x, states)[0]
    for parameter in net.collect_params().values():
        parameter.set_data(parameter.data() * -0.5)
    after = results(net, x, states)[0]
    net.hybridize(False)
    np.testing.assert_array_equal(after, results(net, x, states)[0])
    assert not np.allclose(after, before)


def test_dropout_without_a_gradient_equals_dropout_of_a_recorded_run():
    net = make("LSTM", "float32", num_layers=3, dropout=0.5)
    net.hybridize()
    x, states = inputs(net, 5, 16, "float32")
    found = []
    for recorded in (False, True):
        mx.random.seed(3)
        with autograd.record() if recorded else autograd.train_mode():
            found.append(results(net, x, states))
    for left, right in zip(*found, strict=True):
        np.testing.assert_array_equal(left, right)
