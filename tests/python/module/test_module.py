"""Modules: fit, score, predict, checkpoints, several contexts, buckets, rows of modules; callbacks and monitors."""

from __future__ import annotations

import logging
import types

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import callback, model
from hybridnet.module import BucketingModule, Module, SequentialModule


def classifier(classes=3):
    data = mx.sym.Variable("data")
    hidden = mx.sym.FullyConnected(data, num_hidden=16, name="fc1")
    hidden = mx.sym.Activation(hidden, act_type="relu", name="relu1")
    out = mx.sym.FullyConnected(hidden, num_hidden=classes, name="fc2")
    return mx.sym.SoftmaxOutput(out, name="softmax")


def clusters(rng, count=120):
    labels = rng.integers(0, 3, size=count)
    centers = np.array([[2.0, 0], [-2, 1], [0, -2]])
    return (centers[labels] + 0.3 * rng.normal(size=(count, 2))).astype("float32"), labels.astype("float32")


def iterator(rng, **kwargs):
    data, labels = clusters(rng)
    return mx.io.NDArrayIter(data, labels, batch_size=kwargs.pop("batch_size", 20), **kwargs)


@pytest.mark.parametrize("contexts", [mx.cpu(), [mx.cpu(0), mx.cpu(1)]])
def test_fit_learns_and_score_reports(contexts, rng):
    mx.random.seed(1)
    train = iterator(rng, shuffle=True)
    mod = Module(classifier(), context=contexts)
    mod.fit(
        train,
        eval_data=iterator(rng),
        optimizer_params={"learning_rate": 0.5, "momentum": 0.9},
        initializer=mx.init.Xavier(),
        num_epoch=8,
    )
    train.reset()
    assert dict(mod.score(train, ["acc", "ce"]))["accuracy"] > 0.95
    out = mod.predict(train)
    assert out.shape == (120, 3)
    np.testing.assert_allclose(out.asnumpy().sum(1), 1, rtol=1e-5)


def test_predict_leaves_padding_out(rng):
    data, labels = clusters(rng, 25)
    it = mx.io.NDArrayIter(data, labels, batch_size=10)
    mod = Module(classifier())
    mod.bind(it.provide_data, it.provide_label, for_training=False)
    mod.init_params(mx.init.Xavier())
    assert mod.predict(it).shape == (25, 3)
    assert [len(batch) for batch in mod.predict(it, merge_batches=False)] == [1, 1, 1]
    assert isinstance(mod.predict(it, always_output_list=True), list)
    assert mod.predict(it, num_batch=1).shape == (10, 3)
    numbers = [(number, outputs[0].shape) for outputs, number, _ in mod.iter_predict(it)]
    assert numbers == [(0, (10, 3)), (1, (10, 3)), (2, (5, 3))]
    whole = mod.predict(data)
    np.testing.assert_allclose(whole.asnumpy(), mod.predict(it).asnumpy(), rtol=1e-5)
    with pytest.raises(ValueError, match="DataIter, got str"):
        mod.predict("text")


def test_updates_follow_the_formula(rng):
    data = mx.sym.Variable("data")
    out = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(data, num_hidden=1, no_bias=True, name="fc"), name="lro")
    x, y = rng.normal(size=(4, 3)).astype("float32"), rng.normal(size=(4, 1)).astype("float32")
    mod = Module(out, label_names=["lro_label"])
    mod.bind([("data", (4, 3))], [("lro_label", (4, 1))])
    mod.init_params(mx.init.One())
    mod.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1, "wd": 0.01})
    weight = np.ones((1, 3))
    for _ in range(3):
        mod.forward_backward(mx.io.DataBatch([mx.nd.array(x)], [mx.nd.array(y)]))
        mod.update()
        weight = weight - 0.1 * ((x @ weight.T - y).T @ x / 4 + 0.01 * weight)
    np.testing.assert_allclose(mod.get_params()[0]["fc_weight"].asnumpy(), weight, rtol=1e-4)


def test_input_gradients_and_arriving_gradients(rng):
    out = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    mod = Module(out, label_names=None)
    mod.bind([("data", (3, 4))], inputs_need_grad=True)
    mod.init_params(mx.init.Uniform(1))
    x, head = rng.normal(size=(3, 4)).astype("float32"), rng.normal(size=(3, 2)).astype("float32")
    mod.forward(mx.io.DataBatch([mx.nd.array(x)]), is_train=True)
    mod.backward([mx.nd.array(head)])
    weight = mod.get_params()[0]["fc_weight"].asnumpy()
    np.testing.assert_allclose(mod.get_input_grads()[0].asnumpy(), head @ weight, rtol=1e-5)
    assert mod.output_shapes == [("fc_output", (3, 2))]
    assert mod.output_names == ["fc_output"]


