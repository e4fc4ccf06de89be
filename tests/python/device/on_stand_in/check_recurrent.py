"""RNN on gpu(0): layers, directions, lengths, dropout, projection and clipping, with their gradients."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from operator_sweep import difference

TOLERANCE = {"float32": 3e-6, "float64": 1e-14}
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
OPTIONS: dict[str, dict[str, Any]] = {
    "one layer": {},
    "three layers, two directions": {"num_layers": 3, "bidirectional": True},
    "lengths": {"num_layers": 2, "bidirectional": True, "use_sequence_length": True},
    "dropout": {"num_layers": 2, "p": 0.4},
    "projection": {"num_layers": 2, "bidirectional": True, "projection_size": 4, "use_sequence_length": True},
    "clipping": {"lstm_state_clip_min": -0.3, "lstm_state_clip_max": 0.2},
}
OF_LSTM = ("projection", "clipping")
STEPS, BATCH, INPUTS, HIDDEN = 6, 13, 5, 9


def parameter_count(mode: str, options: dict[str, Any]) -> int:
    directions, projection = 1 + bool(options.get("bidirectional")), options.get("projection_size", 0)
    state = projection or HIDDEN
    count = 0
    for layer in range(options.get("num_layers", 1)):
        inputs = directions * state if layer else INPUTS
        count += directions * (GATES[mode] * HIDDEN * (inputs + state + 2) + projection * HIDDEN)
    return count


def results(mode: str, options: dict[str, Any], dtype: str, ctx: mx.Context) -> list[np.ndarray]:
    """The outputs in training and in prediction, and the gradients of all inputs."""
    rng = np.random.default_rng(3)
    cells = options.get("num_layers", 1) * (1 + bool(options.get("bidirectional")))
    values = [
        rng.normal(size=(STEPS, BATCH, INPUTS)),
        rng.normal(size=parameter_count(mode, options)) * 0.3,
        rng.normal(size=(cells, BATCH, options.get("projection_size", HIDDEN))),
    ]
    if mode == "lstm":
        values.append(rng.normal(size=(cells, BATCH, HIDDEN)))
    arrays = [mx.nd.array(value.astype(dtype), dtype=dtype, ctx=ctx) for value in values]
    for array in arrays:
        array.attach_grad()
    lengths = rng.integers(0, STEPS + 1, size=BATCH)
    further = [mx.nd.array(lengths, dtype="int32", ctx=ctx)] if "use_sequence_length" in options else []
    call = {"mode": mode, "state_size": HIDDEN, "num_layers": 1, "state_outputs": True, **options}
    mx.random.seed(5)
    with autograd.record():
        out = mx.nd.RNN(*arrays, *further, **call)
        loss = sum((part * part).sum() for part in out)
    loss.backward()
    predicted = mx.nd.RNN(*arrays, *further, **call)
    return [array.asnumpy() for array in (*out, *(array.grad for array in arrays), *predicted)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("mode", "options"),
    [(mode, name) for mode in GATES for name in OPTIONS if mode == "lstm" or name not in OF_LSTM],
)
def test_recurrent_layers_and_their_gradients_are_those_of_the_cpu(mode: str, options: str, dtype: str) -> None:
    pairs = zip(results(mode, OPTIONS[options], dtype, mx.gpu(0)), results(mode, OPTIONS[options], dtype, mx.cpu()))
    assert max(difference(got, want) for got, want in pairs) <= TOLERANCE[dtype]
