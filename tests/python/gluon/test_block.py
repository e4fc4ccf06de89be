"""Block and HybridBlock: forward and hybrid_forward, children, hooks, files, tracing, errors."""

from __future__ import annotations

import json
import subprocess
import sys

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn
from threads import in_threads


class Classic(gluon.HybridBlock):
    """A dense layer and a scale, written with hybrid_forward."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.dense = nn.Dense(3)
            self.scale = self.params.get("scale", shape=(3,), init="ones")

    def hybrid_forward(self, F, x, scale):
        return F.broadcast_mul(self.dense(x), scale) + 1


class Plain(gluon.HybridBlock):
    """The computation of Classic, written with forward."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.dense = nn.Dense(3)
            self.scale = self.params.get("scale", shape=(3,), init="ones")

    def forward(self, x):
        return mx.nd.broadcast_mul(self.dense(x), self.scale.data()) + 1


def _data(rng, *shape):
    return mx.nd.array(rng.normal(size=shape).astype("float32"))


@pytest.mark.parametrize("kind", [Classic, Plain])
def test_both_ways_of_forward_give_values_and_gradients_in_every_mode(kind, rng):
    net = kind(prefix="net_")
    net.initialize(mx.init.Uniform(1))
    x = _data(rng, 4, 5)
    results = []
    for mode in ["imperative", "hybrid", "static"]:
        if mode != "imperative":
            net.hybridize(static_alloc=mode == "static", static_shape=mode == "static")
        for _ in range(2):
            x.attach_grad()
            with autograd.record():
                out = net(x)
                loss = (out * out).sum()
            loss.backward()
            grads = [param.grad().asnumpy() for param in net.collect_params().values()]
            results.append([out.asnumpy(), x.grad.asnumpy(), *grads])
    weight, bias = net.dense.weight.data().asnumpy(), net.dense.bias.data().asnumpy()
    np.testing.assert_allclose(results[0][0], x.asnumpy() @ weight.T + bias + 1, rtol=1e-5)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [Classic, Plain])
def test_both_ways_are_exported_and_loaded(kind, tmp_path, rng):
    net = kind(prefix="net_")
    net.initialize(mx.init.Uniform(1))
    net.hybridize()
    x = _data(rng, 4, 5)
    expected = net(x).asnumpy()
    symbol, params = net.export(str(tmp_path / "net"), epoch=7)
    assert params.endswith("net-0007.params")
    loaded = gluon.SymbolBlock.imports(symbol, ["data"], params)
    np.testing.assert_allclose(loaded(x).asnumpy(), expected, rtol=1e-6)
    loaded.hybridize()
    np.testing.assert_allclose(loaded(x).asnumpy(), expected, rtol=1e-6)
    names = {node["name"] for node in json.loads((tmp_path / "net-symbol.json").read_text())["nodes"]}
    assert {"data", "net_dense0_weight", "net_dense0_bias", "net_scale", "net_dense0_fwd"} <= names


def test_composing_with_symbols_makes_named_nodes():
    net = Classic(prefix="net_")
    out = net(mx.sym.var("data"))
    assert out.list_arguments() == ["data", "net_dense0_weight", "net_dense0_bias", "net_scale"]
    assert "net_dense0_fwd_output" in out.get_internals().list_outputs()


def test_hybrid_forward_may_use_python_values_none_and_nesting():
    class Nested(gluon.HybridBlock):
        def hybrid_forward(self, F, x, states, factor=1, mask=None):
            first, (second, third) = states
            out = x * factor + first
            if mask is not None:
                out = out * mask
            return out, [second + third, {"x": x}["x"]]

    net = Nested()
    one = mx.nd.ones((2,))
    for _ in range(2):
        out, (total, same) = net(one, [one, (one, one)], 3)
        assert out.asnumpy().tolist() == [4, 4]
        assert total.asnumpy().tolist() == [2, 2]
        assert same.asnumpy().tolist() == [1, 1]
        out, _ = net(one, [one, (one, one)], 2, one * 0)
        assert out.asnumpy().tolist() == [0, 0]
        net.hybridize()


