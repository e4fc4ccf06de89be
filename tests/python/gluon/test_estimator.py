"""Estimator: loops, events, checkpoints, early stopping, errors."""

from __future__ import annotations

import logging

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.gluon.contrib import estimator as est
from hybridnet.gluon.contrib.estimator import Estimator


def loader(rng, count=48, batch=16):
    labels = rng.integers(0, 2, size=count)
    data = (np.array([[2.0, 1], [-1, -2]])[labels] + 0.3 * rng.normal(size=(count, 2))).astype("float32")
    return gluon.data.DataLoader(gluon.data.ArrayDataset(data, labels.astype("float32")), batch)


def make(rng, rate=0.5, **kwargs):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu"), gluon.nn.Dense(2))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": rate})
    estimator = Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer=trainer, **kwargs)
    estimator.logger.handlers.clear()
    return estimator


def lines(estimator):
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage())

    estimator.logger.addHandler(Keep())
    return found


@pytest.mark.parametrize("context", [None, mx.cpu(), [mx.cpu(0), mx.cpu(1)]])
def test_fit_trains_and_validates(context, rng):
    mx.random.seed(1)
    if isinstance(context, list):
        net = gluon.nn.Dense(2)
        net.initialize(ctx=context)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
        estimator = Estimator(net, gluon.loss.SoftmaxCELoss(), trainer=trainer, context=context)
        estimator.logger.handlers.clear()
    else:
        estimator = make(rng, context=context)
    estimator.fit(loader(rng), loader(rng), epochs=10)
    names = [metric.name for metric in estimator.train_metrics + estimator.val_metrics]
    assert names == [
        "training accuracy",
        "training softmaxcrossentropyloss",
        "validation accuracy",
        "validation softmaxcrossentropyloss",
    ]
    assert estimator.train_metrics[0].get()[1] > 0.95
    assert estimator.val_metrics[0].get()[1] > 0.95


class Recorder(est.TrainBegin, est.TrainEnd, est.EpochBegin, est.EpochEnd, est.BatchBegin, est.BatchEnd):
    def __init__(self, stop_at=None):
        self.events = []
        self.stop_at = stop_at

    def train_begin(self, estimator, *args, **kwargs):
        self.events.append("train_begin")

    def train_end(self, estimator, *args, **kwargs):
        self.events.append("train_end")

    def epoch_begin(self, estimator, *args, **kwargs):
        self.events.append("epoch_begin")

    def epoch_end(self, estimator, *args, **kwargs):
        self.events.append("epoch_end")
        return self.events.count("epoch_end") == self.stop_at

    def batch_begin(self, estimator, *args, **kwargs):
        assert set(kwargs) == {"batch"}
        self.events.append("batch_begin")

    def batch_end(self, estimator, *args, **kwargs):
        assert set(kwargs) == {"batch", "pred", "label", "loss"}
        self.events.append("batch_end")


def test_events_come_in_order(rng):
    recorder = Recorder()
    make(rng).fit(loader(rng, 32), epochs=2, event_handlers=recorder)
    batch = ["batch_begin", "batch_end"]
    epoch = ["epoch_begin", *batch, *batch, "epoch_end"]
    assert recorder.events == ["train_begin", *epoch, *epoch, "train_end"]


def test_training_stops_by_batches_and_by_handlers(rng):
    recorder = Recorder()
    make(rng).fit(loader(rng), batches=4, event_handlers=[recorder])
    assert recorder.events.count("batch_end") == 4
    recorder = Recorder(stop_at=3)
    make(rng).fit(loader(rng), epochs=10, event_handlers=[recorder])
    assert recorder.events.count("epoch_end") == 3