def test_fixed_parameters_stay(rng):
    it = iterator(rng)
    mod = Module(classifier(), fixed_param_names=["fc1_weight"])
    mod.bind(it.provide_data, it.provide_label)
    mod.init_params(mx.init.Xavier())
    before = {name: array.asnumpy().copy() for name, array in mod.get_params()[0].items()}
    mod.init_optimizer(optimizer_params={"learning_rate": 0.5})
    mod.forward_backward(next(it))
    mod.update()
    after = mod.get_params()[0]
    np.testing.assert_array_equal(after["fc1_weight"].asnumpy(), before["fc1_weight"])
    assert (after["fc2_weight"].asnumpy() != before["fc2_weight"]).any()


def test_other_batch_sizes_bind_again(rng):
    mod = Module(classifier())
    mod.bind([("data", (20, 2))], [("softmax_label", (20,))])
    mod.init_params(mx.init.Xavier())
    data, labels = clusters(rng, 7)
    mod.forward(mx.io.DataBatch([mx.nd.array(data)], [mx.nd.array(labels)]), is_train=False)
    assert mod.get_outputs()[0].shape == (7, 3)
    mod.reshape([("data", (5, 2))], [("softmax_label", (5,))])
    assert mod.data_shapes[0].shape == (5, 2)


def test_checkpoints_continue_training(tmp_path, rng):
    prefix = str(tmp_path / "net")

    def trained(mod, it, epochs):
        mod.fit(it, optimizer_params={"learning_rate": 0.1, "momentum": 0.9}, num_epoch=epochs)
        return mod

    mx.random.seed(3)
    it = iterator(rng)
    first = trained(Module(classifier()), it, 2)
    first.save_checkpoint(prefix, 2, save_optimizer_states=True)
    assert (tmp_path / "net-0002.states").exists()
    second = Module.load(prefix, 2, load_optimizer_states=True)
    second.bind(it.provide_data, it.provide_label)
    second.init_optimizer(optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    it.reset()
    batches = list(it)
    for mod in (first, second):
        for batch in batches:
            mod.forward_backward(batch)
            mod.update()
    for name, array in first.get_params()[0].items():
        np.testing.assert_allclose(array.asnumpy(), second.get_params()[0][name].asnumpy(), rtol=1e-5, atol=1e-7)
    symbol, arguments, states = model.load_checkpoint(prefix, 2)
    assert symbol.list_arguments() == first.symbol.list_arguments()
    assert sorted(arguments) == ["fc1_bias", "fc1_weight", "fc2_bias", "fc2_weight"]
    assert states == {}
    with pytest.raises(OSError, match=r"net-0009\.states|net-0009\.params"):
        model.load_checkpoint(prefix, 9)
    mx.nd.save(prefix + "-0003.params", {"weight": mx.nd.ones((1,))})
    with pytest.raises(mx.errors.FormatError, match="'arg:' or 'aux:'"):
        model.load_params(prefix, 3)


def test_parameters_are_saved_and_set(tmp_path, rng):
    file = str(tmp_path / "net.params")
    it = iterator(rng)
    mods = [Module(classifier()) for _ in range(2)]
    for mod in mods:
        mod.bind(it.provide_data, it.provide_label)
        mod.init_params(mx.init.Xavier())
    mods[0].save_params(file)
    mods[1].load_params(file)
    np.testing.assert_array_equal(mods[0].predict(it).asnumpy(), mods[1].predict(it).asnumpy())
    arguments, states = mods[0].get_params()
    with pytest.raises(RuntimeError, match="fc1_bias is not presented"):
        mods[1].set_params({"fc1_weight": arguments["fc1_weight"]}, {})
    mods[1].set_params({"fc1_bias": mx.nd.ones((16,))}, {}, allow_missing=True)
    assert (mods[1].get_params()[0]["fc1_bias"].asnumpy() == 1).all()
    with pytest.raises(ValueError, match="no parameter 'other'"):
        mods[1].set_params({**arguments, "other": mx.nd.ones((1,))}, states)
    mods[1].set_params({**arguments, "other": mx.nd.ones((1,))}, states, allow_extra=True)
    with pytest.warns(UserWarning, match="already initialized"):
        mods[1].init_params()


def test_batch_norm_states_are_parameters_too(rng):
    data = mx.sym.Variable("data")
    net = mx.sym.BatchNorm(mx.sym.FullyConnected(data, num_hidden=4, name="fc"), name="bn", fix_gamma=False)
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    it = iterator(rng)
    mod = Module(net)
    mod.fit(it, num_epoch=1, initializer=mx.init.Xavier())
    _, states = mod.get_params()
    assert sorted(states) == ["bn_moving_mean", "bn_moving_var"]
    assert (states["bn_moving_mean"].asnumpy() != 0).any()


def test_modules_share_parameters(rng):
    it = iterator(rng)
    mod = Module(classifier())
    mod.bind(it.provide_data, it.provide_label)
    mod.init_params(mx.init.Xavier())
    mod.init_optimizer(optimizer_params={"learning_rate": 0.5})
    other = Module(classifier())
    other.bind([("data", (5, 2))], [("softmax_label", (5,))], shared_module=mod)
    assert other.optimizer_initialized
    mod.forward_backward(next(it))
    mod.update()
    data = clusters(rng, 5)[0]
    np.testing.assert_allclose(
        other.predict(mx.nd.array(data)).asnumpy(), mod.predict(mx.nd.array(data)).asnumpy(), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: m.forward(mx.io.DataBatch([mx.nd.ones((1, 2))])), "call bind first"),
        (lambda m: m.update(), "call bind first"),
        (lambda m: m.get_params(), "call bind first"),
        (lambda m: (m.bind([("data", (1, 2))], [("softmax_label", (1,))]), m.get_outputs()), "call init_params first"),
        (
            lambda m: (m.bind([("data", (1, 2))], [("softmax_label", (1,))]), m.init_params(), m.update()),
            "call init_optimizer first",
        ),
        (lambda m: m.bind([("other", (1, 2))]), "data_shapes don't match"),
        (lambda m: m.bind([("data", (1, 2))], for_training=False, inputs_need_grad=True), "inputs_need_grad"),
        (lambda m: m.fit(None), "number of epochs"),
    ],
)
@pytest.mark.filterwarnings("ignore:Data provided by label_shapes")
def test_wrong_orders_and_names_are_errors(call, text):
    with pytest.raises(mx.MXNetError, match=text):
        call(Module(classifier()))


