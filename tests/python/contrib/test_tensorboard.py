"""LogMetricsCallback passes metrics to the installed writer of TensorBoard files."""

from __future__ import annotations

import sys
import types

import hybridnet as mx
import pytest


@pytest.fixture
def written(monkeypatch):
    values = []

    class SummaryWriter:
        def __init__(self, folder):
            values.append(folder)

        def add_scalar(self, name, value, step):
            values.append((name, value, step))

    module = types.ModuleType("mxboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "mxboard", module)
    return values


def _param(*pairs):
    metric = mx.metric.Accuracy()
    for label, predicted in pairs:
        metric.update([mx.nd.array([label])], [mx.nd.array([predicted])])
    return mx.model.BatchEndParam(0, 0, metric, None)


@pytest.mark.parametrize(("prefix", "name"), [(None, "accuracy"), ("train", "train-accuracy")])
def test_each_call_writes_the_metric_at_the_next_step(written, prefix, name):
    callback = mx.contrib.tensorboard.LogMetricsCallback("folder", prefix)
    callback(_param((1, 1)))
    callback(_param((1, 1), (0, 1)))
    assert written == ["folder", (name, 1.0, 0), (name, 0.5, 1)]


def test_a_batch_without_metric_writes_nothing(written):
    mx.contrib.tensorboard.LogMetricsCallback("folder")(mx.model.BatchEndParam(0, 0, None, None))
    assert written == ["folder"]


def test_without_a_writer_the_error_names_the_package_to_install(monkeypatch):
    for package in ("mxboard", "tensorboardX", "torch.utils.tensorboard", "tensorboard.compat.proto.event_pb2"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"(?s)mxboard, tensorboardX.*pip install tensorboardX"):
        mx.contrib.tensorboard.LogMetricsCallback("folder")