def test_forward_that_asks_for_shapes_is_traced_again_for_new_ones():
    class ByRows(gluon.HybridBlock):
        def forward(self, x):
            return x * x.shape[0]

    net = ByRows()
    net.hybridize()
    assert net(mx.nd.ones((2, 1))).asnumpy().ravel().tolist() == [2, 2]
    assert net(mx.nd.ones((3, 1))).asnumpy().ravel().tolist() == [3, 3, 3]


def test_forward_that_asks_for_the_mode_has_a_graph_for_each():
    class ByMode(gluon.HybridBlock):
        def forward(self, x):
            return x * 2 if autograd.is_training() else x

    net = ByMode()
    net.hybridize()
    one = mx.nd.ones((1,))
    assert net(one).asscalar() == 1
    with autograd.record():
        assert net(one).asscalar() == 2
    assert net(one).asscalar() == 1


def test_shapes_may_change_between_calls(rng):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1, activation="relu"), nn.GlobalAvgPool2D(), nn.Dense(2))
    net.initialize(mx.init.Xavier())
    shapes = [(1, 2, 8, 8), (3, 2, 5, 7), (1, 2, 8, 8)]
    inputs = [_data(rng, *shape) for shape in shapes]
    expected = [net(x).asnumpy() for x in inputs]
    net.hybridize()
    for x, wanted in zip(inputs, expected, strict=True):
        np.testing.assert_allclose(net(x).asnumpy(), wanted, rtol=1e-5, atol=1e-6)


def test_branching_on_a_traced_value_is_an_error_with_line_and_fix():
    class Branching(gluon.HybridBlock):
        def forward(self, x):
            if x.sum() > 0:
                return x
            return -x

    net = Branching(prefix="net_")
    assert net(mx.nd.ones((2,))).asnumpy().tolist() == [1, 1]
    net.hybridize(strict=True, autograph=False)
    with pytest.raises(mx.errors.TraceError, match=r"(?s)contrib\.cond.*test_block\.py:\d+") as caught:
        net(mx.nd.ones((2,)))
    assert isinstance(caught.value, TypeError)
    net.hybridize(strict=True)  # with the source converted, the if is a branch of the graph
    for sign in (1, -1):
        assert net(sign * mx.nd.ones((2,))).asnumpy().tolist() == [1, 1]


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_wrong_shape_deep_inside_names_the_path(hybridize):
    net = nn.HybridSequential(prefix="net_")
    body = nn.HybridSequential(prefix="body_")
    body.add(nn.Dense(4, in_units=3), nn.Dense(5, in_units=7))
    net.add(body)
    net.initialize()
    if hybridize:
        net.hybridize()
    with pytest.raises(mx.errors.ShapeError, match=r"(?s)FullyConnected.*net\.0\.1.*\(5, 7\)") as caught:
        net(mx.nd.ones((2, 3)))
    assert caught.value.block == "net.0.1"
    assert isinstance(caught.value, ValueError)


def test_uninitialized_parameters_are_named():
    net = nn.Dense(2, in_units=2, prefix="fc_")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"fc_(weight|bias).*not been initialized"):
            net(mx.nd.ones((1, 2)))
        net.hybridize()


def test_mixed_arrays_and_symbols_are_refused():
    net = nn.HybridLambda(lambda F, x, y: x + y)
    with pytest.raises(ValueError, match="mixed"):
        net(mx.sym.var("a"), mx.nd.ones((1,)))
    with pytest.raises(ValueError, match="one NDArray or one Symbol"):
        net(1, 2)