def test_names_that_the_symbol_lacks():
    with pytest.raises(ValueError, match=r"(?s)'image' is not found.*Did you mean one of.*data"):
        Module(classifier(), data_names=["image"])
    with pytest.warns(UserWarning, match="'other' is not found"):
        Module(classifier(), label_names=["other"])


def test_buckets_share_parameters_and_optimizer(rng):
    def graph(length):
        data = mx.sym.Variable("data")
        embedded = mx.sym.Embedding(data, input_dim=10, output_dim=6, name="embed")
        pooled = mx.sym.mean(embedded, axis=1)
        out = mx.sym.FullyConnected(pooled, num_hidden=2, name="fc")
        return mx.sym.SoftmaxOutput(out, name="softmax"), ("data",), ("softmax_label",)

    def batch(length):
        data = rng.integers(0, 10, size=(16, length))
        label = (data.mean(1) > 4.5).astype("float32")
        return mx.io.DataBatch(
            [mx.nd.array(data)],
            [mx.nd.array(label)],
            bucket_key=length,
            provide_data=[mx.io.DataDesc("data", (16, length))],
            provide_label=[mx.io.DataDesc("softmax_label", (16,))],
        )

    mod = BucketingModule(graph, default_bucket_key=8)
    mod.bind([("data", (16, 8))], [("softmax_label", (16,))])
    mod.init_params(mx.init.Uniform(0.1))
    mod.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.05})
    metric = mx.metric.create("acc")
    for step in range(120):
        if step == 100:
            metric.reset()
        one = batch([8, 4, 6][step % 3])
        mod.prepare(one)
        mod.forward_backward(one)
        mod.update()
        mod.update_metric(metric, one.label)
    assert metric.get()[1] > 0.85
    arguments, _ = mod.get_params()
    np.testing.assert_array_equal(
        arguments["fc_weight"].asnumpy(), mod._buckets[4]._exec_group.param_arrays[1][0].asnumpy()
    )
    with pytest.raises(ValueError, match="default_bucket_key"):
        BucketingModule(graph)


