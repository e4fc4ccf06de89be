"""repr of the objects of a training program: one line that says what they hold."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon, init, lr_scheduler, metric, optimizer
from hybridnet.gluon import data, loss, nn

SAMPLES = data.ArrayDataset(mx.nd.zeros((10, 2)), np.arange(10))

CASES = [
    (lambda: optimizer.SGD(), "SGD(learning_rate=0.01)"),
    (
        lambda: optimizer.create("sgd", learning_rate=0.1, momentum=0.9, wd=1e-4),
        "SGD(learning_rate=0.1, momentum=0.9, wd=0.0001)",
    ),
    (lambda: optimizer.Adam(beta1=0.8, clip_gradient=1.0), "Adam(learning_rate=0.001, beta1=0.8, clip_gradient=1.0)"),
    (
        lambda: optimizer.AdaGrad(eps=1e-6, multi_precision=True),
        "AdaGrad(learning_rate=0.01, eps=1e-06, multi_precision=True)",
    ),
    (
        lambda: optimizer.SGD(lr_scheduler=lr_scheduler.FactorScheduler(5, 0.5)),
        "SGD(lr_scheduler=FactorScheduler(base_lr=0.01, step=5, factor=0.5))",
    ),
    (
        lambda: lr_scheduler.PolyScheduler(100, 0.1, pwr=3, warmup_steps=5),
        "PolyScheduler(base_lr=0.1, max_update=100, pwr=3, warmup_steps=5)",
    ),
    (lambda: lr_scheduler.MultiFactorScheduler([3, 6]), "MultiFactorScheduler(base_lr=0.01, step=[3, 6])"),
    (lambda: data.SequentialSampler(10, 2), "SequentialSampler(length=10, start=2)"),
    (lambda: data.RandomSampler(10), "RandomSampler(length=10)"),
    (lambda: data.IntervalSampler(10, 3), "IntervalSampler(length=10, interval=3)"),
    (lambda: data.SplitSampler(10, 2), "SplitSampler(length=10, num_parts=2)"),
    (lambda: data.FilterSampler(max, [[1], [0], [2]]), "FilterSampler(2 of 3, fn=max)"),
    (
        lambda: data.BatchSampler(data.RandomSampler(10), 4, "discard"),
        "BatchSampler(RandomSampler(length=10), batch_size=4, last_batch='discard')",
    ),
    (lambda: data.SimpleDataset([1]), "SimpleDataset(1 sample)"),
    (lambda: SAMPLES, "ArrayDataset(10 samples: NDArray float32(10, 2), ndarray int64(10,))"),
    (lambda: data.SimpleDataset([1, 2]).transform(str), "SimpleDataset(2 samples).transform(str)"),
    (lambda: data.SimpleDataset([1, 2]).transform_first(abs), "SimpleDataset(2 samples).transform_first(abs)"),
    (
        lambda: data.SimpleDataset([1, 2]).take(1),
        "SimpleDataset(2 samples).sample(SequentialSampler(length=1))",
    ),
    (lambda: data.Dataset(), "Dataset()"),
    (
        lambda: data.DataLoader(SAMPLES, 4, shuffle=True),
        "DataLoader(ArrayDataset(10 samples: NDArray float32(10, 2), ndarray int64(10,)), "
        "BatchSampler(RandomSampler(length=10), batch_size=4, last_batch='keep')): 3 batches",
    ),
    (lambda: metric.Accuracy(), "Accuracy(): no samples yet"),
    (lambda: metric.TopKAccuracy(3), "TopKAccuracy(top_k=3, name='top_k_accuracy_3'): no samples yet"),
    (
        lambda: metric.create(["acc", "mse"]),
        "CompositeEvalMetric(Accuracy(): no samples yet, MSE(): no samples yet)",
    ),
    (lambda: loss.L2Loss(), "L2Loss(batch_axis=0, w=1.0)"),
    (
        lambda: loss.SoftmaxCrossEntropyLoss(from_logits=True),
        "SoftmaxCrossEntropyLoss(batch_axis=0, w=None, from_logits=True)",
    ),
    (lambda: init.Xavier(magnitude=2), "Xavier(rnd_type='uniform', factor_type='avg', magnitude=2)"),
    (lambda: init.Mixed(["bias", ".*"], [init.Zero(), init.One()]), "Mixed('bias': Zero(), '.*': One())"),
    (
        lambda: init.Load({"arg:w": mx.nd.zeros((1,))}, init.Zero()),
        "Load(1 array, default_init=Zero())",
    ),
]


@pytest.mark.parametrize(
    ("make", "text"), CASES, ids=[f"{i}-{text.split('(')[0]}" for i, (_, text) in enumerate(CASES)]
)
def test_an_object_shows_what_differs_from_its_defaults(make, text):
    assert repr(make()) == text


def test_a_loader_whose_length_is_unknown_is_described_too():
    text = repr(data.DataLoader(data.SimpleDataset([1]), batch_sampler=iter([[0]]), num_workers=1, thread_pool=True))
    assert text.startswith("DataLoader(SimpleDataset(1 sample), <list_iterator")
    assert text.endswith(", num_workers=1, thread_pool=True)")


def test_a_trainer_shows_optimizer_and_size():
    net = nn.Dense(3, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    assert repr(trainer) == "Trainer(SGD(learning_rate=0.1), 2 parameters of 9 values, on cpu(0))"
    net.bias.grad_req = "null"
    text = repr(gluon.Trainer(net.collect_params(), optimizer.Adam()))
    assert text == "Trainer(Adam(learning_rate=0.001), 1 parameter of 6 values, 1 without gradient, on cpu(0))"
    waiting = nn.Dense(3)
    waiting.initialize()
    assert "2 parameters, on" in repr(gluon.Trainer(waiting.collect_params(), "sgd"))


def test_a_metric_shows_its_value():
    accuracy = metric.Accuracy(name="top")
    accuracy.update([mx.nd.array([0, 1, 1, 1])], [mx.nd.array([[1, 0], [0, 1], [1, 0], [0, 1]])])
    assert repr(accuracy) == "Accuracy(name='top'): top=0.75 of 4 samples"


def test_an_executor_shows_its_arguments():
    executor = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc").simple_bind(mx.cpu(), x=(1, 3))
    assert repr(executor) == (
        "<Executor of fc_output on cpu(0): x (1, 3), fc_weight (2, 3), fc_bias (2,); 3 with gradients>"
    )


@pytest.mark.parametrize(("dtype", "end"), [("float32", ""), ("int32", " int32"), ("float16", " float16")])
def test_arrays_show_other_dtypes_than_float32(dtype, end):
    assert repr(mx.nd.ones((2,), dtype=dtype)).endswith(f"<NDArray 2 @cpu(0){end}>")
    assert repr(mx.nd.ones((2, 3), dtype=dtype).tostype("csr")).endswith(f"<CSRNDArray 2x3 @cpu(0){end}>")


def test_a_summary_has_one_row_for_a_layer_in_a_loop(capsys):
    class Looped(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = nn.Dense(3, in_units=3)

        def hybrid_forward(self, F, x):
            return F.contrib.foreach(lambda row, s: (self.cell(row), s), x, F.zeros((1,)))[0]

    net = Looped()
    net.initialize()
    printed = []
    for hybridize in (False, True, True):
        net.hybridize(hybridize)
        if hybridize:
            net(mx.nd.ones((4, 2, 3)))
        net.summary(mx.nd.ones((4, 2, 3)))
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] == printed[2]
    assert "Dense-1 (x4)" in printed[0]
    assert "Unique parameters in model: 12" in printed[0]
    assert net._active and net.cell._active
