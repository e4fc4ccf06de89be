"""Recurrent layers beyond the sweep: dropout between layers, sequences of different lengths."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest

STEPS, BATCH, INPUTS, HIDDEN, LAYERS = 4, 3, 2, 3, 2
PARAMETERS = {"lstm": 4, "gru": 3, "rnn_tanh": 1}


def parameter_count(mode: str) -> int:
    rows = 2 * PARAMETERS[mode] * HIDDEN
    return rows * (INPUTS + HIDDEN + 2) + rows * (2 * HIDDEN + HIDDEN + 2)


def layers(mode: str, data: mx.nd.NDArray, weights: mx.nd.NDArray, **attrs) -> mx.nd.NDArray:
    """Runs two bidirectional layers with dropout 0.5 between them and the same mask in every call."""
    state = mx.nd.ones((2 * LAYERS, BATCH, HIDDEN), dtype="float64")
    states = [state, state] if mode == "lstm" else [state]
    mx.random.seed(7)
    return mx.nd.RNN(
        data, weights, *states, mode=mode, state_size=HIDDEN, num_layers=LAYERS, bidirectional=True, p=0.5, **attrs
    )


@pytest.mark.parametrize("mode", list(PARAMETERS))
def test_dropped_layers_are_differentiable_twice(mode: str):
    rng = np.random.default_rng(0)
    weights = mx.nd.array(rng.normal(size=parameter_count(mode)) * 0.3, dtype="float64")
    heads = mx.nd.array(rng.normal(size=(STEPS, BATCH, 2 * HIDDEN)), dtype="float64")
    direction = mx.nd.array(rng.normal(size=(STEPS, BATCH, INPUTS)), dtype="float64")

    def directional(values: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
        """Returns <heads, out> and <direction, gradient>, and the gradients of both by data."""
        data = mx.nd.array(values, dtype="float64")
        data.attach_grad()
        with mx.autograd.record():
            out = layers(mode, data, weights)
            first = mx.autograd.grad(out, [data], head_grads=[heads], create_graph=True, retain_graph=True)[0]
            product = (first * direction).sum()
        product.backward()
        return float((out * heads).sum().asscalar()), float(product.asscalar()), first.asnumpy(), data.grad.asnumpy()

    at = rng.normal(size=(STEPS, BATCH, INPUTS))
    _, _, first, second = directional(at)
    for index in np.ndindex(*at.shape):
        step = np.zeros_like(at)
        step[index] = 1e-5
        above, below = directional(at + step), directional(at - step)
        assert first[index] == pytest.approx((above[0] - below[0]) / 2e-5, abs=1e-8)
        assert second[index] == pytest.approx((above[1] - below[1]) / 2e-5, abs=1e-8)


def test_half_of_the_outputs_between_layers_is_dropped_and_the_rest_doubled():
    """With identity weights (relu of the input alone), the second layer outputs its inputs."""
    size = 64
    identity, nothing = np.eye(size), np.zeros((size, size))
    weights = np.concatenate([identity.ravel(), nothing.ravel()] * 2 + [np.zeros(4 * size)])
    data = mx.nd.ones((5, 4, size))
    with mx.autograd.train_mode():
        out = mx.nd.RNN(
            data,
            mx.nd.array(weights),
            mx.nd.zeros((2, 4, size)),
            mode="rnn_relu",
            state_size=size,
            num_layers=2,
            p=0.5,
        ).asnumpy()
    assert set(np.unique(out)) == {0.0, 2.0}
    assert 0.4 < (out == 0).mean() < 0.6


def test_gru_takes_sequence_lengths_by_name():
    weights = mx.nd.array(np.random.default_rng(0).normal(size=parameter_count("gru")), dtype="float64")
    data = mx.nd.ones((STEPS, BATCH, INPUTS), dtype="float64")
    lengths = mx.nd.array([0, 2, STEPS], dtype="int32")
    out = layers("gru", data, weights, use_sequence_length=True, sequence_length=lengths).asnumpy()
    for n, length in enumerate((0, 2, STEPS)):
        assert (out[length:, n] == 0).all()
        assert (out[:length, n] != 0).all()
