"""Recurrent cells and layers: outputs of MXNet and NumPy, cells against layers, lengths, modifiers, errors."""

from __future__ import annotations

import json
import pathlib

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import rnn
from hybridnet.gluon.contrib import rnn as contrib_rnn

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"


class Model(gluon.HybridBlock):
    """A block that calls a function body(self, F, *inputs)."""

    def __init__(self, body, children):
        super().__init__(prefix="net_")
        self._body = body
        with self.name_scope():
            for name, make in children.items():
                setattr(self, name, make())

    def hybrid_forward(self, F, *inputs):
        return self._body(self, F, *inputs)


def _unrolled(s, F, x, h, c, g, r):
    first, lstm = s.lstm.unroll(4, x, begin_state=[h, c], layout="NTC", merge_outputs=True)
    second, gru = s.gru.unroll(4, first, begin_state=[g], layout="NTC", merge_outputs=True)
    third, plain = s.rnn.unroll(4, second, begin_state=[r], layout="NTC", merge_outputs=True)
    return third, lstm[0], lstm[1], gru[0], plain[0]


def _bidirectional(s, F, x):
    out, states = s.b.unroll(3, x, layout="TNC", merge_outputs=True)
    return out, states[0], states[1], states[2]


# The models of the fixtures, which MXNet 1.9.1 made and ran.
MODELS = {
    "lstm_bi2": (
        lambda s, F, x, h, c: s.r(x, [h, c]),
        {"r": lambda: rnn.LSTM(5, num_layers=2, bidirectional=True, input_size=4)},
    ),
    "lstm_default_state": (
        lambda s, F, x: s.d(s.r(x)),
        {
            "r": lambda: rnn.LSTM(6, num_layers=1, layout="NTC", input_size=3),
            "d": lambda: gluon.nn.Dense(4, flatten=False, in_units=6),
        },
    ),
    "gru_fused": (lambda s, F, x, h: s.r(x, h), {"r": lambda: rnn.GRU(4, num_layers=2, input_size=3)}),
    "rnn_fused_tanh_relu": (
        lambda s, F, x, h: (s.a(x, h), s.b(x, h)),
        {
            "a": lambda: rnn.RNN(4, activation="tanh", input_size=3, bidirectional=True),
            "b": lambda: rnn.RNN(4, activation="relu", input_size=3, bidirectional=True),
        },
    ),
    "rnn_cells_unrolled": (
        _unrolled,
        {
            "lstm": lambda: rnn.LSTMCell(4, input_size=3),
            "gru": lambda: rnn.GRUCell(5, input_size=4),
            "rnn": lambda: rnn.ResidualCell(rnn.RNNCell(5, input_size=5)),
        },
    ),
    "rnn_bidirectional_cells": (
        _bidirectional,
        {"b": lambda: rnn.BidirectionalCell(rnn.LSTMCell(3, input_size=2), rnn.GRUCell(4, input_size=2))},
    ),
}


def flatten(value):
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in flatten(part)]
    return [value]


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("case", sorted(MODELS))
def test_models_of_mxnet_have_its_parameters_and_numbers(case, hybridize):
    folder = FIXTURES / case
    description = json.loads((folder / "case.json").read_text())
    net = Model(*MODELS[case])
    net.collect_params().load(str(folder / f"{case}-0000.params"))
    if hybridize:
        net.hybridize()
    inputs, outputs = np.load(folder / "inputs.npz"), np.load(folder / "outputs.npz")
    for run in description["runs"]:
        arrays = [mx.nd.array(inputs[f"{run}/{spec['name']}"]) for spec in description["inputs"]]
        for i, out in enumerate(flatten(net(*arrays))):
            np.testing.assert_allclose(out.asnumpy(), outputs[f"{run}/{i}"], rtol=1e-4, atol=1e-5)


# -- cells by hand --------------------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_step(x, states, w, act=np.tanh):
    h = act(x @ w["i2h_weight"].T + w["i2h_bias"] + states[0] @ w["h2h_weight"].T + w["h2h_bias"])
    return h, [h]


def lstm_step(x, states, w):
    gates = x @ w["i2h_weight"].T + w["i2h_bias"] + states[0] @ w["h2h_weight"].T + w["h2h_bias"]
    i, f, g, o = np.split(gates, 4, axis=1)
    c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    if "h2r_weight" in w:
        h = h @ w["h2r_weight"].T
    return h, [h, c]


def gru_step(x, states, w):
    a = np.split(x @ w["i2h_weight"].T + w["i2h_bias"], 3, axis=1)
    b = np.split(states[0] @ w["h2h_weight"].T + w["h2h_bias"], 3, axis=1)
    r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    h = (1 - z) * np.tanh(a[2] + r * b[2]) + z * states[0]
    return h, [h]