def test_children_of_a_hybrid_block_must_be_hybrid():
    class Holder(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.child = nn.Sequential()

    with pytest.raises(ValueError, match="must also be HybridBlock"):
        Holder()


def test_attributes_keep_their_kind():
    net = Classic()
    with pytest.raises(TypeError, match="Changing attribute type for dense"):
        net.dense = 3
    with pytest.raises(ValueError, match="Overriding Parameter attribute scale"):
        net.scale = gluon.Parameter("other", shape=(1,))
    net.dense = nn.Dense(4)
    assert net._children["dense"] is net.dense


def test_blocks_in_plain_lists_are_warned_about():
    class Lists(gluon.Block):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Dense(2), {"a": nn.Dense(3)}]

    with pytest.warns(UserWarning, match="unregistered container with Blocks"):
        Lists().collect_params()


def test_hooks_see_inputs_and_outputs_and_can_be_detached():
    net = nn.Dense(2, in_units=2)
    net.initialize(mx.init.One())
    seen = []
    before = net.register_forward_pre_hook(lambda block, inputs: seen.append(("in", block, inputs[0].shape)))
    after = net.register_forward_hook(lambda block, inputs, out: seen.append(("out", block, out.shape)))
    net(mx.nd.ones((3, 2)))
    assert seen == [("in", net, (3, 2)), ("out", net, (3, 2))]
    before.detach()
    with after:
        net(mx.nd.ones((1, 2)))
    assert len(seen) == 3
    net(mx.nd.ones((1, 2)))
    assert len(seen) == 3
    with pytest.raises(ValueError, match="attached twice"):
        before.attach(net._forward_hooks, print)


def test_operator_hooks_see_every_node():
    net = Classic(prefix="net_")
    net.initialize()
    seen = []
    expected = net(mx.nd.ones((2, 4))).asnumpy()
    net.hybridize()
    for monitor_all in (False, True):
        seen.clear()
        net.register_op_hook(lambda name, op, array: seen.append((name, op, array.shape)), monitor_all)
        np.testing.assert_allclose(net(mx.nd.ones((2, 4))).asnumpy(), expected, rtol=1e-6)
        assert ("net_dense0_fwd_output", "FullyConnected", (2, 3)) in seen
        assert (("net_dense0_fwd_weight", "FullyConnected", (3, 4)) in seen) is monitor_all
        assert [op for name, op, _ in seen if name.endswith("output")] == [
            "FullyConnected",
            "broadcast_mul",
            "_plus_scalar",
        ]


def test_apply_visits_children_first():
    net = nn.HybridSequential()
    net.add(nn.Dense(2), nn.Dense(3))
    visited = []
    assert net.apply(lambda block: visited.append(block)) is net
    assert visited == [net[0], net[1], net]


def test_summary_counts_parameters(capsys):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu"), nn.BatchNorm(), nn.Dense(2))
    net.initialize()
    net.summary(mx.nd.ones((3, 5)))
    text = capsys.readouterr().out
    assert f"Total params: {5 * 4 + 4 + 4 * 4 + 4 * 2 + 2}" in text
    assert f"Non-trainable params: {4 * 2}" in text
    assert "(3, 5)" in text
    assert "(3, 2)" in text
    net.hybridize()
    net.summary(mx.nd.ones((3, 5)))
    assert capsys.readouterr().out == text