def test_logging_shows_epochs_and_batches(rng):
    estimator = make(rng)
    text = lines(estimator)
    estimator.fit(loader(rng), loader(rng), epochs=1)
    assert text[0].startswith("Training begin: using optimizer SGD with current learning rate 0.5000")
    assert "Train for 1 epochs." in text
    assert any(line.startswith("[Epoch 0] Finished in") and "training accuracy: " in line for line in text)
    assert "Validation Begin" in text
    assert text[-1].startswith("Train finished using total")
    estimator = make(rng)
    text = lines(estimator)
    handler = est.LoggingHandler(log_interval=2, metrics=estimator.train_metrics)
    estimator.fit(loader(rng), epochs=1, event_handlers=[handler])
    assert sum("[Batch" in line for line in text) == 2
    with pytest.raises(ValueError, match="log_interval"):
        est.LoggingHandler(log_interval="batch")


def test_validation_periods(rng):
    estimator = make(rng)
    calls = []
    handler = est.ValidationHandler(loader(rng), lambda **k: calls.append(k), epoch_period=2, batch_period=3)
    estimator.fit(loader(rng), epochs=4, event_handlers=[handler])
    assert len(calls) == 2 + 4
    assert set(calls[0]) == {"val_data", "batch_axis", "event_handlers"}


def test_checkpoints_are_kept_and_training_goes_on(tmp_path, rng):
    folder = str(tmp_path)
    estimator = make(rng)
    monitor = estimator.train_metrics[0]
    handler = est.CheckpointHandler(folder, "net", monitor=monitor, save_best=True, max_checkpoints=2)
    estimator.fit(loader(rng), epochs=4, event_handlers=[handler])
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "net-best.params",
        "net-best.random",
        "net-best.states",
        "net-epoch2batch9.params",
        "net-epoch2batch9.random",
        "net-epoch2batch9.states",
        "net-epoch3batch12.params",
        "net-epoch3batch12.random",
        "net-epoch3batch12.states",
        "net-symbol.json",
    ]
    other = make(rng)
    recorder = Recorder()
    handler = est.CheckpointHandler(folder, "net", resume_from_checkpoint=True, max_checkpoints=2)
    other.fit(loader(rng), epochs=6, event_handlers=[handler, recorder])
    assert recorder.events.count("epoch_end") == 2
    assert (tmp_path / "net-epoch5batch18.params").exists()
    handler = est.CheckpointHandler(folder, "net", resume_from_checkpoint=True)
    with pytest.raises(ValueError, match="maximum number of epoch 6 reached"):
        make(rng).fit(loader(rng), epochs=6, event_handlers=[handler])
    handler = est.CheckpointHandler(folder, "net", resume_from_checkpoint=True)
    with pytest.raises(ValueError, match="same type of period"):
        make(rng).fit(loader(rng), batches=6, event_handlers=[handler])
    with pytest.raises(ValueError, match="provide one of the metric objects"):
        est.CheckpointHandler(folder, save_best=True)


def test_training_that_goes_on_has_the_weights_of_one_that_was_not_cut(tmp_path):
    draw = np.random.RandomState(0)
    data = gluon.data.ArrayDataset(draw.randn(40, 3).astype("float32"), draw.randint(0, 2, 40).astype("float32"))

    def fit(seed, epochs, **options):
        mx.random.seed(seed)
        np.random.seed(seed)
        net = gluon.nn.HybridSequential(prefix="net_")
        with net.name_scope():
            net.add(gluon.nn.Dense(8, in_units=3), gluon.nn.Dropout(0.5), gluon.nn.BatchNorm(), gluon.nn.Dense(2))
        net.initialize(mx.init.Xavier())
        trainer = gluon.Trainer(net.collect_params(), "adam")
        estimator = Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer=trainer)
        estimator.logger.handlers.clear()
        handlers = [est.CheckpointHandler(str(tmp_path), "net", **options)] if options else None
        loader = gluon.data.DataLoader(data, 16, shuffle=True, last_batch="discard")
        estimator.fit(loader, epochs=epochs, event_handlers=handlers)
        return [parameter.data().asnumpy() for parameter in net.collect_params().values()]

    whole = fit(1, 5)
    fit(1, 3, max_checkpoints=5)
    for found, expected in zip(fit(2, 5, resume_from_checkpoint=True), whole, strict=True):
        np.testing.assert_array_equal(found, expected)
    for path in tmp_path.glob("*.random"):
        path.write_text("[1")
    with pytest.raises(mx.errors.FormatError, match="no state of random numbers"):
        fit(2, 7, resume_from_checkpoint=True)


