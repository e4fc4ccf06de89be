"""mx.rnn: symbolic cells, their weights, and bucketed sentences."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon

STEPS = [mx.sym.var(f"rnn_t{i}_data") for i in range(3)]


def _shapes(*shape):
    return {f"rnn_t{i}_data": shape for i in range(3)}


def _run(outputs, shapes, values=None, seed=0):
    """Evaluates outputs with given or random arguments; returns (outputs, arguments)."""
    group = mx.sym.Group(outputs) if isinstance(outputs, list) else outputs
    found = dict(zip(group.list_arguments(), group.infer_shape(**shapes)[0], strict=True))
    random = np.random.RandomState(seed)
    args = {name: mx.nd.array(random.randn(*shape) * 0.4) for name, shape in found.items()}
    args.update(values or {})
    return [out.asnumpy() for out in group.bind(mx.cpu(), args).forward()], args


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_names_shapes_and_values(kind):
    cell = getattr(mx.rnn, f"{kind}Cell")(10, prefix="rnn_")
    outputs, states = cell.unroll(3, STEPS)
    assert sorted(cell.params._params) == [f"rnn_{g}_{k}" for g in ("h2h", "i2h") for k in ("bias", "weight")]
    assert mx.sym.Group(outputs).list_outputs() == [f"rnn_t{i}_out_output" for i in range(3)]
    values, args = _run(outputs + states, _shapes(2, 5))
    same = getattr(gluon.rnn, f"{kind}Cell")(10, input_size=5)
    same.initialize()
    for name, param in same.params.items():
        param.set_data(args["rnn_" + name[len(same.prefix) :]])
    expected, expected_states = same.unroll(3, [args[f"rnn_t{i}_data"] for i in range(3)])
    for ours, theirs in zip(values, [*expected, *expected_states], strict=True):
        np.testing.assert_allclose(ours, theirs.asnumpy(), rtol=1e-4, atol=1e-5)


def test_weights_by_gate_and_back():
    cell = mx.rnn.LSTMCell(4, prefix="a_")
    args = {
        f"a_{g}_{k}": mx.nd.random.normal(shape=(16, 3) if k == "weight" else (16,))
        for g in ("i2h", "h2h")
        for k in ("weight", "bias")
    }
    args["other"] = mx.nd.ones(1)
    unpacked = cell.unpack_weights(args)
    assert len(unpacked) == 17 and "a_i2h_f_weight" in unpacked
    np.testing.assert_array_equal(unpacked["a_h2h_o_bias"].asnumpy(), args["a_h2h_bias"].asnumpy()[12:])
    packed = cell.pack_weights(unpacked)
    assert packed.keys() == args.keys()
    for name, value in args.items():
        np.testing.assert_array_equal(packed[name].asnumpy(), value.asnumpy())


def test_the_forget_gate_starts_with_its_bias():
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(3, forget_bias=2.0, prefix="l0_"))
    symbol, _ = stack.unroll(1, mx.sym.var("data"), merge_outputs=True)
    module = mx.mod.Module(symbol, label_names=None)
    module.bind(data_shapes=[("data", (2, 1, 4))], label_shapes=None)
    module.init_params()
    expected = [0] * 3 + [2] * 3 + [0] * 6
    np.testing.assert_array_equal(module.get_params()[0]["l0_i2h_bias"].asnumpy(), expected)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("mode", ["rnn_tanh", "rnn_relu", "lstm", "gru"])
def test_fused_and_unfused_compute_the_same(mode, bidirectional):
    fused = mx.rnn.FusedRNNCell(4, num_layers=2, mode=mode, prefix="x_", bidirectional=bidirectional)
    data = mx.sym.var("data")
    outputs, states = fused.unroll(3, data, layout="TNC", merge_outputs=True)
    assert states == [] and outputs.list_arguments()[:2] == ["data", "x_parameters"]
    (expected,), args = _run(outputs, {"data": (3, 2, 5)})
    weights = fused.unpack_weights({"x_parameters": args["x_parameters"]})
    stack = fused.unfuse()
    plain, _ = stack.unroll(3, data, layout="TNC", merge_outputs=True)
    values = {**stack.pack_weights(weights), "data": args["data"]}
    (ours,), _ = _run(plain, {"data": (3, 2, 5)}, values)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)
    again = fused.pack_weights(weights)
    np.testing.assert_array_equal(again["x_parameters"].asnumpy(), args["x_parameters"].asnumpy())


def test_fused_layers_return_states_and_steps():
    fused = mx.rnn.FusedRNNCell(4, mode="lstm", get_next_state=True)
    outputs, states = fused.unroll(3, mx.sym.var("data"), layout="NTC", merge_outputs=False)
    assert len(outputs) == 3 and len(states) == 2
    values, _ = _run([*outputs, *states], {"data": (2, 3, 5)})
    assert [value.shape for value in values] == [(2, 4)] * 3 + [(1, 2, 4)] * 2
    np.testing.assert_allclose(values[2], values[3][0], rtol=1e-5)
    with pytest.raises(mx.base.HybridNetError, match="unroll"):
        fused(mx.sym.var("x"), [])
    with pytest.raises(ValueError, match="mode"):
        mx.rnn.FusedRNNCell(4, mode="elman")


def test_residual_cells_add_their_input():
    for cell in (
        mx.rnn.GRUCell(6, prefix="rnn_"),
        mx.rnn.BidirectionalCell(mx.rnn.GRUCell(3, prefix="l_"), mx.rnn.GRUCell(3, prefix="r_")),
    ):
        outputs, _ = mx.rnn.ResidualCell(cell).unroll(3, STEPS, merge_outputs=False)
        group = mx.sym.Group(outputs)
        shapes = dict(zip(group.list_arguments(), group.infer_shape(**_shapes(2, 6))[0], strict=True))
        values = {
            name: mx.nd.zeros(shape) if "data" not in name else mx.nd.ones(shape) * 5 for name, shape in shapes.items()
        }
        for out in group.bind(mx.cpu(), values).forward():
            np.testing.assert_array_equal(out.asnumpy(), np.full((2, 6), 5))
    with pytest.raises(ValueError, match="modifier"):
        cell.begin_state()


def test_stacks_and_both_directions():
    stack = mx.rnn.SequentialRNNCell()
    stack.add(mx.rnn.LSTMCell(6, prefix="s0_"))
    stack.add(mx.rnn.ResidualCell(mx.rnn.LSTMCell(6, prefix="s1_")))
    stack.add(mx.rnn.DropoutCell(0.5))
    stack.add(mx.rnn.LSTMCell(6, prefix="s2_"))
    outputs, states = stack.unroll(3, STEPS)
    assert len(states) == len(stack.state_info) == 6
    assert mx.sym.Group(outputs).list_outputs() == [f"s2_t{i}_out_output" for i in range(3)]
    assert {"s0_i2h_weight", "s1_h2h_bias", "s2_i2h_bias"} <= set(stack.params._params)
    both = mx.rnn.BidirectionalCell(
        mx.rnn.LSTMCell(4, prefix="l_"), mx.rnn.LSTMCell(4, prefix="r_"), output_prefix="bi_"
    )
    outputs, _ = both.unroll(3, STEPS)
    group = mx.sym.Group(outputs)
    assert group.list_outputs() == [f"bi_t{i}_output" for i in range(3)]
    assert group.infer_shape(**_shapes(2, 5))[1] == [(2, 8)] * 3
    with pytest.raises(mx.base.HybridNetError, match="unroll"):
        both(STEPS[0], [])


def test_shared_parameters():
    params = mx.rnn.RNNParams("shared_")
    one, two = mx.rnn.RNNCell(4, prefix="shared_", params=params), mx.rnn.RNNCell(4, prefix="shared_", params=params)
    outputs = one.unroll(1, STEPS[:1])[0] + two.unroll(1, STEPS[1:2])[0]
    assert len(mx.sym.Group(outputs).list_arguments()) == 6
    stack = mx.rnn.SequentialRNNCell(params=mx.rnn.RNNParams())
    with pytest.raises(ValueError, match="not both"):
        stack.add(one)


def test_zoneout():
    cell = mx.rnn.ZoneoutCell(mx.rnn.RNNCell(50, prefix="rnn_"), zoneout_outputs=0.5, zoneout_states=0.5)
    outputs, _ = cell.unroll(2, STEPS[:2])
    group = mx.sym.Group(outputs)
    shapes = {f"rnn_t{i}_data": (4, 5) for i in range(2)}
    found = dict(zip(group.list_arguments(), group.infer_shape(**shapes)[0], strict=True))
    values = {name: mx.nd.random.normal(shape=shape) for name, shape in found.items()}
    first, second = (out.asnumpy() for out in group.bind(mx.cpu(), values).forward(is_train=True))
    assert 0.2 < (first == 0).mean() < 0.8
    assert 0.2 < (first == second).mean() < 0.8
    with pytest.raises(mx.base.HybridNetError, match="zoneout"):
        mx.rnn.ZoneoutCell(mx.rnn.FusedRNNCell(4))


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_convolutional_cells(kind):
    cell = getattr(mx.rnn, f"Conv{kind}Cell")((1, 3, 8, 6), 5, prefix="rnn_", activation="tanh")
    outputs, _ = cell.unroll(3, STEPS)
    group = mx.sym.Group(outputs)
    assert group.list_outputs() == [f"rnn_t{i}_out_output" for i in range(3)]
    values, args = _run(outputs, _shapes(2, 3, 8, 6))
    same = getattr(gluon.contrib.rnn, f"Conv2D{kind}Cell")((3, 8, 6), 5, 3, 3, i2h_pad=1)
    same.initialize()
    for name, param in same.params.items():
        param.set_data(args["rnn_" + name[len(same.prefix) :]])
    expected, _ = same.unroll(3, [args[f"rnn_t{i}_data"] for i in range(3)], layout="NTCHW")
    for ours, theirs in zip(values, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.asnumpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="odd"):
        getattr(mx.rnn, f"Conv{kind}Cell")((1, 3, 8, 6), 5, h2h_kernel=(2, 2))


def test_sentences_as_numbers():
    assert mx.rnn.encode_sentences([["a", "b"], ["b", "c"]], start_label=1) == (
        [[1, 2], [2, 3]],
        {"\n": -1, "a": 1, "b": 2, "c": 3},
    )
    vocab = {"a": 1, "b": 2}
    result, vocab = mx.rnn.io.encode_sentences([["a", "x", "y"]], vocab, unknown_token="UNK")
    assert (result, vocab) == ([[1, 0, 0]], {"a": 1, "b": 2, "UNK": 0})
    with pytest.raises(ValueError, match="Unknown token q"):
        mx.rnn.encode_sentences([["q"]], {"a": 1})


@pytest.mark.parametrize("layout", ["NT", "TN"])
def test_sentences_in_buckets(layout):
    sentences = [[i + 1] * length for i, length in enumerate([2, 3, 3, 2, 5, 4, 9])]
    it = mx.rnn.BucketSentenceIter(sentences, 2, buckets=[5, 3], invalid_label=0, layout=layout)
    assert it.default_bucket_key == 5 and it.provide_data[0].shape == ((2, 5) if layout == "NT" else (5, 2))
    for _ in range(2):
        batches = list(it)
        assert sorted(batch.bucket_key for batch in batches) == [3, 3, 5]
        seen = []
        for batch in batches:
            data, label = (array.asnumpy() for array in (batch.data[0], batch.label[0]))
            if layout == "TN":
                data, label = data.T, label.T
            assert data.shape == (2, batch.bucket_key)
            np.testing.assert_array_equal(label[:, :-1], data[:, 1:])
            seen.extend(data[:, 0])
        assert sorted(seen) == [1, 2, 3, 4, 5, 6]
        it.reset()
    with pytest.raises(ValueError, match="layout"):
        mx.rnn.BucketSentenceIter(sentences, 2, layout="TT")


def test_a_language_model_learns_and_is_stored(tmp_path, rng):
    sentences = [[1, 2, 3, 4][: n % 3 + 2] for n in range(60)]
    it = mx.rnn.BucketSentenceIter(sentences, 5, invalid_label=0)
    cell = mx.rnn.LSTMCell(12)

    def make(length):
        cell.reset()
        embedded = mx.sym.Embedding(mx.sym.var("data"), input_dim=5, output_dim=6, name="embed")
        outputs, _ = cell.unroll(length, embedded, merge_outputs=True)
        scores = mx.sym.FullyConnected(mx.sym.reshape(outputs, shape=(-1, 12)), num_hidden=5, name="out")
        label = mx.sym.reshape(mx.sym.var("softmax_label"), shape=(-1,))
        return mx.sym.SoftmaxOutput(scores, label, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(make, default_bucket_key=it.default_bucket_key)
    prefix = str(tmp_path / "model")
    metric = mx.metric.Perplexity(None)
    module.fit(
        it,
        eval_metric=metric,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.05},
        num_epoch=12,
        epoch_end_callback=mx.rnn.do_rnn_checkpoint(cell, prefix, 6),
    )
    assert metric.get()[1] < 2
    _, args, _ = mx.rnn.load_rnn_checkpoint(cell, prefix, 12)
    stored = mx.model.load_params(prefix, 12)[0]
    assert "lstm_i2h_f_weight" in stored and "lstm_i2h_weight" not in stored
    for name, value in module.get_params()[0].items():
        np.testing.assert_array_equal(args[name].asnumpy(), value.asnumpy())
