"""contrib.quantization: int8 networks predict like their float networks, for every way to make and run them."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.contrib import quantization
from hybridnet.errors import DTypeError, UnsupportedError
from hybridnet.gluon import nn
from sklearn.datasets import load_digits

QUANTIZED_DTYPES = ["int8", "uint8", "auto"]


def operators(symbol) -> list[str]:
    return [node["op"] for node in json.loads(symbol.tojson())["nodes"] if node["op"] != "null"]


def node_of(symbol, name):
    (found,) = [node for node in json.loads(symbol.tojson())["nodes"] if node["name"] == name]
    return found


def graph_of(block):
    return block._cached_graph[1]


def range_in(node) -> tuple[float, float]:
    return float(node["attrs"]["min_calib_range"]), float(node["attrs"]["max_calib_range"])


def evaluate(symbol, arg_params, aux_params, data):
    executor = symbol.bind(mx.cpu(), {"data": mx.nd.array(data), **arg_params}, aux_states=aux_params)
    return executor.forward()[0].asnumpy()


class Digits:
    """A small trained convolutional network for handwritten digits, and the digits."""

    def __init__(self) -> None:
        images, labels = load_digits(return_X_y=True)
        images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
        order = np.random.default_rng(0).permutation(len(images))
        test, train = order[:400], order[400:]
        self.train, self.train_labels = images[train], labels[train].astype("float32")
        self.test, self.labels = images[test], labels[test]
        mx.random.seed(3)
        self.net = self._network()
        self._fit()

    @staticmethod
    def _network():
        net = nn.HybridSequential(prefix="digits_")
        with net.name_scope():
            net.add(
                nn.Conv2D(16, 3, padding=1),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.MaxPool2D(),
                nn.Conv2D(32, 3, padding=1, activation="relu"),
                nn.MaxPool2D(),
                nn.Flatten(),
                nn.Dense(64, activation="relu"),
                nn.Dropout(0.3),
                nn.Dense(10),
            )
        net.initialize(mx.init.Xavier())
        net.hybridize()
        return net

    def _fit(self) -> None:
        trainer = gluon.Trainer(self.net.collect_params(), "adam", {"learning_rate": 0.003})
        loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
        for _ in range(6):
            for begin in range(0, len(self.train), 64):
                images = mx.nd.array(self.train[begin : begin + 64])
                with autograd.record():
                    loss = loss_of(self.net(images), mx.nd.array(self.train_labels[begin : begin + 64]))
                loss.backward()
                trainer.step(images.shape[0])

    def loader(self, batch_size: int = 50):
        data = gluon.data.ArrayDataset(self.train[:200], self.train_labels[:200])
        return gluon.data.DataLoader(data, batch_size=batch_size)

    def accuracy(self, block) -> float:
        return float((block(mx.nd.array(self.test)).asnumpy().argmax(1) == self.labels).mean())


@pytest.fixture(scope="module")
def digits() -> Digits:
    return Digits()


def lenet():
    """Symbol and parameters of a network: convolution, BatchNorm, relu, a sum of two paths, dense layers."""
    data = mx.sym.var("data")
    first = mx.sym.Convolution(data, kernel=(3, 3), num_filter=8, pad=(1, 1), name="conv0")
    norm = mx.sym.BatchNorm(first, fix_gamma=False, name="bn0")
    relu = mx.sym.Activation(norm, act_type="relu", name="relu0")
    pooled = mx.sym.Pooling(relu, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool0")
    second = mx.sym.Convolution(pooled, kernel=(3, 3), num_filter=8, pad=(1, 1), no_bias=True, name="conv1")
    total = mx.sym.elemwise_add(mx.sym.Activation(second, act_type="relu", name="relu1"), pooled, name="add0")
    dense = mx.sym.FullyConnected(mx.sym.Flatten(total, name="flat0"), num_hidden=10, name="fc0")
    out = mx.sym.SoftmaxOutput(dense, name="softmax")
    draw = np.random.default_rng(0)
    shapes, _, states = out.infer_shape(data=(2, 3, 8, 8))
    args = {
        name: mx.nd.array(draw.normal(size=shape, scale=1 / np.sqrt(np.prod(shape[1:]) or 1)))
        for name, shape in zip(out.list_arguments(), shapes, strict=True)
        if name not in ("data", "softmax_label")
    }
    aux = {
        name: mx.nd.array(np.abs(draw.normal(size=shape)) + 0.1)
        for name, shape in zip(out.list_auxiliary_states(), states, strict=True)
    }
    return out, args, aux


IMAGES = np.random.default_rng(1).normal(size=(32, 3, 8, 8)).astype("float32")


def images_iter(batch_size=8):
    return mx.io.NDArrayIter(IMAGES, np.zeros(32), batch_size=batch_size, label_name="softmax_label")


# --------------------------------------------------------------------------------------------------------------- blocks


@pytest.mark.parametrize("quantized_dtype", QUANTIZED_DTYPES)
@pytest.mark.parametrize("quantize_mode", ["full", "smart"])
@pytest.mark.parametrize("calib_mode", ["none", "naive", "entropy"])
def test_a_network_of_bytes_reads_digits_as_its_float_network(digits, calib_mode, quantize_mode, quantized_dtype):
    quantized = quantization.quantize_net(
        digits.net,
        quantized_dtype=quantized_dtype,
        quantize_mode=quantize_mode,
        calib_mode=calib_mode,
        calib_data=None if calib_mode == "none" else digits.loader(),
        data_shapes=[(1, 1, 8, 8)] if calib_mode == "none" else None,
    )
    assert digits.accuracy(quantized) >= 0.99 * digits.accuracy(digits.net)
    assert "Convolution" not in operators(graph_of(quantized))


def test_values_of_bytes_stay_near_those_of_floats(digits):
    quantized = quantization.quantize_net(digits.net, calib_mode="naive", calib_data=digits.loader())
    images = mx.nd.array(digits.test)
    exact, given = digits.net(images).asnumpy(), quantized(images).asnumpy()
    assert np.abs(given - exact).max() < 0.1 * np.abs(exact).max()


def test_a_residual_network_of_bytes_stays_near_its_float_network():
    mx.random.seed(7)
    net = gluon.model_zoo.vision.resnet18_v1(thumbnail=True, classes=10)
    net.initialize(mx.init.Xavier(magnitude=2))
    images = mx.nd.random.normal(shape=(16, 3, 32, 32))
    with autograd.train_mode():
        for _ in range(20):
            net(images)  # updates the running statistics
    net.hybridize()
    quantized = quantization.quantize_net(net, calib_mode="naive", calib_data=[images])
    exact, given = net(images).asnumpy(), quantized(images).asnumpy()
    assert np.abs(given - exact).max() < 0.1 * np.abs(exact).max()
    assert (given.argmax(1) == exact.argmax(1)).mean() >= 0.9
    assert not {"BatchNorm", "Activation", "Convolution"} & set(operators(graph_of(quantized)))


@pytest.mark.parametrize("quantized_dtype", ["int8", "auto"])
def test_plans_that_fuse_layers_equal_single_operators(quantized_dtype):
    mx.random.seed(5)
    net = gluon.model_zoo.vision.resnet18_v1(thumbnail=True, classes=10)
    net.initialize(mx.init.Xavier(magnitude=2))
    images = mx.nd.random.normal(shape=(4, 3, 32, 32))
    quantized = quantization.quantize_net(net, quantized_dtype=quantized_dtype, calib_mode="naive", calib_data=[images])
    fused = quantized(images).asnumpy()
    assert "_fused_quantized_conv" in quantized.plan_text()
    quantized.hybridize(passes="fast_run,-fusion")
    single = quantized(images).asnumpy()
    assert "_fused" not in quantized.plan_text()
    assert np.abs(fused - single).max() < 0.05 * np.abs(single).max()


def test_the_result_runs_exported_and_loaded_again(digits, tmp_path):
    quantized = quantization.quantize_net(digits.net, calib_mode="entropy", calib_data=digits.loader())
    images = mx.nd.array(digits.test)
    expected = quantized(images).asnumpy()
    files = quantized.export(str(tmp_path / "digits"))
    loaded = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    np.testing.assert_array_equal(loaded(images).asnumpy(), expected)
    assert {np.dtype(p.dtype).name for n, p in loaded.collect_params().items() if n.endswith("_quantize")} == {"int8"}


def test_networks_of_numpy_arrays_give_such_arrays():
    mx.npx.set_np()
    try:
        net = nn.HybridSequential()
        net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Dense(5))
        net.initialize()
        images = mx.np.random.normal(size=(8, 3, 8, 8))
        expected = net(images)
        for options in ({"calib_data": [images], "calib_mode": "naive"}, {"data_shapes": [(8, 3, 8, 8)]}):
            given = quantization.quantize_net(net, **options)(images)
            assert type(given) is type(expected)
            assert mx.np.abs(given - expected).max() < 0.1 * mx.np.abs(expected).max()
    finally:
        mx.npx.reset_np()


def test_quantized_networks_and_loaded_ones_can_be_quantized(digits, tmp_path):
    images = mx.nd.array(digits.test)
    digits.net(images)
    files = digits.net.export(str(tmp_path / "digits"))
    loaded = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    once = quantization.quantize_net(loaded, calib_mode="naive", calib_data=digits.loader())
    assert digits.accuracy(once) >= 0.99 * digits.accuracy(digits.net)
    twice = quantization.quantize_net(once, calib_mode="naive", calib_data=digits.loader())
    np.testing.assert_array_equal(twice(images).asnumpy(), once(images).asnumpy())


def test_results_keep_their_structure():
    class Heads(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Dense(4), nn.Dense(3)

        def hybrid_forward(self, F, x):
            return [self.first(x), (self.second(x), x)]

    net = Heads()
    net.initialize()
    x = mx.nd.random.normal(shape=(6, 5))
    first, (second, same) = quantization.quantize_net(net, calib_mode="naive", calib_data=[x])(x)
    assert first.shape == (6, 4) and second.shape == (6, 3)
    np.testing.assert_array_equal(same.asnumpy(), x.asnumpy())


def test_batches_of_any_kind_calibrate(digits):
    images, labels = digits.train[:100], digits.train_labels[:100]
    arrays = mx.nd.array(images), mx.nd.array(labels)
    sources = {
        "iterator": mx.io.NDArrayIter(images, labels, batch_size=50),
        "loader": gluon.data.DataLoader(gluon.data.ArrayDataset(images, labels), batch_size=50),
        "arrays": [arrays[0][:50], arrays[0][50:]],
        "numpy": [images[:50], images[50:]],
        "with labels": [(arrays[0][:50], arrays[1][:50]), (arrays[0][50:], arrays[1][50:])],
        "generator": (batch for batch in (images[:50], images[50:])),
    }
    graphs = {
        kind: graph_of(quantization.quantize_net(digits.net, calib_mode="naive", calib_data=data)).tojson()
        for kind, data in sources.items()
    }
    assert len(set(graphs.values())) == 1


def test_networks_of_several_inputs_are_calibrated_with_all_of_them():
    class Pair(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Dense(4, in_units=3), nn.Dense(4, in_units=5)

        def hybrid_forward(self, F, a, b):
            return self.left(a) + self.right(b)

    net = Pair()
    net.initialize()
    a, b = mx.nd.random.normal(shape=(6, 3)), mx.nd.random.normal(shape=(6, 5))
    for data in ([(a, b)], [(a, b, mx.nd.zeros(6))]):
        quantized = quantization.quantize_net(
            net, calib_mode="naive", calib_data=data, data_shapes=[(6, 3), (6, 5)] if len(data[0]) == 3 else None
        )
        np.testing.assert_allclose(quantized(a, b).asnumpy(), net(a, b).asnumpy(), atol=0.02)


@pytest.mark.parametrize(
    "options",
    [
        {"exclude_layers": ["digits_conv0_fwd"]},
        {"exclude_layers_match": ["conv0"]},
    ],
)
def test_excluded_layers_stay_float(digits, options):
    quantized = quantization.quantize_net(digits.net, calib_mode="naive", calib_data=digits.loader(), **options)
    assert operators(graph_of(quantized)).count("Convolution") == 1
    assert node_of(graph_of(quantized), "digits_conv0_fwd")["op"] == "Convolution"
    weight = quantized.collect_params()["digits_conv0_weight"]
    np.testing.assert_array_equal(weight.data().asnumpy(), digits.net[0].weight.data().asnumpy())
    assert digits.accuracy(quantized) >= 0.99 * digits.accuracy(digits.net)


def test_excluded_operators_stay_float(digits):
    quantized = quantization.quantize_net(
        digits.net, exclude_operators=["FullyConnected", "Pooling"], calib_mode="naive", calib_data=digits.loader()
    )
    assert operators(graph_of(quantized)).count("FullyConnected") == 2
    assert operators(graph_of(quantized)).count("Pooling") == 2


def test_the_float_network_stays_as_it_is(digits):
    before = {name: param.data().asnumpy() for name, param in digits.net.collect_params().items()}
    quantization.quantize_net(digits.net, calib_mode="naive", calib_data=digits.loader())
    for name, param in digits.net.collect_params().items():
        np.testing.assert_array_equal(param.data().asnumpy(), before[name])


def test_quantize_net_v2_takes_a_collector_of_the_users(digits):
    class Symmetric(quantization.CalibrationCollector):
        def collect(self, name, arr):
            reach = float(arr.abs().max().asscalar())
            before = self.min_max_dict.get(name, (0.0, 0.0))[1]
            self.min_max_dict[name] = (-max(reach, before), max(reach, before))

    collector = Symmetric()
    quantized = quantization.quantize_net_v2(
        digits.net, calib_mode="customize", calib_data=digits.loader(), LayerOutputCollector=collector
    )
    assert range_in(node_of(graph_of(quantized), "data_quantize")) == (-1.0, 1.0)
    assert "data" in collector.min_max_dict and "digits_conv0_fwd_output" not in collector.min_max_dict
    assert digits.accuracy(quantized) >= 0.99 * digits.accuracy(digits.net)


def test_no_more_than_the_wanted_examples_are_read(digits):
    seen = []

    class Counting(quantization.CalibrationCollector):
        def collect(self, name, arr):
            seen.append(name)
            self.min_max_dict[name] = (-1.0, 1.0)

    quantization.quantize_net_v2(
        digits.net,
        calib_mode="customize",
        calib_data=digits.loader(50),
        num_calib_examples=75,
        LayerOutputCollector=Counting(),
    )
    assert seen.count("data") == 2


def test_values_that_do_not_fit_into_memory_together_are_seen_in_parts(digits, monkeypatch):
    graphs = []
    for limit in (quantization._graph.WATCHED_BYTES, 200_000):
        monkeypatch.setattr(quantization._graph, "WATCHED_BYTES", limit)
        quantized = quantization.quantize_net(digits.net, calib_mode="naive", calib_data=digits.loader())
        graphs.append(graph_of(quantized).tojson())
    assert graphs[0] == graphs[1]


def test_progress_is_logged(digits, caplog):
    logger = logging.getLogger("quantizing")
    with caplog.at_level(logging.DEBUG, "quantizing"):
        quantization.quantize_net(digits.net, calib_mode="naive", calib_data=digits.loader(), logger=logger)
    assert "Calibrated with 200 examples in 4 batches" in caplog.text
    assert "values of data from 0 to 1" in caplog.text


# --------------------------------------------------------------------------------------------------------------- graphs


@pytest.mark.parametrize("quantize", [quantization.quantize_model, quantization.quantize_model_mkldnn])
def test_a_quantized_model_runs_in_a_module(quantize, tmp_path):
    symbol, args, aux = lenet()
    qsym, qargs, qaux = quantize(
        symbol, args, aux, calib_data=images_iter(), calib_mode="naive", quantized_dtype="auto"
    )
    results = []
    for graph, arguments, states in ((symbol, args, aux), (qsym, qargs, qaux)):
        module = mx.mod.Module(graph)
        module.bind(images_iter().provide_data, images_iter().provide_label, for_training=False)
        module.set_params(arguments, states)
        results.append(module.predict(images_iter()).asnumpy())
    assert np.abs(results[0] - results[1]).max() < 0.05
    mx.model.save_checkpoint(str(tmp_path / "model"), 1, qsym, qargs, qaux)
    again = mx.model.load_checkpoint(str(tmp_path / "model"), 1)
    data = {"data": mx.nd.array(IMAGES), "softmax_label": mx.nd.zeros(32)}
    outputs = [
        s.bind(mx.cpu(), {**data, **a}, aux_states=x).forward()[0].asnumpy() for s, a, x in ((qsym, qargs, qaux), again)
    ]
    np.testing.assert_array_equal(*outputs)


def test_nodes_and_parameters_have_the_names_of_mxnet():
    symbol, args, aux = lenet()
    qsym, qargs, qaux = quantization.quantize_model(symbol, args, aux, calib_mode="none", quantize_mode="full")
    names = [node["name"] for node in json.loads(qsym.tojson())["nodes"] if node["op"] != "null"]
    assert names == [
        "data_quantize",
        "quantized_conv0",
        "requantize_conv0",
        "quantized_relu0",
        "quantized_pool0",
        "quantized_conv1",
        "requantize_conv1",
        "quantized_relu1",
        "quantized_add0",
        "requantize_add0",
        "quantized_flat0",
        "quantized_fc0",
        "requantize_fc0",
        "fc0_dequantize",
        "softmax",
    ]
    weights = ["conv0_weight", "conv0_bias", "conv1_weight", "fc0_weight", "fc0_bias"]
    assert set(qargs) == {f"{name}_quantize{end}" for name in weights for end in ("", "_min", "_max")}
    assert qaux == {}


def test_weights_are_quantized_as_the_operator_does():
    symbol, args, aux = lenet()
    _, qargs, _ = quantization.quantize_model(symbol, args, aux, calib_mode="none")
    weight = args["conv1_weight"].asnumpy()
    reach = np.abs(weight).max()
    np.testing.assert_allclose(qargs["conv1_weight_quantize_max"].asnumpy(), [reach], rtol=1e-6)
    np.testing.assert_allclose(
        qargs["conv1_weight_quantize"].asnumpy().astype("float32") * reach / 127, weight, atol=reach / 127
    )


def test_smart_mode_leaves_isolated_layers_float():
    data = mx.sym.var("data")
    product = mx.sym.FullyConnected(mx.sym.Activation(data, act_type="relu", name="relu0"), num_hidden=4, name="fc0")
    out = mx.sym.FullyConnected(mx.sym.Activation(product, act_type="relu", name="relu1"), num_hidden=4, name="fc1")
    out = mx.sym.Activation(mx.sym.sin(out), act_type="relu", name="relu2")
    shapes, _, _ = out.infer_shape(data=(2, 3))
    args = {n: mx.nd.ones(s) for n, s in zip(out.list_arguments(), shapes, strict=True) if n != "data"}

    def kinds(mode):
        qsym, _, _ = quantization.quantize_model(out, args, {}, calib_mode="none", quantize_mode=mode)
        return operators(qsym)

    assert kinds("smart").count("Activation") == 2 and kinds("smart").count("_contrib_quantized_act") == 1
    assert kinds("full").count("Activation") == 0 and kinds("full").count("_contrib_quantized_act") == 3


def test_with_ranges_a_relu_is_part_of_the_bytes_before_it():
    symbol, args, aux = lenet()

    def quantized(**options):
        return quantization.quantize_model(
            symbol, args, aux, calib_mode="naive", calib_data=images_iter(), quantize_mode="full", **options
        )[0]

    graph = quantized(quantized_dtype="auto")
    assert "_contrib_quantized_act" not in operators(graph)
    assert range_in(node_of(graph, "requantize_conv0"))[0] == 0
    assert "_contrib_quantized_act" in operators(quantized(quantized_dtype="int8"))


def test_clips_from_zero_are_part_of_the_bytes_before_them():
    data = mx.sym.var("data")
    layer = mx.sym.clip(mx.sym.FullyConnected(data, num_hidden=8, name="fc0"), a_min=0, a_max=1, name="clip0")
    out = mx.sym.FullyConnected(layer, num_hidden=3, name="fc1")
    draw = np.random.default_rng(0)
    shapes, _, _ = out.infer_shape(data=(2, 4))
    args = {n: mx.nd.array(draw.normal(size=s)) for n, s in zip(out.list_arguments(), shapes, strict=True)}
    data = args.pop("data")
    qsym, qargs, _ = quantization.quantize_model(
        out, args, {}, calib_mode="naive", calib_data=[data], quantized_dtype="auto"
    )
    assert "clip" not in operators(qsym) and operators(qsym).count("_contrib_quantize_v2") == 1
    expected = evaluate(out, args, {}, data.asnumpy())
    np.testing.assert_allclose(evaluate(qsym, qargs, {}, data.asnumpy()), expected, atol=0.1)


def test_calibration_by_the_program_itself_gives_the_same_ranges():
    symbol, args, aux = lenet()
    whole, _, _ = quantization.quantize_model(
        symbol,
        args,
        aux,
        calib_mode="naive",
        calib_data=images_iter(),
        quantize_mode="full",
        excluded_sym_names=["bn0"],
    )
    qsym, qargs, qaux, collector = quantization.quantize_graph(
        symbol, args, aux, calib_mode="naive", excluded_sym_names=["bn0"]
    )
    assert set(collector.include_layer) >= {"data", "conv0_output", "fc0_output"}
    executor = symbol.simple_bind(mx.cpu(), data=(8, 3, 8, 8), grad_req="null")
    executor.copy_params_from(args, aux)
    executor.set_monitor_callback(collector.collect, monitor_all=True)
    for batch in images_iter():
        executor.forward(data=batch.data[0])
    assert "data" in collector.min_max_dict
    for parameters in (args, qargs):
        calibrated, cargs, caux = quantization.calib_graph(qsym, parameters, aux, collector, calib_mode="naive")
        assert set(cargs) == set(qargs) and set(caux) == set(qaux)
        for name in ("data_quantize", "requantize_conv0", "requantize_add0", "requantize_fc0"):
            assert range_in(node_of(calibrated, name)) == range_in(node_of(whole, name))


# ---------------------------------------------------------------------------------------------------------- calibration


def test_naive_ranges_are_the_least_and_the_largest_values():
    symbol, args, aux = lenet()
    qsym, _, _ = quantization.quantize_model(
        symbol, args, aux, calib_mode="naive", calib_data=images_iter(), quantized_dtype="auto", quantize_mode="full"
    )
    inside = symbol.get_internals()
    sums = inside["add0_output"]
    states = {n: aux[n] for n in sums.list_auxiliary_states()}
    used = {n: args[n] for n in sums.list_arguments() if n != "data"}
    values = evaluate(sums, used, states, IMAGES)
    np.testing.assert_allclose(range_in(node_of(qsym, "requantize_add0")), (0, values.max()), rtol=1e-5)
    np.testing.assert_allclose(range_in(node_of(qsym, "data_quantize")), (IMAGES.min(), IMAGES.max()), rtol=1e-5)


def divergences(counts, edges, num_bytes):
    """Kullback-Leibler divergences of bytes from values (Migacz, GTC 2017) by end of the range, in plain loops."""

    def smooth(p):
        zeros, others = (p == 0).sum(), (p != 0).sum()
        return np.where(p == 0, 1e-4, p - 1e-4 * zeros / others) if others else None

    middle = len(counts) // 2
    found = {}
    for reach in range(num_bytes // 2, middle + 1):
        inside = counts[middle - reach : middle + reach + 1].astype(float)
        p = inside.copy()
        p[0] += counts[: middle - reach].sum()
        p[-1] += counts[middle + reach + 1 :].sum()
        inside[0] = 0  # the first bin holds the values outside of the range
        merged = len(p) // num_bytes
        q = np.zeros_like(p)
        for byte in range(num_bytes):
            begin, end = byte * merged, len(p) if byte == num_bytes - 1 else (byte + 1) * merged
            if filled := np.count_nonzero(inside[begin:end]):
                q[begin:end][p[begin:end] != 0] = inside[begin:end].sum() / filled
        p, q = smooth(p), smooth(q)
        if p is None or q is None or (p <= 0).any() or (q <= 0).any():
            continue
        p, q = p / p.sum(), q / q.sum()
        found[edges[middle + reach + 1]] = (p * np.log(p / q)).sum()
    return found


@pytest.mark.parametrize("distribution", ["normal", "laplace", "relu"])
def test_entropy_ranges_are_those_of_plain_loops(distribution, rng):
    draw = {"normal": rng.normal, "laplace": rng.laplace, "relu": rng.normal}[distribution]
    values = draw(size=(4, 5000)).astype("float32")
    if distribution == "relu":
        values = np.maximum(values, 0)
    collector = quantization._collectors.LayerHistogramCollector(num_bins=1001)
    for batch in values:
        collector.collect("x", mx.nd.array(batch))
    counts, edges, low, high, reach = collector.hist_dict["x"]
    assert counts.sum() == values.size and low == values.min() and high == values.max()
    assert edges[-1] == pytest.approx(reach) and len(counts) % 2 == 1
    for dtype in ("int8", "auto"):
        without_sign = dtype == "auto" and low >= 0
        by_end = divergences(counts, edges, 511 if without_sign else 255)
        low_end, high_end = collector.ranges(dtype)["x"]
        (chosen,) = [value for end, value in by_end.items() if end == pytest.approx(high_end, rel=1e-6)]
        assert chosen <= 1.001 * min(by_end.values())  # float32 may choose a neighboring end
        assert low_end == (0 if without_sign else -high_end)


@pytest.mark.parametrize("array", [np.asarray, mx.nd.array], ids=["numpy", "NDArray"])
def test_histograms_grow_where_values_lie_outside(array):
    counts, edges = np.histogram(np.array([1.0, 2, -3]), bins=7, range=(-3, 3))
    inside = quantization.combine_histogram((counts, edges, -3.0, 2.0, 3.0), array([0.1, 1.0, 2.0]), 0.1, 2.0, 2.0)
    np.testing.assert_array_equal(inside[0], [1, 0, 0, 1, 2, 2, 0])
    assert inside[2:] == (-3.0, 2.0, 3.0)
    wider = quantization.combine_histogram((counts, edges, -3.0, 2.0, 3.0), array([0.1, 4.0, 2.0]), 0.1, 4.0, 4.0)
    np.testing.assert_array_equal(wider[0], [0, 0, 1, 0, 0, 1, 1, 2, 0, 0, 1])
    np.testing.assert_allclose(wider[1], np.linspace(-33 / 7, 33 / 7, 12), rtol=1e-6)
    assert wider[2:4] == (-3.0, 4.0) and wider[4] == pytest.approx(33 / 7)


def test_the_programs_of_the_guide_run(tmp_path, monkeypatch):
    guide = Path(__file__).parents[3] / "docs" / "quantization.md"
    programs = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) >= 6
    monkeypatch.chdir(tmp_path)
    names = {}
    for program in programs:
        exec(compile(program, str(guide), "exec"), names)


# --------------------------------------------------------------------------------------------------------------- errors


def dense_net():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=4))
    net.initialize()
    return net


SHAPES = [(2, 4)]


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"exclude_layers": ["net_dense0_fw"]}, ValueError, "no layer 'net_dense0_fw'(.|\n)*net_dense0_fwd"),
        ({"exclude_operators": ["FullyConected"]}, ValueError, "no operator 'FullyConected'(.|\n)*FullyConnected"),
        ({"quantized_dtype": "int16"}, ValueError, "one of int8, uint8, auto, got 'int16'"),
        ({"quantize_mode": "some"}, ValueError, "one of full, smart"),
        ({"calib_mode": "kl"}, ValueError, "one of none, naive, entropy, customize"),
        ({"calib_mode": "naive"}, ValueError, "calib_data(.|\n)*calib_mode='none'"),
        ({"calib_mode": "naive", "calib_data": []}, ValueError, "calib_data gave no batch"),
        ({"calib_mode": "naive", "calib_data": mx.nd.ones((2, 4))}, TypeError, r"iterable(.|\n)*pass \[array\]"),
        ({"calib_mode": "customize", "calib_data": [mx.nd.ones((2, 4))]}, ValueError, "collect(.|\n)*CalibrationColl"),
        ({"data_shapes": None}, ValueError, "pass data_shapes"),
        ({"calib_mode": "naive", "calib_data": [mx.nd.ones((2, 4)) / 0]}, ValueError, "finite values"),
    ],
)
def test_errors_name_a_fix(options, kind, text):
    with pytest.raises(kind, match=text):
        quantization.quantize_net(dense_net(), **{"data_shapes": SHAPES, **options})


def test_parameters_in_other_types_are_refused():
    net = dense_net()
    net.cast("float16")
    with pytest.raises(DTypeError, match=r"net_dense0_weight(.|\n)*float32(.|\n)*cast\('float32'\)"):
        quantization.quantize_net(net, data_shapes=[mx.io.DataDesc("data", (2, 4), dtype="float16")])


def test_training_is_refused():
    with autograd.record(), pytest.raises(UnsupportedError, match=r"record(.|\n)*then quantize"):
        quantization.quantize_net(dense_net(), data_shapes=SHAPES)


def test_networks_that_are_no_graph_are_refused():
    class Reading(gluon.HybridBlock):
        def forward(self, x):
            return x if x.asnumpy().sum() > 0 else -x

    with pytest.raises(UnsupportedError, match=r"no graph(.|\n)*cond"):
        quantization.quantize_net(Reading(), data_shapes=SHAPES)
    with pytest.raises(TypeError, match="HybridSequential"):
        quantization.quantize_net(nn.Sequential(), data_shapes=SHAPES)


def test_branches_of_python_are_kept_and_layers_outside_of_them_are_quantized():
    class Branching(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.first, self.second = nn.Dense(8, in_units=16), nn.Dense(8, in_units=16)

        def forward(self, x):
            y = self.first(x)
            return y if float(y.sum().asscalar()) > 0 else self.second(x) - 1

    net = Branching()
    net.initialize(mx.init.Xavier())
    x = mx.nd.array(np.random.default_rng(0).uniform(-1, 1, (4, 16)))
    quantized = quantization.quantize_net(net, "int8", data_shapes=[(4, 16)])
    sums = [net.first(values).sum().asscalar() for values in (x, -x)]
    assert min(sums) < -0.1 and max(sums) > 0.1  # each branch is taken once, also after rounding
    for values in (x, -x):
        wanted = net(values).asnumpy()
        np.testing.assert_allclose(quantized(values).asnumpy(), wanted, atol=0.03 * abs(wanted).max())
    assert "_contrib_quantized_fully_connected" in operators(graph_of(quantized))


def test_lacking_parameters_are_named():
    symbol, args, aux = lenet()
    del args["bn0_beta"]
    with pytest.raises(ValueError, match="arg_params has no 'bn0_beta'"):
        quantization.quantize_model(symbol, args, aux, calib_mode="none")


def test_collectors_that_saw_nothing_are_refused():
    symbol, args, aux = lenet()
    qsym, qargs, qaux, collector = quantization.quantize_graph(symbol, args, aux, calib_mode="naive")
    with pytest.raises(ValueError, match="set_monitor_callback"):
        quantization.calib_graph(qsym, qargs, qaux, collector, calib_mode="naive")