def test_save_and_load_parameters_by_structure(tmp_path, rng):
    def make(prefix):
        net = nn.HybridSequential(prefix=prefix)
        with net.name_scope():
            net.add(nn.Dense(4), nn.BatchNorm(), nn.Dense(2))
        return net

    file = str(tmp_path / "net.params")
    x = _data(rng, 3, 5)
    net = make("a_")
    net.initialize(mx.init.Uniform(1))
    expected = net(x).asnumpy()
    net.save_parameters(file)
    assert "1.running_mean" in mx.nd.load(file)
    other = make("b_")
    other.load_parameters(file)
    np.testing.assert_array_equal(other(x).asnumpy(), expected)
    other.hybridize()
    np.testing.assert_allclose(other(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_loading_a_file_that_does_not_fit(tmp_path):
    file = str(tmp_path / "net.params")
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3), nn.Dense(2, in_units=4))
    net.initialize()
    net.save_parameters(file)
    small = nn.HybridSequential()
    small.add(nn.Dense(4, in_units=3))
    with pytest.raises(ValueError, match=r"'1\.weight' loaded from file .* is not present"):
        small.load_parameters(file)
    small.load_parameters(file, ignore_extra=True)
    np.testing.assert_array_equal(small[0].weight.data().asnumpy(), net[0].weight.data().asnumpy())
    large = nn.HybridSequential()
    large.add(nn.Dense(4, in_units=3), nn.Dense(2, in_units=4), nn.Dense(1, in_units=2))
    with pytest.raises(ValueError, match=r"'2\.weight' is missing in file"):
        large.load_parameters(file)
    large.initialize()
    large.load_parameters(file, allow_missing=True)
    other = nn.HybridSequential()
    other.add(nn.Dense(4, in_units=9), nn.Dense(2, in_units=4))
    with pytest.raises(ValueError, match=r"dense\d+_weight.*expected \(4, 9\) vs saved \(4, 3\)"):
        other.load_parameters(file)
    with pytest.raises(OSError, match=r"nowhere\.params"):
        net.load_parameters(str(tmp_path / "nowhere.params"))
    content = (tmp_path / "net.params").read_bytes()
    (tmp_path / "net.params").write_bytes(content[: len(content) // 2])
    with pytest.raises(mx.errors.FormatError, match=r"net\.params"):
        net.load_parameters(file)


def test_shared_parameters_are_saved_once_if_asked(tmp_path):
    def make():
        net = nn.HybridSequential()
        first = nn.Dense(3, in_units=3)
        net.add(first, nn.Dense(3, in_units=3, params=first.params))
        return net

    net = make()
    net.initialize()
    file = str(tmp_path / "net.params")
    net.save_parameters(file, deduplicate=True)
    assert len(mx.nd.load(file)) == 2
    other = make()
    other.load_parameters(file)
    np.testing.assert_array_equal(other[0].weight.data().asnumpy(), net[1].weight.data().asnumpy())


def test_export_needs_a_call_first(tmp_path):
    net = nn.Dense(2, in_units=2)
    net.initialize()
    with pytest.raises(RuntimeError, match=r"hybridize\(\).*forward"):
        net.export(str(tmp_path / "net"))


def test_export_after_training_is_the_graph_for_inference(tmp_path, rng):
    net = nn.HybridSequential()
    net.add(nn.Dense(4), nn.BatchNorm(), nn.Dropout(0.5), nn.Dense(2))
    net.initialize(mx.init.Uniform(1))
    net.hybridize()
    x = _data(rng, 6, 3)
    with autograd.record():
        net(x)
    net.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    np.testing.assert_allclose(loaded(x).asnumpy(), net(x).asnumpy(), rtol=1e-5, atol=1e-6)


def test_symbol_block_from_internals_extracts_features(rng):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(4, activation="relu"), nn.Dense(2))
    net.initialize(mx.init.Uniform(1))
    data = mx.sym.var("data")
    internals = net(data).get_internals()
    features = gluon.SymbolBlock(internals["net_dense0_relu_fwd_output"], data, params=net.collect_params())
    x = _data(rng, 3, 5)
    full = net(x).asnumpy()
    hidden = features(x).asnumpy()
    weight, bias = net[1].weight.data().asnumpy(), net[1].bias.data().asnumpy()
    np.testing.assert_allclose(hidden @ weight.T + bias, full, rtol=1e-5, atol=1e-5)


def test_symbol_block_trains(tmp_path, rng):
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="tanh"), nn.Dense(1))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    x = _data(rng, 32, 3)
    y = x.sum(axis=1, keepdims=True)
    net(x)
    loaded = gluon.SymbolBlock.imports(*_exported(net, tmp_path))
    trainer = gluon.Trainer(loaded.collect_params(), "sgd", {"learning_rate": 0.3})
    loss_of = gluon.loss.L2Loss()
    losses = []
    for _ in range(60):
        with autograd.record():
            loss = loss_of(loaded(x), y)
        loss.backward()
        trainer.step(32)
        losses.append(float(loss.mean().asscalar()))
    assert losses[-1] < 0.5 * losses[0]


