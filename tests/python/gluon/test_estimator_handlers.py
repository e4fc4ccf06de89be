"""Estimator: history, progress, learning rates, clipping, compiled steps, plots, TensorBoard, predictions."""

from __future__ import annotations

import io
import json
import math
import sys
import types

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.gluon.contrib import estimator as est

LOSS = gluon.loss.SoftmaxCrossEntropyLoss


def dataset(count=48):
    draw = np.random.RandomState(0)
    labels = draw.randint(0, 3, count)
    centers = np.array([[2.0, 1, 0], [-1, -2, 1], [0, 2, -2]])
    return gluon.data.ArrayDataset(
        (centers[labels] + 0.5 * draw.normal(size=(count, 3))).astype("float32"), labels.astype("float32")
    )


def loader(count=48, batch=16, **options):
    return gluon.data.DataLoader(dataset(count), batch, **options)


def make(optimizer="sgd", hybrid=True, net=None, seed=0, **options):
    """Returns an estimator that logs nothing, and a net with the same initial values each time."""
    mx.random.seed(seed)
    np.random.seed(seed)
    if net is None:
        net = gluon.nn.HybridSequential(prefix="net_")
        with net.name_scope():
            net.add(gluon.nn.Dense(8, activation="relu", in_units=3), gluon.nn.Dropout(0.2), gluon.nn.BatchNorm())
            net.add(gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
    settings = {"learning_rate": 0.1} if isinstance(optimizer, str) else None
    trainer = gluon.Trainer(net.collect_params(), optimizer, settings)
    estimator = est.Estimator(net, LOSS(), trainer=trainer, **options)
    estimator.logger.handlers.clear()
    return estimator


def values(estimator):
    return {name: param.data().asnumpy() for name, param in estimator.net.collect_params().items()}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


# --- results ----------------------------------------------------------------------------------------------------------


def test_fit_returns_the_values_of_every_epoch():
    estimator = make()
    history = estimator.fit(loader(), loader(), epochs=3)
    assert history is estimator.history and history.num_epochs == 3
    loss = "softmaxcrossentropyloss"
    names = ["training accuracy", f"training {loss}", "validation accuracy", f"validation {loss}", "learning rate"]
    assert list(history) == names
    assert all(len(column) == 3 for column in history.values())
    assert history["learning rate"] == [0.1] * 3
    assert history["training accuracy"][-1] == estimator.train_metrics[0].get()[1]
    epoch, best = history.best(f"validation {loss}")
    assert best == min(history[f"validation {loss}"]) == history[f"validation {loss}"][epoch]
    assert history.best("validation accuracy")[1] == max(history["validation accuracy"])
    assert json.loads(json.dumps(history.to_dict())) == dict(history)
    table = str(history).splitlines()
    assert len(table) == 4 and table[0].split()[:3] == ["epoch", "training", "accuracy"]
    with pytest.raises(KeyError, match="did you mean 'training accuracy'"):
        history["train accuracy"]


def test_epochs_without_validation_have_no_validation_values():
    estimator = make()
    validation = est.ValidationHandler(loader(), estimator.evaluate, epoch_period=2)
    history = estimator.fit(loader(), epochs=3, event_handlers=[validation])
    assert [math.isnan(value) for value in history["validation accuracy"]] == [True, False, True]
    with pytest.raises(ValueError, match="no value"):
        est.History({"a": [math.nan]}).best("a")


def test_evaluate_returns_the_values_and_predict_the_outputs():
    estimator = make()
    estimator.fit(loader(), epochs=4)
    found = estimator.evaluate(loader())
    assert found == dict(metric.get() for metric in estimator.val_metrics)
    data = dataset()
    images = np.stack([data[i][0] for i in range(48)])
    expected = estimator.net(mx.nd.array(images)).asnumpy()
    for source in (images, mx.nd.array(images), loader(batch=20), gluon.data.DataLoader(images, 7)):
        np.testing.assert_allclose(estimator.predict(source).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert estimator.predict(images[:1], batch_size=1).shape == (1, 3)
    accuracy = (expected.argmax(1) == np.array([data[i][1] for i in range(48)])).mean()
    assert found["validation accuracy"] == pytest.approx(accuracy)
    with pytest.raises(ValueError, match="at least one sample"):
        estimator.predict(images[:0])


def test_predict_returns_a_list_for_a_net_with_several_outputs():
    class Two(gluon.HybridBlock):
        def forward(self, x):
            return x + 1, x.sum(axis=1)

    estimator = est.Estimator(Two(), LOSS(), trainer=gluon.Trainer([], "sgd"), context=mx.cpu())
    first, second = estimator.predict(np.ones((5, 3), "float32"), batch_size=2)
    assert first.asnumpy().tolist() == [[2] * 3] * 5 and second.asnumpy().tolist() == [3] * 5


def test_dict_batches_name_the_method_to_write():
    samples = [{"image": np.zeros(3, "float32"), "label": 0.0}] * 4
    estimator = make()
    batches = gluon.data.DataLoader(samples, 2)
    for call in (lambda: estimator.fit(batches, epochs=1), lambda: estimator.predict(batches)):
        with pytest.raises(ValueError, match=r"keys \['image', 'label'\](.|\n)*BatchProcessor"):
            call()

    class Named(est.BatchProcessor):
        def _get_data_and_label(self, batch, ctx, batch_axis=0):
            return super()._get_data_and_label((batch["image"], batch["label"]), ctx, batch_axis)

        def predict_batch(self, estimator, batch, batch_axis=0):
            return super().predict_batch(estimator, batch["image"], batch_axis)

    estimator = make(batch_processor=Named())
    estimator.fit(batches, epochs=1)
    assert estimator.predict(batches).shape == (4, 3)


# --- compiled steps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_compiled_steps_have_the_bits_of_a_hybridized_net_and_loss(optimizer):
    found = {}
    for compiled in (True, False):
        estimator = make(optimizer, compiled=compiled)
        estimator.loss.hybridize()
        # 40 samples in batches of 16: the last batch is smaller.
        history = estimator.fit(loader(40, shuffle=True), epochs=3)
        found[compiled] = (values(estimator), history.to_dict())
    assert_same(found[True][0], found[False][0])
    assert found[True][1] == found[False][1]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_compiled_steps_clip_like_single_operators(optimizer):
    found = []
    for compiled in (True, False):
        estimator = make(optimizer, compiled=compiled)
        update = est.GradientUpdateHandler(clip_global_norm=0.05)
        estimator.fit(loader(40, shuffle=True), epochs=3, event_handlers=[update])
        found.append(values(estimator))
    for name, value in found[1].items():
        np.testing.assert_allclose(found[0][name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_steps_are_compiled_only_if_gradients_are_nobodys_business(monkeypatch):
    calls = []
    original = mx.jit.train_step
    monkeypatch.setattr(mx.jit, "train_step", lambda *a, **k: calls.append(1) or original(*a, **k))

    class Watches(est.BatchEnd):
        def batch_end(self, estimator, *args, **kwargs):
            self.norm = estimator.net[0].weight.grad().norm().asscalar()

    watcher = Watches()
    for handlers, options, expected in (
        (None, {}, 1),
        ([watcher], {}, 0),
        (None, {"hybrid": False}, 0),
        (None, {"compiled": False}, 0),
        ([est.LearningRateHandler([0.1])], {}, 1),
    ):
        calls.clear()
        make(**options).fit(loader(), epochs=1, event_handlers=handlers)
        assert len(calls) == expected, (handlers, options)
    assert watcher.norm > 0
    with pytest.raises(ValueError, match=r"compiled=True(.|\n)*Watches may read gradients"):
        make(compiled=True).fit(loader(), epochs=1, event_handlers=[watcher])


def test_a_net_that_cannot_be_traced_trains_operator_by_operator():
    class Reads(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = gluon.nn.Dense(3, in_units=3)

        def forward(self, x):
            return self.dense(x) * float(x.asnumpy().max() > -100)

    with pytest.warns(UserWarning):
        estimator = make(net=Reads())
        before = values(estimator)
        estimator.fit(loader(), epochs=1)
    assert any((value != before[name]).any() for name, value in values(estimator).items())


def test_optimizers_in_python_train_operator_by_operator():
    class Halving(mx.optimizer.Optimizer):
        def create_state(self, index, weight):
            return None

        def update(self, index, weight, grad, state):
            weight[:] = weight * 0.5

    estimator = make(Halving())
    weight = estimator.net[0].weight.data().asnumpy()
    estimator.fit(loader(16), epochs=1)
    np.testing.assert_array_equal(estimator.net[0].weight.data().asnumpy(), weight * 0.5)


# --- updates and learning rates ---------------------------------------------------------------------------------------


def test_gradients_are_clipped_by_their_norm():
    estimator = make(hybrid=False)
    estimator.predict(np.ones((1, 3)))
    before = values(estimator)
    estimator.fit(loader(16), epochs=1, event_handlers=[est.GradientUpdateHandler(clip_global_norm=1e-3)])
    moved = [
        (value - before[name]) for name, value in values(estimator).items() if not name.endswith(("_mean", "_var"))
    ]
    norm = math.sqrt(sum(float((step**2).sum()) for step in moved))
    assert norm == pytest.approx(0.1 * 1e-3, rel=1e-2)  # learning rate times bound
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = gluon.nn.Dense(3, in_units=3)
    net.initialize(init="ones", ctx=contexts)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, update_on_kvstore=False)
    estimator = est.Estimator(net, LOSS(), trainer=trainer, context=contexts)
    estimator.logger.handlers.clear()
    estimator.fit(loader(16), epochs=1, event_handlers=[est.GradientUpdateHandler(clip_global_norm=1e-2)])
    one, two = ({name: p.data(ctx).asnumpy() for name, p in net.collect_params().items()} for ctx in contexts)
    assert_same(one, two)
    steps = [one[net.weight.name] - 1, one[net.bias.name]]
    assert math.sqrt(sum(float((step**2).sum()) for step in steps)) == pytest.approx(1e-2, rel=1e-2)
    with pytest.raises(ValueError, match="a number > 0, got 0"):
        est.GradientUpdateHandler(clip_global_norm=0)
    for bound in ("a", math.nan, True, [1]):
        with pytest.raises(mx.errors.ParamError, match=r"clip_global_norm: expected a number > 0(.|\n)*Fix"):
            est.GradientUpdateHandler(clip_global_norm=bound)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (lambda epoch: 0.1 / (epoch + 1), [0.1, 0.05, 0.1 / 3]),
        ({1: 0.02}, [0.1, 0.02, 0.02]),
        ([0.3, 0.2], [0.3, 0.2, 0.2]),
        (mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.4), [0.4, 0.4, 0.2]),
    ],
    ids=["function", "dict", "list", "scheduler"],
)
def test_learning_rates_follow_a_schedule_of_epochs(schedule, rates):
    history = make().fit(loader(), epochs=3, event_handlers=[est.LearningRateHandler(schedule)])
    assert history["learning rate"] == pytest.approx(rates)


def test_wrong_schedules_are_refused():
    with pytest.raises(ValueError, match="a function, dict or list of rates, got 3"):
        est.LearningRateHandler(3)
    with pytest.raises(ValueError, match="rate of epoch 0: expected a finite number >= 0, got nan"):
        make().fit(loader(), epochs=1, event_handlers=[est.LearningRateHandler([math.nan])])
    estimator = make()
    estimator.trainer.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(1)
    with pytest.raises(ValueError, match="has an lr_scheduler"):
        estimator.fit(loader(), epochs=1, event_handlers=[est.LearningRateHandler([0.1])])


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        ([], r"schedule: .*got \[\](.|\n)*Fix: pass \[0\.1, 0\.01\]"),
        ({}, "schedule: .*got {}"),
        ("0.1", "schedule: .*got '0.1'"),
        ([0.1, None], "rate of epoch 1: expected a finite number >= 0, got None"),
        ({2: "a"}, "rate of epoch 2: .*got 'a'"),
        ({"1": 0.1}, "epochs of the schedule: expected integers >= 0, got '1'"),
    ],
)
def test_schedules_without_usable_rates_are_refused_before_training(schedule, text):
    with pytest.raises(mx.errors.ParamError, match=text):
        est.LearningRateHandler(schedule)