CELLS = [
    (lambda: rnn.RNNCell(4), rnn_step),
    (lambda: rnn.RNNCell(4, activation="relu"), lambda x, s, w: rnn_step(x, s, w, lambda v: np.maximum(v, 0))),
    (
        lambda: rnn.RNNCell(4, activation=gluon.nn.LeakyReLU(0.1)),
        lambda x, s, w: rnn_step(x, s, w, lambda v: np.where(v > 0, v, 0.1 * v)),
    ),
    (lambda: rnn.LSTMCell(4), lstm_step),
    (lambda: rnn.GRUCell(4), gru_step),
    (lambda: contrib_rnn.LSTMPCell(4, 3), lstm_step),
]
IDS = ["rnn", "relu", "leaky", "lstm", "gru", "lstmp"]


def weights(cell):
    return {name: param.data().asnumpy().astype("float64") for name, param in cell._reg_params.items()}


def ready(block):
    block.initialize(mx.init.Uniform(1))
    for param in block.collect_params(".*bias").values():
        param.initialize(mx.init.Uniform(1), force_reinit=True)
    return block


def floats(rng, *shape):
    return mx.nd.array(rng.normal(size=shape).astype("float32"))


@pytest.mark.parametrize(("make", "step"), CELLS, ids=IDS)
@pytest.mark.parametrize("hybridize", [False, True])
def test_cells_step_by_their_formula(make, step, hybridize, rng):
    cell = ready(make())
    cell.hybridize(hybridize)
    states = [floats(rng, *info["shape"]) for info in cell.state_info(2)]
    expected = [s.asnumpy().astype("float64") for s in states]
    for _ in range(3):
        x = floats(rng, 2, 5)
        output, states = cell(x, states)
        wanted, expected = step(x.asnumpy(), expected, weights(cell))
        np.testing.assert_allclose(output.asnumpy(), wanted, rtol=1e-4, atol=1e-5)
        for a, b in zip(states, expected, strict=True):
            np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("make", "step"), CELLS, ids=IDS)
@pytest.mark.parametrize("layout", ["NTC", "TNC"])
@pytest.mark.parametrize("merge", [True, False, None])
def test_unrolling_is_stepping(make, step, layout, merge, rng):
    cell = ready(make())
    x = floats(rng, 2, 3, 5) if layout == "NTC" else floats(rng, 3, 2, 5)
    outputs, states = cell.unroll(3, x, layout=layout, merge_outputs=merge)
    expected = [np.zeros(info["shape"]) for info in cell.state_info(2)]
    steps = []
    for i in range(3):
        row = x.asnumpy()[:, i] if layout == "NTC" else x.asnumpy()[i]
        out, expected = step(row, expected, weights(cell))
        steps.append(out)
    axis = layout.find("T")
    if merge:
        np.testing.assert_allclose(outputs.asnumpy(), np.stack(steps, axis), rtol=1e-4, atol=1e-5)
    else:
        assert isinstance(outputs, list)
        for a, b in zip(outputs, steps, strict=True):
            np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-4, atol=1e-5)
    for a, b in zip(states, expected, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-4, atol=1e-5)


def test_inputs_may_be_a_list_of_steps(rng):
    cell = ready(rnn.LSTMCell(4))
    x = floats(rng, 2, 3, 5)
    whole, _ = cell.unroll(3, x, merge_outputs=True)
    parts, _ = cell.unroll(3, [x[:, i] for i in range(3)], merge_outputs=True)
    np.testing.assert_array_equal(whole.asnumpy(), parts.asnumpy())


def _cells():
    stack = rnn.HybridSequentialRNNCell()
    stack.add(rnn.LSTMCell(4))
    stack.add(rnn.ResidualCell(rnn.GRUCell(4)))
    return stack


VARIABLE = [
    lambda: rnn.LSTMCell(4),
    lambda: rnn.GRUCell(4),
    _cells,
    lambda: rnn.BidirectionalCell(rnn.LSTMCell(3), rnn.GRUCell(2)),
    lambda: rnn.ZoneoutCell(rnn.RNNCell(4), 0.5, 0.5),
    lambda: contrib_rnn.VariationalDropoutCell(rnn.LSTMCell(4), 0.5, 0.0, 0.5),
]


