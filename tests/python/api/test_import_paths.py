"""Classes can be imported from the modules that MXNet keeps them in."""

from __future__ import annotations

import importlib
import logging

import hybridnet as mx
import pytest

PATHS = {
    "gluon.block": "Block HybridBlock SymbolBlock",
    "gluon.nn.basic_layers": "BatchNorm BatchNormReLU Dense Embedding InstanceNorm LayerNorm HybridSequential",
    "gluon.nn.conv_layers": "AvgPool2D Conv2D GlobalAvgPool2D GlobalMaxPool1D MaxPool3D ReflectionPad2D",
    "gluon.contrib.cnn": "DeformableConvolution ModulatedDeformableConvolution",
    "gluon.contrib.cnn.conv_layers": "DeformableConvolution",
    "image.image": "Augmenter CreateAugmenter ImageIter LightingAug imresize",
    "image.detection": "ImageDetIter CreateDetAugmenter",
    "io.io": "DataBatch DataDesc DataIter NDArrayIter PrefetchingIter ResizeIter",
    "ndarray.utils": "array empty load save zeros",
    "optimizer.optimizer": "Adam AdaGrad LARS NAG Optimizer SGD Updater ccSGD get_updater",
    "rnn.rnn": "do_rnn_checkpoint load_rnn_checkpoint save_rnn_checkpoint",
    "rnn.rnn_cell": "BaseRNNCell BidirectionalCell FusedRNNCell LSTMCell ZoneoutCell ConvGRUCell",
}


@pytest.mark.parametrize("path", PATHS)
def test_names_are_found_where_mxnet_has_them(path):
    module = importlib.import_module(f"hybridnet.{path}")
    package = importlib.import_module(f"hybridnet.{path.rpartition('.')[0]}")
    for name in PATHS[path].split():
        assert getattr(module, name) is getattr(module, name)
        if hasattr(package, name):
            assert getattr(module, name) is getattr(package, name)


def test_names_that_are_nowhere_are_attribute_errors():
    with pytest.raises(AttributeError, match=r"'hybridnet.gluon.block' has no attribute 'HybridBloc'"):
        mx.gluon.block.HybridBloc  # noqa: B018
    with pytest.raises(ImportError):
        from hybridnet.optimizer.optimizer import Adom  # noqa: F401


def test_loggers_write_level_time_and_place(tmp_path, capsys):
    logger = mx.log.get_logger("import_paths.screen", level=mx.log.INFO)
    assert mx.log.get_logger("import_paths.screen") is logger and len(logger.handlers) == 1
    record = logger.makeRecord(logger.name, logging.WARNING, "place.py", 7, "text", (), None, "work")
    line = logger.handlers[0].format(record)
    assert line.startswith("\x1b[31mW") and line.endswith("place.py:work:7]\x1b[0m text")
    with pytest.warns(DeprecationWarning):
        file = mx.log.getLogger("import_paths.file", str(tmp_path / "log"), level=mx.log.DEBUG)
    file.debug("written")
    assert (tmp_path / "log").read_text() == "written\n"
    assert mx.log.get_logger() is logging.getLogger()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("io.CaffeDataIter", "does not link Caffe(.|\\n)*im2rec"),
        ("io.MXDataIter", "derive from mx.io.DataIter"),
        ("contrib.tensorrt", "no GPU"),
        ("th", "CustomOp"),
        ("tvmop", "CustomOp"),
        ("executor_manager", "mx.mod.Module"),
        ("kvstore_server", "there are no servers"),
        ("notebook", "mx.callback"),
    ],
)
def test_missing_names_are_errors_that_name_a_replacement(path, text):
    parent, _, name = path.rpartition(".")
    module = importlib.import_module(f"hybridnet.{parent}") if parent else mx
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match=text):
        getattr(module, name)