def test_the_learning_rate_falls_on_a_plateau():
    estimator = make()
    monitor = estimator.train_metrics[1]
    handler = est.ReduceLROnPlateauHandler(monitor, factor=0.5, patience=0, min_delta=100, min_lr=0.03)
    history = estimator.fit(loader(), epochs=5, event_handlers=[handler])
    # The handler runs after the history is recorded, so a reduction shows in the next epoch.
    assert history["learning rate"] == pytest.approx([0.1, 0.1, 0.05, 0.03, 0.03])
    with pytest.raises(ValueError, match="between 0 and 1, got 2"):
        est.ReduceLROnPlateauHandler(monitor, factor=2)
    with pytest.raises(ValueError, match=r"one of estimator\.train_metrics"):
        est.ReduceLROnPlateauHandler("loss")


# --- exact resumption -------------------------------------------------------------------------------------------------


class Killed(Exception):
    pass


class KillAt(est.BatchBegin):
    """Ends the training by an exception when a batch begins, counted from 1."""

    def __init__(self, batch):
        self.left = batch

    def batch_begin(self, estimator, *args, **kwargs):
        self.left -= 1
        if self.left == 0:
            raise Killed


def _fit(folder=None, kill_at=None, seed=0, epochs=4, compiled=None, **options):
    estimator = make("adam", seed=seed, compiled=compiled)
    # The evaluation draws random numbers, too: its loader shuffles.
    handlers = [
        est.LearningRateHandler(lambda epoch: 0.05 * 0.8**epoch),
        est.EarlyStoppingHandler(estimator.val_metrics[1], patience=50),
    ]
    if folder is not None:
        handlers.append(est.TrainingCheckpointHandler(folder / "training", **options))
    if kill_at is not None:
        handlers.append(KillAt(kill_at))
    history = estimator.fit(
        loader(40, shuffle=True, last_batch="rollover"), loader(shuffle=True), epochs=epochs, event_handlers=handlers
    )
    return values(estimator), history.to_dict(), handlers[1].best


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "by operator"])
@pytest.mark.parametrize("kill_at", [2, 3, 4, 8])
def test_a_killed_training_continues_to_the_bit(tmp_path, kill_at, compiled):
    whole = _fit(compiled=compiled)
    with pytest.raises(Killed):
        _fit(tmp_path, kill_at, batch_period=1, compiled=compiled)
    found = _fit(tmp_path, seed=9, batch_period=1, compiled=compiled)
    assert_same(found[0], whole[0])
    assert found[1:] == whole[1:]