def test_training_stops_early(rng):
    estimator = make(rng, rate=1e-9)
    recorder = Recorder()
    stopping = est.EarlyStoppingHandler(estimator.train_metrics[1], min_delta=0.1, patience=2)
    text = lines(estimator)
    estimator.fit(loader(rng), epochs=20, event_handlers=[stopping, recorder])
    assert recorder.events.count("epoch_end") == 3
    assert any("early stopping" in line for line in text)
    assert est.EarlyStoppingHandler(mx.metric.Accuracy()).monitor_op(2, 1)
    assert est.EarlyStoppingHandler(mx.metric.MSE()).monitor_op(1, 2)
    assert est.EarlyStoppingHandler(mx.metric.MSE(), mode="max").monitor_op(2, 1)
    with pytest.warns(RuntimeWarning, match="mode other is unknown"):
        est.EarlyStoppingHandler(mx.metric.MSE(), mode="other")
    with pytest.raises(ValueError, match="CompositeEvalMetric"):
        est.EarlyStoppingHandler(mx.metric.CompositeEvalMetric())
    with pytest.raises(ValueError, match="metric objects"):
        est.EarlyStoppingHandler("accuracy")


def test_own_batch_processors_and_nets(rng):
    class Swapped(est.BatchProcessor):
        def _get_data_and_label(self, batch, ctx, batch_axis=0):
            data, label = super()._get_data_and_label(batch, ctx, batch_axis)
            return data, [1 - y for y in label]

    estimator = make(rng, batch_processor=Swapped())
    estimator.fit(loader(rng), epochs=6)
    plain = Estimator(estimator.net, gluon.loss.SoftmaxCELoss(), trainer=estimator.trainer)
    plain.logger.handlers.clear()
    plain.evaluate(loader(rng))
    assert plain.val_metrics[0].get()[1] < 0.1


def test_wrong_arguments_are_named(rng):
    net = gluon.nn.Dense(2)
    loss = gluon.loss.L2Loss()
    for arguments, text in [
        ((net, "loss"), "must be a Loss"),
        ((net, loss, "metric"), "must be a Metric"),
    ]:
        with pytest.raises(ValueError, match=text):
            Estimator(*arguments)
    with pytest.raises(ValueError, match="must be a Gluon Trainer"):
        Estimator(net, loss, trainer="sgd")
    with pytest.raises(ValueError, match="must be a Context"):
        Estimator(net, loss, context="cpu")
    with pytest.raises(ValueError, match="fit_batch"):
        Estimator(net, loss, trainer=gluon.Trainer(net.collect_params(), "sgd"), batch_processor=3)
    estimator = make(rng)
    with pytest.raises(ValueError, match="exactly one type of iteration"):
        estimator.fit(loader(rng))
    with pytest.raises(ValueError, match="DataLoader, got list"):
        estimator.fit([], epochs=1)
    with pytest.raises(ValueError, match="EventHandler"):
        estimator.fit(loader(rng), epochs=1, event_handlers=[print])
    with pytest.raises(ValueError, match="outside of the known"):
        estimator.fit(loader(rng), epochs=1, event_handlers=[est.MetricHandler(mx.metric.Accuracy())])
    with pytest.warns(UserWarning, match="default SGD"):
        Estimator(gluon.nn.Dense(2), loss)
    with pytest.warns(UserWarning, match="already fully initialized"):
        Estimator(net, loss, initializer=mx.init.One(), trainer=gluon.Trainer(net.collect_params(), "sgd"))