def _exported(net, folder):
    symbol, params = net.export(str(folder / "net"))
    return symbol, ["data"], params


def test_imports_names_wrong_files_and_parameters(tmp_path, rng):
    net = nn.Dense(2, in_units=3, prefix="fc_")
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 3)))
    symbol, _, params = _exported(net, tmp_path)
    with pytest.raises(OSError, match=r"missing-symbol\.json"):
        gluon.SymbolBlock.imports(str(tmp_path / "missing-symbol.json"), ["data"])
    with pytest.raises(OSError, match=r"missing\.params"):
        gluon.SymbolBlock.imports(symbol, ["data"], str(tmp_path / "missing.params"))
    text = (tmp_path / "net-symbol.json").read_text()
    (tmp_path / "net-symbol.json").write_text(text.replace("FullyConnected", "FullyConected"))
    with pytest.raises(mx.MXNetError, match=r"(?s)FullyConected.*fc_fwd.*net-symbol\.json"):
        gluon.SymbolBlock.imports(symbol, ["data"], params)


def test_multiple_outputs_and_inputs_keep_their_structure(tmp_path, rng):
    class Two(gluon.HybridBlock):
        def hybrid_forward(self, F, a, b):
            return a + b, a - b

    net = Two()
    net.hybridize()
    a, b = _data(rng, 2, 2), _data(rng, 2, 2)
    total, difference = net(a, b)
    symbol, params = net.export(str(tmp_path / "two"))
    loaded = gluon.SymbolBlock.imports(symbol, ["data0", "data1"], params)
    for got, wanted in zip(loaded(a, b), (total, difference), strict=True):
        np.testing.assert_array_equal(got.asnumpy(), wanted.asnumpy())


def test_cast_changes_parameters_and_graphs(rng):
    net = nn.HybridSequential()
    net.add(nn.Dense(4), nn.Dense(2))
    net.initialize(mx.init.Uniform(1))
    net.hybridize()
    x = _data(rng, 3, 5)
    expected = net(x).asnumpy()
    net.cast("float64")
    out = net(x.astype("float64"))
    assert out.dtype == np.float64
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_an_unused_input_is_warned_about():
    net = nn.HybridLambda(lambda F, x, y: x * 2)
    net.hybridize()
    with pytest.warns(UserWarning, match="1-th input .* not used"):
        net(mx.nd.ones((1,)), mx.nd.ones((1,)))


def test_hybridize_arguments():
    net = nn.Dense(2)
    with pytest.raises(ValueError, match="unknown backend 'TensorRT'"):
        net.hybridize(backend="TensorRT")
    with pytest.raises(ValueError, match="backend"):
        net.optimize_for(mx.nd.ones((1, 2)))


def test_switching_hybridization_off_runs_operators_again(rng):
    calls = []

    class Counting(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            calls.append(F)
            return x + 1

    net = Counting()
    x = mx.nd.ones((1,))
    net(x)
    net(x)
    net.hybridize()
    net(x)
    net(x)
    assert calls == [mx.nd, mx.nd, mx.sym]
    net.hybridize(False)
    net(x)
    assert calls[-1] is mx.nd


def test_threads_may_call_one_hybridized_block(rng):
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dense(4))
    net.initialize(mx.init.Xavier())
    inputs = [_data(rng, n + 1, 8) for n in range(8)]
    expected = [net(x).asnumpy() for x in inputs]
    net.hybridize()
    results = [None] * len(inputs)

    def work(i):
        for _ in range(20):
            results[i] = net(inputs[i]).asnumpy()

    in_threads(len(inputs), work)
    for got, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_forward_must_be_written():
    with pytest.raises(NotImplementedError, match="Block must override forward"):
        gluon.Block()(1)
    with pytest.raises(NotImplementedError, match="override hybrid_forward"):
        gluon.HybridBlock()(mx.nd.ones((1,)))