def test_a_training_continues_from_the_last_epoch_that_was_written(tmp_path):
    whole = _fit()
    with pytest.raises(Killed):
        _fit(tmp_path, kill_at=7)
    found = _fit(tmp_path, seed=9)
    assert_same(found[0], whole[0])
    assert found[1:] == whole[1:]


def test_a_complete_training_is_not_repeated_and_more_epochs_continue_it(tmp_path):
    two = _fit(tmp_path, epochs=2)
    again = _fit(tmp_path, seed=5, epochs=2)
    assert_same(again[0], two[0])
    assert again[1] == two[1]
    assert_same(_fit(tmp_path, seed=5)[0], _fit()[0])
    assert len(_fit(tmp_path, epochs=1, resume=False)[1]["learning rate"]) == 1


def test_counts_of_metrics_continue_to_the_bit():
    from hybridnet.gluon.contrib.estimator._saved_state import metric_states, restore_metrics

    def metrics():
        return [
            mx.metric.F1(average="micro"), mx.metric.MCC(average="micro"), mx.metric.PCC(), mx.metric.Perplexity(None),
            mx.metric.ConfusionMatrix(), mx.metric.Accuracy(), mx.metric.PearsonCorrelation(),
        ]  # fmt: skip

    def update(listed, batch):
        draw = np.random.RandomState(batch)
        label, pred = mx.nd.array(draw.randint(0, 2, 9)), mx.nd.softmax(mx.nd.array(draw.randn(9, 2)))
        for metric in listed:
            pearson = isinstance(metric, mx.metric.PearsonCorrelation)
            metric.update([label], [pred[:, 1] if pearson else pred])

    whole, first, second = metrics(), metrics(), metrics()
    for batch in (0, 1):
        update(first, batch)
        update(whole, batch)
    restore_metrics(second, json.loads(json.dumps(metric_states(first))))
    update(second, 2)
    update(whole, 2)
    assert [metric.get() for metric in second] == [metric.get() for metric in whole]
    assert [metric.get_global() for metric in second] == [metric.get_global() for metric in whole]