@pytest.mark.parametrize("make", VARIABLE)
@pytest.mark.parametrize("layout", ["NTC", "TNC"])
@pytest.mark.parametrize("merge", [True, False])
def test_valid_lengths_equal_shorter_sequences(make, layout, merge, rng):
    cell = ready(make())
    axis = layout.find("T")
    lengths = [2, 5, 1, 4]
    x = floats(rng, 4, 5, 3)
    whole = x if layout == "NTC" else x.swapaxes(0, 1)
    outputs, states = cell.unroll(5, whole, layout=layout, merge_outputs=merge, valid_length=mx.nd.array(lengths))
    if not merge:
        outputs = mx.nd.stack(*outputs, axis=axis)
    outputs = outputs.asnumpy() if layout == "NTC" else outputs.asnumpy().swapaxes(0, 1)
    for i, length in enumerate(lengths):
        one, its_states = cell.unroll(length, x[i : i + 1, :length], layout="NTC", merge_outputs=True)
        np.testing.assert_allclose(outputs[i, :length], one.asnumpy()[0], rtol=1e-4, atol=1e-5)
        assert (outputs[i, length:] == 0).all()
        for a, b in zip(states, its_states, strict=True):
            np.testing.assert_allclose(a.asnumpy()[i], b.asnumpy()[0], rtol=1e-4, atol=1e-5)


# -- layers ---------------------------------------------------------------------------------------------------------

LAYERS = [
    lambda **k: rnn.RNN(4, **k),
    lambda **k: rnn.RNN(4, activation="tanh", **k),
    lambda **k: rnn.LSTM(4, **k),
    lambda **k: rnn.GRU(4, **k),
]