def test_representation_shows_the_tree():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2, activation="relu"), nn.Conv2D(4, 3, in_channels=1))
    text = repr(net)
    assert "(0): Dense(2 -> 3, Activation(relu))" in text
    assert "(1): Conv2D(1 -> 4, kernel_size=(3, 3), stride=(1, 1))" in text


# -- save and load -----------------------------------------------------------------------------------------------------


class _Chain(gluon.Block):
    """A block with children whose names differ from object to object."""

    def add(self, *blocks):
        for block in blocks:
            self._children[block.name] = block
        return self

    def forward(self, x):
        for block in self._children.values():
            x = block(x)
        return x


def test_a_model_is_saved_with_the_names_of_its_blocks(tmp_path):
    def make():
        return _Chain().add(_Chain().add(nn.Dense(4), nn.Dense(5)), nn.Dense(3))

    prefix, x = str(tmp_path / "chain"), mx.nd.random.normal(shape=(2, 6))
    first = make()
    first.initialize(mx.init.Normal(1))
    first.hybridize()
    expected = first(x).asnumpy()
    first.save(prefix)
    second = make()
    assert list(second._children) != list(first._children)
    second.load(prefix)
    assert list(second._children) == list(first._children)
    assert all(block._active for block in second._children.values() if isinstance(block, gluon.HybridBlock))
    np.testing.assert_allclose(second(x).asnumpy(), expected, rtol=1e-5)


def test_a_model_of_another_structure_is_refused(tmp_path):
    prefix = str(tmp_path / "chain")
    net = _Chain().add(nn.Dense(4, in_units=2))
    net.initialize()
    net.save(prefix)
    for other in (_Chain().add(nn.Flatten()), _Chain().add(nn.Dense(4), nn.Dense(4))):
        with pytest.raises(mx.base.HybridNetError, match="another structure"):
            other.load(prefix)
    with pytest.raises(mx.base.HybridNetError, match="cannot read"):
        net.load(str(tmp_path / "nothing"))
    for broken in ("{", "[]", '{"_chain0": {"children": {"a": "b"}, "dense1": 3}}'):
        (tmp_path / "chain-model.json").write_text(broken)
        with pytest.raises(mx.base.HybridNetError, match="describes no model"):
            net.load(prefix)


@pytest.mark.parametrize("operator", ["split", "group"])
def test_an_operator_of_several_outputs_gives_a_list_hybridized_too(operator, tmp_path, rng):
    class Parts(gluon.HybridBlock):
        def hybrid_forward(self, F, data):
            return (
                F.split(data * 2, num_outputs=2)
                if operator == "split" or F is mx.nd
                else F.Group([*F.split(data * 2, num_outputs=2)])
            )

    net, data = Parts(), _data(rng, 2, 6)
    net.hybridize()
    parts = net(data)
    assert isinstance(parts, list)
    wanted = np.split(data.asnumpy() * 2, 2, axis=1)
    loaded = gluon.SymbolBlock.imports(*net.export(str(tmp_path / "parts"))[:1], ["data"])
    for got, again, part in zip(parts, loaded(data), wanted, strict=True):
        np.testing.assert_array_equal(got.asnumpy(), part)
        np.testing.assert_array_equal(again.asnumpy(), part)


def test_hybridize_without_queries_leaves_the_rewrite_package_alone() -> None:
    program = """
import sys
import hybridnet as mx
net = mx.gluon.nn.Dense(2, in_units=3)
net.initialize()
net.hybridize()
net(mx.nd.zeros((1, 3))).wait_to_read()
print("hybridnet.rewrite" in sys.modules)
"""
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "False"