def test_a_file_of_something_else_is_refused(tmp_path):
    estimator = make()
    estimator.predict(np.ones((1, 3)))
    gluon.save_training(tmp_path / "training", estimator.net, estimator.trainer, loader(), {"epoch": 3})
    with pytest.raises(ValueError, match="not written by this handler"):
        _fit(tmp_path)
    with pytest.raises(ValueError, match="integer >= 1, or None for never, got 0"):
        est.TrainingCheckpointHandler("x", epoch_period=0)


# --- progress, plots, TensorBoard -------------------------------------------------------------------------------------


def test_progress_is_a_line_per_epoch_without_tqdm(capsys):
    text = io.StringIO()
    estimator = make()
    estimator.fit(loader(), loader(), epochs=2, event_handlers=[est.ProgressBarHandler(file=text, use_tqdm=False)])
    lines = text.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("Epoch 1/2: 3 batches, training accuracy 0.")
    assert "validation accuracy" in lines[1]
    make().fit(loader(16), batches=1, event_handlers=est.ProgressBarHandler(use_tqdm=False))
    assert capsys.readouterr().out.startswith("Epoch 1: 1 batch, training accuracy")


def test_evaluations_show_their_progress_and_no_training():
    text = io.StringIO()
    make().evaluate(loader(), event_handlers=[est.ProgressBarHandler(file=text, use_tqdm=False)])
    assert text.getvalue().startswith("Validation: 3 batches, validation accuracy 0.")
    assert "training" not in text.getvalue()