@pytest.mark.parametrize("make", LAYERS, ids=["relu", "tanh", "lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("layout", ["TNC", "NTC"])
@pytest.mark.parametrize("batch", [3, 14])  # small and large batches have different kernels
def test_layers_agree_with_their_cells_in_value_and_gradient(make, bidirectional, num_layers, layout, batch, rng):
    layer = ready(make(num_layers=num_layers, bidirectional=bidirectional, layout=layout))
    x = floats(rng, 5, batch, 6) if layout == "TNC" else floats(rng, batch, 5, 6)
    x.attach_grad()
    results = []
    cells = None
    for mode in ("layer", "hybrid", "cells"):
        layer.hybridize(mode == "hybrid")
        with autograd.record():
            if mode == "cells":
                cells = layer._unfuse()
                axis = layout.find("T")
                out, states = cells.unroll(x.shape[axis], x, layout=layout, merge_outputs=True)
            else:
                states = layer.begin_state(x.shape[layout.find("N")])
                out, states = layer(x, states)
            loss = (out * out).sum()
        loss.backward()
        gradients = [p.grad().asnumpy().copy() for p in layer.collect_params().values()]
        results.append([out.asnumpy(), x.grad.asnumpy().copy(), *gradients])
        if mode == "layer":
            np.testing.assert_array_equal(layer(x).asnumpy(), out.asnumpy())
            assert states[0].shape == layer.state_info(x.shape[layout.find("N")])[0]["shape"]
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_final_states_are_those_of_the_cells(rng):
    layer = ready(rnn.LSTM(4, num_layers=2, bidirectional=True))
    x = floats(rng, 5, 3, 6)
    _, states = layer(x, layer.begin_state(3))
    _, unfused = layer._unfuse().unroll(5, x, layout="TNC")
    h, c = states[0].asnumpy(), states[1].asnumpy()
    np.testing.assert_allclose(h, [s.asnumpy() for s in unfused[0::2]], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c, [s.asnumpy() for s in unfused[1::2]], rtol=1e-4, atol=1e-5)


def test_projection_agrees_with_its_cell(rng):
    layer = ready(rnn.LSTM(4, projection_size=3))
    x = floats(rng, 5, 2, 6)
    out, states = layer(x, layer.begin_state(2))
    assert out.shape == (5, 2, 3)
    assert [s.shape for s in states] == [(1, 2, 3), (1, 2, 4)]
    expected = [np.zeros((2, 3)), np.zeros((2, 4))]
    w = {name[3:]: value for name, value in weights(layer).items()}
    for i in range(5):
        step, expected = lstm_step(x.asnumpy()[i], expected, w)
        np.testing.assert_allclose(out.asnumpy()[i], step, rtol=1e-4, atol=1e-5)


def test_layers_with_lengths(rng):
    layer = ready(rnn.GRU(4, bidirectional=True, use_sequence_length=True))
    x = floats(rng, 5, 3, 6)
    lengths = [2, 5, 3]
    out, _ = layer(x, layer.begin_state(3), mx.nd.array(lengths))
    expected, _ = layer._unfuse().unroll(5, x, layout="TNC", merge_outputs=True, valid_length=mx.nd.array(lengths))
    np.testing.assert_allclose(out.asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-5)


def test_dropout_between_layers_acts_in_training_only(rng):
    layer = ready(rnn.LSTM(8, num_layers=2, dropout=0.5))
    x = floats(rng, 4, 3, 6)
    np.testing.assert_array_equal(layer(x).asnumpy(), layer(x).asnumpy())
    with autograd.train_mode():
        assert (layer(x).asnumpy() != layer(x).asnumpy()).any()


def test_parameters_have_the_names_that_files_of_mxnet_use(tmp_path, rng):
    layer = ready(rnn.LSTM(4, num_layers=2, bidirectional=True, prefix="lstm_"))
    x = floats(rng, 5, 3, 6)
    expected = layer(x).asnumpy()
    assert "lstm_r1_h2h_weight" in layer.collect_params()
    file = str(tmp_path / "layer.params")
    layer.save_parameters(file)
    assert "_unfused.1.r_cell.h2h_weight" in mx.nd.load(file)
    other = rnn.LSTM(4, num_layers=2, bidirectional=True)
    other.load_parameters(file)
    np.testing.assert_array_equal(other(x).asnumpy(), expected)
    single = ready(rnn.GRU(4))
    single(x)
    single.save_parameters(file)
    assert sorted(mx.nd.load(file))[0] == "_unfused.0.h2h_bias"


@pytest.mark.parametrize("make", [lambda: rnn.LSTM(4, 2, bidirectional=True), lambda: rnn.GRU(4, layout="NTC")])
def test_layers_inside_hybridized_nets_and_exports(make, tmp_path, rng):
    net = gluon.nn.HybridSequential()
    net.add(make(), gluon.nn.Dense(2, flatten=False))
    net.initialize(mx.init.Uniform(1))
    x, y = floats(rng, 5, 3, 6), floats(rng, 4, 2, 6)
    net.hybridize()
    got = net(x).asnumpy(), net(y).asnumpy()
    symbol, params = net.export(str(tmp_path / "net"))
    net.hybridize(False)
    for hybrid, array in zip(got, (x, y), strict=True):
        np.testing.assert_allclose(hybrid, net(array).asnumpy(), rtol=1e-4, atol=1e-5)
    loaded = gluon.SymbolBlock.imports(symbol, ["data"], params)
    np.testing.assert_allclose(loaded(y).asnumpy(), got[1], rtol=1e-4, atol=1e-5)


def test_cells_in_hybridized_nets_take_any_batch(tmp_path, rng):
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.cell = rnn.LSTMCell(4)

        def hybrid_forward(self, F, x):
            return self.cell.unroll(3, x, layout="NTC", merge_outputs=True)[0]

    net = Net()
    net.initialize(mx.init.Uniform(1))
    small, large = floats(rng, 2, 3, 5), floats(rng, 6, 3, 5)
    expected = [net(x).asnumpy() for x in (small, large)]
    net.hybridize()
    for x, wanted in zip((small, large), expected, strict=True):
        np.testing.assert_allclose(net(x).asnumpy(), wanted, rtol=1e-4, atol=1e-5)
    symbol, params = net.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(symbol, ["data"], params)
    np.testing.assert_allclose(loaded(large).asnumpy(), expected[1], rtol=1e-4, atol=1e-5)


def test_wrong_states_and_arguments_are_named(rng):
    layer = ready(rnn.LSTM(4))
    x = floats(rng, 5, 3, 6)
    with pytest.raises(ValueError, match=r"Expecting \(1, 3, 4\), got \(1, 2, 4\)"):
        layer(x, [mx.nd.zeros((1, 2, 4)), mx.nd.zeros((1, 3, 4))])
    with pytest.raises(ValueError, match="expected 2 recurrent states, got 1"):
        layer(x, mx.nd.zeros((1, 3, 4)))
    for make, text in [
        (lambda: rnn.LSTM(0), "hidden_size"),
        (lambda: rnn.LSTM(4, 0), "num_layers"),
        (lambda: rnn.LSTM(4, layout="CTN"), "layout"),
        (lambda: rnn.RNN(4, activation="sigmoid"), "activation"),
        (lambda: rnn.GRU(4, dropout=2), "dropout"),
        (lambda: rnn.LSTMCell(0), "hidden_size"),
        (lambda: rnn.DropoutCell("half"), "rate"),
        (lambda: rnn.ZoneoutCell(rnn.BidirectionalCell(rnn.RNNCell(1), rnn.RNNCell(1))), "BidirectionalCell"),
    ]:
        with pytest.raises(ValueError, match=text):
            make()
    with pytest.raises(mx.errors.UnsupportedError, match="projection"):
        rnn.LSTM(4, projection_size=2)._unfuse()


def test_unroll_names_unsuitable_inputs(rng):
    cell = ready(rnn.RNNCell(4))
    x = floats(rng, 2, 3, 5)
    with pytest.raises(ValueError, match="length is 4 but the inputs have 3 steps"):
        cell.unroll(4, x)
    with pytest.raises(ValueError, match="layout"):
        cell.unroll(3, x, layout="ABC")
    with pytest.raises(ValueError, match="inputs is None"):
        cell.unroll(3, None)


# -- containers and modifiers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [rnn.SequentialRNNCell, rnn.HybridSequentialRNNCell])
def test_stacks_step_and_unroll_alike(kind, rng):
    stack = kind()
    stack.add(rnn.LSTMCell(4))
    stack.add(rnn.DropoutCell(0.5))
    stack.add(rnn.GRUCell(3))
    ready(stack)
    assert len(stack) == 3
    assert isinstance(stack[2], rnn.GRUCell)
    assert [info["shape"] for info in stack.state_info(2)] == [(2, 4), (2, 4), (2, 3)]
    x = floats(rng, 2, 3, 5)
    outputs, states = stack.unroll(3, x, merge_outputs=True)
    step_states = stack.begin_state(batch_size=2)
    for i in range(3):
        out, step_states = stack(x[:, i], step_states)
        np.testing.assert_allclose(out.asnumpy(), outputs.asnumpy()[:, i], rtol=1e-4, atol=1e-5)
    for a, b in zip(states, step_states, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-5)
    if kind is rnn.HybridSequentialRNNCell:
        stack.hybridize()
        out, _ = stack(x[:, 0], stack.begin_state(batch_size=2))
        np.testing.assert_allclose(out.asnumpy(), outputs.asnumpy()[:, 0], rtol=1e-4, atol=1e-5)


def test_bidirectional_cells_have_no_step(rng):
    cell = rnn.BidirectionalCell(rnn.RNNCell(2), rnn.RNNCell(3))
    with pytest.raises(NotImplementedError, match=r"(?s)cannot be stepped.*unroll"):
        cell(floats(rng, 1, 2), [])
    ready(cell)
    outputs, states = cell.unroll(4, floats(rng, 2, 4, 5))
    assert [out.shape for out in outputs] == [(2, 5)] * 4
    assert [state.shape for state in states] == [(2, 2), (2, 3)]


def test_zoneout_keeps_values_of_the_step_before(rng):
    cell = ready(rnn.ZoneoutCell(rnn.RNNCell(50), zoneout_outputs=0.5, zoneout_states=0.5))
    x = floats(rng, 8, 2, 5)
    with autograd.train_mode():
        outputs, states = cell.unroll(2, x)
    first, second = (out.asnumpy() for out in outputs)
    assert (first == 0).mean() == pytest.approx(0.5, abs=0.1)
    assert (second == first).mean() == pytest.approx(0.5, abs=0.1)
    assert states[0].shape == (8, 50)
    base = rnn.RNNCell(2)
    rnn.ZoneoutCell(base)
    with pytest.raises(ValueError, match="call the modifier cell"):
        base.begin_state(batch_size=1)
    with pytest.raises(ValueError, match="already modified"):
        rnn.ResidualCell(base)


def test_residual_cells_add_their_input(rng):
    base = rnn.GRUCell(5)
    cell = ready(rnn.ResidualCell(base))
    x = floats(rng, 2, 3, 5)
    outputs, _ = cell.unroll(3, x, merge_outputs=True)
    with cell._unwrapped():
        plain, _ = base.unroll(3, x, merge_outputs=True)
    np.testing.assert_allclose(outputs.asnumpy(), plain.asnumpy() + x.asnumpy(), rtol=1e-5)
    assert base._modified
    step, _ = cell(x[:, 0], cell.begin_state(func=mx.nd.zeros, batch_size=2))
    np.testing.assert_allclose(step.asnumpy(), outputs.asnumpy()[:, 0], rtol=1e-5)
    assert cell.collect_params().keys() == base.collect_params().keys()


def test_variational_dropout_has_one_mask_per_sequence(rng):
    cell = ready(contrib_rnn.VariationalDropoutCell(rnn.RNNCell(40), drop_outputs=0.5))
    x = floats(rng, 2, 4, 5)
    with autograd.train_mode():
        outputs, _ = cell.unroll(4, x, merge_outputs=False)
        zero = [out.asnumpy() == 0 for out in outputs]
    assert 0.2 < zero[0].mean() < 0.8
    assert all((step == zero[0]).all() for step in zero)
    states = contrib_rnn.VariationalDropoutCell(rnn.RNNCell(6), drop_states=0.5)
    ready(states)
    with autograd.train_mode():
        assert states.unroll(3, x[:, :3], merge_outputs=True)[0].shape == (2, 3, 6)
    np.testing.assert_array_equal(
        states.unroll(3, x[:, :3], merge_outputs=True)[0].asnumpy(),
        states.unroll(3, x[:, :3], merge_outputs=True)[0].asnumpy(),
    )


def test_begin_states_are_made_by_any_function():
    cell = rnn.LSTMCell(4, prefix="cell_")
    ones = cell.begin_state(batch_size=2, func=mx.nd.ones)
    assert [s.shape for s in ones] == [(2, 4)] * 2
    assert (ones[0].asnumpy() == 1).all()
    variables = rnn.LSTMCell(4, prefix="cell_").begin_state(func=mx.sym.Variable)
    assert [v.name for v in variables] == ["cell_begin_state_0", "cell_begin_state_1"]


def test_symbols_are_unrolled_too():
    cell = rnn.RNNCell(3, prefix="rnn_")
    inputs = [mx.sym.Variable(f"x{i}") for i in range(2)]
    outputs, _ = cell.unroll(2, inputs, begin_state=cell.begin_state(func=mx.sym.zeros, batch_size=4))
    group = mx.sym.Group(outputs)
    assert sorted(cell.collect_params()) == ["rnn_h2h_bias", "rnn_h2h_weight", "rnn_i2h_bias", "rnn_i2h_weight"]
    assert group.list_outputs() == ["rnn_t0_out_output", "rnn_t1_out_output"]
    _, shapes, _ = group.infer_shape(x0=(4, 5), x1=(4, 5))
    assert shapes == [(4, 3), (4, 3)]


def test_representations():
    assert repr(rnn.LSTMCell(4, input_size=3)) == "LSTMCell(3 -> 16)"
    assert repr(rnn.RNNCell(4)) == "RNNCell(None -> 4, tanh)"
    assert repr(rnn.LSTM(4, 2, input_size=3, bidirectional=True)) == "LSTM(3 -> 4, TNC, num_layers=2, bidirectional)"
    assert repr(rnn.ResidualCell(rnn.GRUCell(4))) == "ResidualCell(GRUCell(None -> 12))"


def test_a_layer_learns_to_sum(rng):
    mx.random.seed(3)
    net = gluon.nn.HybridSequential()
    net.add(rnn.GRU(16, layout="NTC"), gluon.nn.HybridLambda(lambda F, x: F.slice_axis(x, axis=1, begin=-1, end=None)))
    net.add(gluon.nn.Dense(1))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss_of = gluon.loss.L2Loss()
    x = mx.nd.array(rng.uniform(-0.5, 0.5, size=(64, 6, 1)).astype("float32"))
    y = x.sum(axis=1)
    losses = []
    for _ in range(150):
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(64)
        losses.append(float(loss.mean().asscalar()))
    assert losses[-1] < 0.1 * losses[0]


# -- convolutional cells, loops ---------------------------------------------------------------------------------------


def _correlate(x, weight, pad):
    """Convolves over one spatial axis: x (N, C, W), weight (O, C, K)."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2], axis=2)
    return np.einsum("ncwk,ock->now", windows, weight)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _conv_step(kind, i2h, h2h, states):
    if kind == "RNN":
        return [np.tanh(i2h + h2h)]
    if kind == "LSTM":
        i, f, g, o = np.split(i2h + h2h, 4, axis=1)
        memory = _sigmoid(f) * states[1] + _sigmoid(i) * np.tanh(g)
        return [_sigmoid(o) * np.tanh(memory), memory]
    (ir, iz, io), (hr, hz, ho) = np.split(i2h, 3, axis=1), np.split(h2h, 3, axis=1)
    update = _sigmoid(iz + hz)
    return [(1 - update) * np.tanh(io + _sigmoid(ir + hr) * ho) + update * states[0]]


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_convolutional_cells_step_as_their_formula_says(kind, hybridize):
    cell = getattr(contrib_rnn, f"Conv1D{kind}Cell")((3, 7), 4, i2h_kernel=3, h2h_kernel=5)
    cell.initialize(mx.init.Normal(0.4))
    if hybridize:
        cell.hybridize()
    x = np.random.randn(2, 3, 7).astype("float32")
    states = [np.random.randn(2, 4, 5).astype("float32") for _ in cell.state_info()]
    output, after = cell(mx.nd.array(x), [mx.nd.array(state) for state in states])
    values = {name[len(cell.prefix) :]: param.data().asnumpy() for name, param in cell.params.items()}
    i2h = _correlate(x, values["i2h_weight"], 0) + values["i2h_bias"][:, None]
    h2h = _correlate(states[0], values["h2h_weight"], 2) + values["h2h_bias"][:, None]
    expected = _conv_step(kind, i2h, h2h, states)
    for ours, theirs in zip([output, *after], [expected[0], *expected], strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_convolutional_cells_unroll_as_symbols_and_arrays(kind, dims):
    sizes = (9, 7, 5)[:dims]
    cell = getattr(contrib_rnn, f"Conv{dims}D{kind}Cell")((2, *sizes), 6, 3, 3, prefix="rnn_")
    names = [mx.sym.var(f"x{i}") for i in range(2)]
    outputs = mx.sym.Group(cell.unroll(2, names)[0])
    assert outputs.list_outputs() == ["rnn_t0_out_output", "rnn_t1_out_output"]
    shapes = outputs.infer_shape(**{f"x{i}": (1, 2, *sizes) for i in range(2)})[1]
    assert shapes == [(1, 6, *(size - 2 for size in sizes))] * 2
    cell.initialize()
    x = mx.nd.random.normal(shape=(1, 2, 2, *sizes))
    x.attach_grad()
    with autograd.record():
        layout = "NTC" + "DHW"[-dims:] if dims > 1 else "NTCW"
        total = cell.unroll(2, x, layout=layout, merge_outputs=True)[0].sum()
    total.backward()
    assert float(x.grad.abs().sum().asscalar()) > 0


def test_convolutional_cells_learn_channels_and_know_channels_last():
    cell = contrib_rnn.Conv1DLSTMCell((0, 7), 4, 3, 3)
    cell.hybridize()
    cell.initialize()
    cell.unroll(2, mx.nd.ones((2, 2, 5, 7)), layout="NTCW")
    assert cell.i2h_weight.shape == (16, 5, 3)
    last = contrib_rnn.Conv2DGRUCell((6, 7, 3), 4, 3, 3, conv_layout="NHWC")
    assert last.i2h_weight.shape == (12, 3, 3, 3) and last.state_info(2)[0]["shape"] == (2, 4, 5, 4)
    assert repr(last) == "Conv2DGRUCell(3 -> 12, tanh, NHWC)"


@pytest.mark.parametrize(
    "arguments", [{"h2h_kernel": 2}, {"i2h_kernel": (3, 3)}, {"conv_layout": "NCHW"}, {"input_shape": (3,)}]
)
def test_convolutional_cells_refuse_unsuitable_shapes(arguments):
    with pytest.raises(ValueError):
        contrib_rnn.Conv1DRNNCell(
            **{"input_shape": (3, 7), "hidden_channels": 2, "i2h_kernel": 3, "h2h_kernel": 3, **arguments}
        )


@pytest.mark.parametrize("layout", ["TNC", "NTC"])
@pytest.mark.parametrize("lengths", [None, [2, 4, 1]])
@pytest.mark.parametrize("kind", [rnn.RNNCell, rnn.LSTMCell, rnn.GRUCell])
def test_dynamic_unroll_equals_unroll(kind, lengths, layout):
    cell = kind(5, input_size=3)
    cell.initialize(mx.init.Normal(0.5))
    x = mx.nd.random.normal(shape=(4, 3, 3) if layout == "TNC" else (3, 4, 3))
    states = [mx.nd.random.normal(shape=(3, 5)) for _ in cell.state_info()]
    lengths = None if lengths is None else mx.nd.array(lengths)
    expected, expected_states = cell.unroll(4, x, states, layout, True, valid_length=lengths)
    outputs, after = contrib_rnn.dynamic_unroll(cell, x, states, layout=layout, valid_length=lengths)
    for ours, theirs in zip([outputs, *after], [expected, *expected_states], strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-5, atol=1e-6)


def test_dynamic_unroll_drops_out_with_one_mask():
    class Same(rnn.HybridRecurrentCell):
        def state_info(self, batch_size=0):
            return [{"shape": (batch_size, 2)}]

        def hybrid_forward(self, F, inputs, states):
            return inputs, states

    x = mx.nd.ones((3, 2, 50))
    with autograd.train_mode():
        outputs, _ = contrib_rnn.dynamic_unroll(Same(), x, [mx.nd.zeros((2, 2))], drop_inputs=0.5)
    outputs = outputs.asnumpy()
    assert 0 < (outputs == 0).sum() < outputs.size and (outputs == outputs[:1]).all()


def test_a_layer_infers_shapes_without_running():
    layer = rnn.LSTM(5, bidirectional=True)
    layer.infer_shape(mx.nd.ones((3, 2, 7)), layer.begin_state(2))
    assert layer.l0_i2h_weight.shape == (20, 7) and layer.r0_i2h_weight.shape == (20, 7)


def test_one_step_of_a_symbol():
    cell = rnn.GRUCell(4, input_size=3)
    outputs, _ = cell.unroll(1, mx.sym.var("x"), merge_outputs=False)
    assert len(outputs) == 1 and outputs[0].infer_shape(x=(2, 1, 3))[1] == [(2, 4)]


class _Unrolls(gluon.HybridBlock):
    def __init__(self, cell, layout, merge):
        super().__init__()
        self._layout, self._merge = layout, merge
        with self.name_scope():
            self.cell = cell

    def forward(self, x, lengths=None):
        outputs, states = self.cell.unroll(
            x.shape[self._layout.find("T")], x, layout=self._layout, merge_outputs=self._merge, valid_length=lengths
        )
        return [*(outputs if isinstance(outputs, list) else [outputs]), *states]


@pytest.mark.parametrize("merge", [True, False, None])
@pytest.mark.parametrize("layout", ["NTC", "TNC"])
@pytest.mark.parametrize("with_length", [False, True])
def test_a_hybridized_unroll_is_one_loop_with_the_same_values_and_gradients(layout, merge, with_length, rng, tmp_path):
    cell = gluon.rnn.HybridSequentialRNNCell()
    cell.add(gluon.rnn.LSTMCell(4))
    cell.add(gluon.rnn.ResidualCell(gluon.rnn.GRUCell(4)))
    block = _Unrolls(cell, layout, merge)
    block.initialize(mx.init.Xavier())
    x = floats(rng, 3, 5, 2) if layout == "NTC" else floats(rng, 5, 3, 2)
    inputs = [x, mx.nd.array([5, 2, 1])] if with_length else [x]
    results = {}
    for hybridized in (False, True):
        block.hybridize(hybridized)
        x.attach_grad()
        with mx.autograd.record():
            outputs = block(*inputs)
            loss = sum((i + 1) * (out**2).sum() for i, out in enumerate(outputs))
        loss.backward()
        results[hybridized] = [out.asnumpy() for out in outputs] + [x.grad.asnumpy()]
    assert len(results[True]) == len(results[False])
    for plain, loop in zip(*results.values(), strict=True):
        np.testing.assert_allclose(plain, loop, rtol=1e-4, atol=1e-5)
    symbol_file, _ = block.export(str(tmp_path / "unrolled"))
    with open(symbol_file, encoding="utf-8") as file:
        text = file.read()
    assert text.count('"_foreach"') == 2
    assert text.count('"FullyConnected"') == 4


def test_zoneout_of_outputs_does_nothing_in_prediction_in_graphs_too(rng):
    block = _Unrolls(gluon.rnn.ZoneoutCell(gluon.rnn.RNNCell(4), zoneout_outputs=0.5), "NTC", True)
    block.initialize()
    x = floats(rng, 2, 3, 4)
    plain = block(x)[0].asnumpy()
    block.hybridize()
    np.testing.assert_allclose(block(x)[0].asnumpy(), plain, rtol=1e-5, atol=1e-6)


def test_a_loop_names_the_length_that_does_not_fit(rng):
    class Wrong(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = gluon.rnn.GRUCell(3)

        def forward(self, x):
            return self.cell.unroll(4, x, merge_outputs=True)[0]

    block = Wrong()
    block.initialize()
    block.hybridize()
    with pytest.raises(mx.errors.ShapeError, match="length is 4 but the inputs have 3"):
        block(floats(rng, 2, 3, 4))


@pytest.mark.parametrize("length", [1, 3])
def test_both_directions_in_a_hybridized_block(length):
    class Both(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.cell = rnn.BidirectionalCell(rnn.LSTMCell(4, prefix="l_"), rnn.LSTMCell(4, prefix="r_"))

        def hybrid_forward(self, F, x, lengths):
            return self.cell.unroll(length, x, valid_length=lengths, merge_outputs=True)

    net, x, lengths = Both(), mx.nd.random.normal(shape=(5, length, 3)), mx.nd.array([length] * 5)
    net.initialize(mx.init.Normal(0.5))
    expected, _ = net(x, lengths)
    net.hybridize()
    outputs, _ = net(x, lengths)
    np.testing.assert_allclose(outputs.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_graph_infers_the_sizes_of_weights_that_read_the_data(bidirectional):
    layer = gluon.rnn.LSTM(4, 2, bidirectional=bidirectional, prefix="lstm_")
    graph = layer(mx.sym.var("data"))
    shapes = dict(zip(graph.list_arguments(), graph.infer_shape(data=(5, 3, 8))[0], strict=True))
    directions = "lr" if bidirectional else "l"
    assert {shapes[f"lstm_{d}0_i2h_weight"] for d in directions} == {(16, 8)}
    assert {shapes[f"lstm_{d}1_i2h_weight"] for d in directions} == {(16, 4 * len(directions))}