def test_modules_in_a_row_train_together(rng):
    mx.random.seed(2)
    first = mx.sym.Activation(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=16, name="fc1"), act_type="relu"
    )
    second = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.Variable("hidden"), num_hidden=3, name="fc2"), name="softmax"
    )
    mod = SequentialModule()
    mod.add(Module(first, label_names=None))
    mod.add(Module(second, data_names=["hidden"]), take_labels=True, auto_wiring=True)
    it = iterator(rng)
    mod.fit(it, optimizer_params={"learning_rate": 0.5, "momentum": 0.9}, initializer=mx.init.Xavier(), num_epoch=8)
    it.reset()
    assert dict(mod.score(it, "acc"))["accuracy"] > 0.95
    assert sorted(mod.get_params()[0]) == ["fc1_bias", "fc1_weight", "fc2_bias", "fc2_weight"]
    with pytest.raises(ValueError, match="typo"):
        mod.add(Module(first, label_names=None), take_label=True)


def test_monitors_collect_statistics(rng):
    it = iterator(rng)
    mod = Module(classifier())
    mod.bind(it.provide_data, it.provide_label)
    mod.init_params(mx.init.One())
    monitor = mx.mon.Monitor(2, pattern=".*output|fc1_weight", sort=True)
    mod.install_monitor(monitor)
    found = []
    for batch in list(it)[:3]:
        monitor.tic()
        mod.forward(batch, is_train=True)
        found.append(monitor.toc())
    assert [bool(stats) for stats in found] == [True, False, True]
    statistics = {name: float(text) for _, name, text in found[0]}
    operators = [name for name in classifier().get_internals().list_outputs() if name.endswith("_output")]
    assert sorted(statistics) == sorted(["fc1_weight", *operators])
    assert statistics["fc1_weight"] == pytest.approx(1.0)


def test_monitors_stay_when_batches_change_their_size():
    mod = Module(classifier())
    mod.bind([("data", (4, 6))], [("softmax_label", (4,))])
    mod.init_params()
    monitor = mx.mon.Monitor(1, stat_func=lambda array: mx.nd.array(array.shape), pattern="softmax_output")
    mod.install_monitor(monitor)
    for size in (4, 3):
        monitor.tic()
        mod.forward(mx.io.DataBatch([mx.nd.ones((size, 6))], [mx.nd.zeros((size,))]), is_train=False)
        ((_, name, text),) = monitor.toc()
        assert (name, float(text.split()[0].strip("[]"))) == ("softmax_output", size)


# -- callbacks ------------------------------------------------------------------------------------------------------


def _param(nbatch, metric=None, epoch=0):
    return model.BatchEndParam(epoch=epoch, nbatch=nbatch, eval_metric=metric, locals=None)


def test_the_speedometer_logs_speed_and_metric(caplog):
    caplog.set_level(logging.INFO)
    metric = mx.metric.create("mse")
    speedometer = callback.Speedometer(batch_size=4, frequent=2)
    for number in range(5):
        metric.update([mx.nd.ones((2, 1))], [mx.nd.zeros((2, 1))])
        speedometer(_param(number, metric))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert lines[0].startswith("Epoch[0] Batch [0-2]\tSpeed: ")
    assert lines[0].endswith("samples/sec\tmse=1.000000")
    speedometer(_param(0))
    speedometer(_param(2))
    assert caplog.records[-1].getMessage().startswith("Iter[0] Batch [2]\tSpeed: ")


def test_checkpoint_callbacks_save_every_period(tmp_path):
    prefix = str(tmp_path / "net")
    save = callback.do_checkpoint(prefix, period=2)
    symbol = classifier()
    for epoch in range(4):
        save(epoch, symbol, {"fc1_weight": mx.nd.ones((1,))}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net-0002.params", "net-0004.params", "net-symbol.json"]
    saved = []
    mod = types.SimpleNamespace(save_checkpoint=lambda *args: saved.append(args))
    save = callback.module_checkpoint(mod, "p", period=3, save_optimizer_states=True)
    for epoch in range(6):
        save(epoch)
    assert saved == [("p", 3, True), ("p", 6, True)]


def test_metrics_and_progress_are_logged(caplog):
    caplog.set_level(logging.INFO)
    metric = mx.metric.create("mse")
    metric.update([mx.nd.ones((2, 1))], [mx.nd.zeros((2, 1))])
    callback.log_train_metric(2)(_param(2, metric))
    callback.log_train_metric(2)(_param(3, metric))
    callback.LogValidationMetricsCallback()(_param(0, metric, epoch=5))
    callback.ProgressBar(total=4, length=8)(_param(2))
    assert [record.getMessage().strip() for record in caplog.records] == [
        "Iter[0] Batch[2] Train-mse=1.000000",
        "Epoch[5] Validation-mse=1.000000",
        "[====----] 50%",
    ]