def test_a_progress_bar_replaces_the_log():
    estimator = make()
    records = []
    estimator.logger.addHandler(types.SimpleNamespace(level=0, handle=records.append))
    bar = est.ProgressBarHandler(file=io.StringIO(), use_tqdm=False)
    estimator.fit(loader(), loader(), epochs=1, event_handlers=[bar])
    assert not records
    estimator.fit(loader(), epochs=1)
    assert records


class Bar:
    """Stands for tqdm's class."""

    made: list[Bar] = []

    def __init__(self, **options):
        self.options = options
        self.count = options["initial"]
        self.text = ""
        self.closed = False
        Bar.made.append(self)

    def update(self, count):
        self.count += count

    def set_postfix_str(self, text, refresh=True):
        self.text = text

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    Bar.made.clear()
    return Bar.made


def test_progress_is_a_bar_of_tqdm(bars):
    make().fit(loader(), loader(), epochs=2, event_handlers=[est.ProgressBarHandler()])
    assert [bar.options["desc"] for bar in bars] == ["Epoch 1/2", "Epoch 2/2"]
    assert all(bar.closed and bar.count == bar.options["total"] == 3 for bar in bars)
    assert "training accuracy" in bars[0].text and "validation accuracy" in bars[0].text


def test_a_failure_closes_the_bar(bars):
    with pytest.raises(Killed):
        make().fit(loader(), epochs=2, event_handlers=[est.ProgressBarHandler(), KillAt(2)])
    assert len(bars) == 1 and bars[0].closed and bars[0].count in (1, 2)