@pytest.mark.parametrize("name", ["epochs", "batches"])
@pytest.mark.parametrize("value", [1.5, 3.0, "3", -1, 0, True, np.float32(2)])
def test_epochs_and_batches_are_integers_from_one(rng, name, value):
    with pytest.raises(
        mx.errors.ParamError, match=rf"fit\.{name}: expected an int >= 1, got (.|\n)*Fix: pass .*{name}="
    ):
        make(rng).fit(loader(rng), **{name: value})


def test_fit_takes_exactly_one_of_epochs_and_batches(rng):
    estimator = make(rng)
    for given in ({}, {"epochs": 2, "batches": 3}, {"epochs": 0, "batches": 0}):
        with pytest.raises(mx.errors.ParamError, match=r"exactly one type(.|\n)*Fix: pass epochs=10"):
            estimator.fit(loader(rng), **given)
    assert estimator.fit(loader(rng), epochs=np.int64(2)).num_epochs == 2
    assert estimator.fit(loader(rng), epochs=0, batches=1).num_epochs == 1  # 0 means not given, as in MXNet


@pytest.mark.parametrize(
    ("keyword", "fix"),
    [
        ("batch_size", r"DataLoader\(.*batch_size=32\)"), ("callbacks", "event_handlers"), ("num_epochs", "epochs="),
        ("validation_data", "val_data="), ("steps_per_epoch", "batches="), ("epoch", "'epochs'"),
    ],
)  # fmt: skip
def test_unknown_keywords_of_fit_name_the_right_one(rng, keyword, fix):
    with pytest.raises(mx.errors.ParamError, match=rf"fit: unknown keyword '{keyword}'\.\n  Fix: .*{fix}"):
        make(rng).fit(loader(rng), **{"epochs": 1, keyword: 3})
    with pytest.raises(mx.errors.ParamError, match="unknown keyword 'optimizer'"):
        Estimator(gluon.nn.Dense(2), gluon.loss.L2Loss(), optimizer="sgd")


def test_arrays_in_place_of_loaders_name_the_loader_to_make(rng):
    x, y = np.ones((4, 2), "float32"), np.zeros(4)
    fix = r"(.|\n)*Fix: pass gluon\.data\.DataLoader\(gluon\.data\.ArrayDataset\(X, y\), batch_size=32\)"
    with pytest.raises(mx.errors.ParamError, match=r"train_data: .*ndarray of shape \(4, 2\)" + fix):
        make(rng).fit(x, y, epochs=1)
    for val_data in ((x, y), mx.nd.array(x)):
        with pytest.raises(mx.errors.ParamError, match="val_data: expected a gluon.data.DataLoader" + fix):
            make(rng).fit(loader(rng), val_data, epochs=1)
        with pytest.raises(mx.errors.ParamError, match="val_data" + fix):
            make(rng).evaluate(val_data)


def test_metrics_by_name_are_refused_with_the_call_that_creates_them(rng):
    with pytest.raises(mx.errors.ParamError, match=r"got 'acc'(.|\n)*train_metrics=mx\.metric\.create\('acc'\)"):
        make(rng, train_metrics="acc")
    with pytest.raises(mx.errors.ParamError, match="val_metrics must be a Metric"):
        make(rng, val_metrics=3)


def test_metrics_of_one_name_have_values_of_their_own(rng):
    second = mx.metric.Accuracy(axis=-1)
    estimator = make(rng, train_metrics=[mx.metric.Accuracy(), second, mx.metric.Accuracy(name="accuracy_2")])
    history = estimator.fit(loader(rng), loader(rng), epochs=1)
    names = ["accuracy", "accuracy_3", "accuracy_2"]
    expected = [f"{kind} {name}" for kind in ("training", "validation") for name in names]
    assert list(history) == [*expected, "learning rate"]
    assert history["training accuracy_3"][-1] == second.get()[1]
    assert list(estimator.evaluate(loader(rng))) == expected[3:]
    metric = mx.metric.Accuracy()
    with pytest.raises(mx.errors.ParamError, match=r"same object 'accuracy' twice(.|\n)*mx\.metric\.Accuracy\(\)"):
        make(rng, train_metrics=[metric, metric])