def test_bars_without_tqdm_name_the_installation(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        est.ProgressBarHandler(use_tqdm=True)
    assert est.ProgressBarHandler()._bar_class is None


def test_curves_are_drawn_after_each_epoch(tmp_path):
    pytest.importorskip("matplotlib", reason="draws pictures")
    path = tmp_path / "plots" / "curves.svg"
    estimator = make()
    history = estimator.fit(loader(), loader(), epochs=2, event_handlers=[est.CurvesHandler(path)])
    assert path.read_text().lstrip().startswith("<?xml")
    figure = mx.viz.plot_history(history, path=tmp_path / "curves.png", names=["learning rate", "training accuracy"])
    assert [axes.get_title() for axes in figure.axes] == ["learning rate", "accuracy"]
    figure = mx.viz.plot_history(history, path=tmp_path / "curves.png")
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]
    assert figure.axes[0].lines[0].get_xdata().tolist() == [1, 2]
    with pytest.raises(KeyError, match="accuracy"):
        mx.viz.plot_history(history, names=["acc"])
    with pytest.raises(ValueError, match="history is empty"):
        mx.viz.plot_history({})


def test_plots_without_matplotlib_name_the_installation(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"CurvesHandler needs matplotlib(.|\n)*pip install matplotlib"):
        est.CurvesHandler("curves.png")
    with pytest.raises(ImportError, match="plot_history needs matplotlib"):
        mx.viz.plot_history({"loss": [1.0]})
    with pytest.raises(ImportError, match="plot_confusion_matrix needs matplotlib"):
        mx.viz.plot_confusion_matrix([[1]])


class Writer:
    """Stands for the SummaryWriter of tensorboardX."""

    made: list[Writer] = []

    def __init__(self, folder):
        self.folder = folder
        self.scalars = []
        self.closed = False
        Writer.made.append(self)

    def add_scalar(self, tag, value, step):
        self.scalars.append((tag, value, step))

    def flush(self):
        pass

    def close(self):
        self.closed = True


def test_values_are_written_for_tensorboard(monkeypatch):
    monkeypatch.setitem(sys.modules, "mxboard", types.SimpleNamespace(SummaryWriter=Writer))
    Writer.made.clear()
    history = make().fit(loader(), loader(), epochs=2, event_handlers=[est.TensorBoardHandler("logs", batch_period=3)])
    (writer,) = Writer.made
    assert writer.folder == "logs" and writer.closed
    assert ("accuracy/training", history["training accuracy"][1], 1) in writer.scalars
    assert ("accuracy/validation", history["validation accuracy"][0], 0) in writer.scalars
    assert ("learning_rate", 0.1, 0) in writer.scalars
    assert [step for tag, _, step in writer.scalars if tag == "accuracy/training_by_batch"] == [3, 6]
    with pytest.raises(Killed):
        make().fit(loader(), epochs=2, event_handlers=[est.TensorBoardHandler("logs"), KillAt(2)])
    assert Writer.made[-1].closed


def test_tensorboard_without_a_package_names_the_installation(monkeypatch):
    for name in ("mxboard", "tensorboardX", "torch.utils.tensorboard", "tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    with pytest.raises(ImportError, match=r"TensorBoardHandler needs(.|\n)*pip install tensorboardX"):
        make().fit(loader(), epochs=1, event_handlers=[est.TensorBoardHandler("logs")])
