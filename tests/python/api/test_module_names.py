"""Modules without an underscore are MXNet 1.9.1's, so that programs import the same paths from both."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx

# The modules of MXNet 1.9.1 that exist here. If MXNet has a file and HybridNet a package, the package is listed.
MXNET = """
attribute autograd base callback context contrib contrib.amp contrib.amp.amp contrib.amp.lists contrib.amp.loss_scaler
contrib.autograd contrib.io contrib.quantization contrib.svrg_optimization contrib.svrg_optimization.svrg_module
contrib.svrg_optimization.svrg_optimizer
contrib.tensorboard contrib.text contrib.text.embedding contrib.text.utils contrib.text.vocab dlpack engine executor
gluon gluon.block gluon.contrib gluon.contrib.cnn gluon.contrib.cnn.conv_layers gluon.contrib.data
gluon.contrib.data.sampler gluon.contrib.data.text gluon.contrib.estimator gluon.contrib.estimator.batch_processor
gluon.contrib.estimator.estimator gluon.contrib.estimator.event_handler gluon.contrib.nn gluon.contrib.nn.basic_layers
gluon.contrib.rnn gluon.contrib.rnn.conv_rnn_cell gluon.contrib.rnn.rnn_cell gluon.data gluon.data.dataloader
gluon.data.dataset gluon.data.sampler gluon.data.vision gluon.data.vision.datasets gluon.data.vision.transforms
gluon.loss gluon.model_zoo gluon.model_zoo.model_store gluon.model_zoo.vision gluon.model_zoo.vision.alexnet
gluon.model_zoo.vision.densenet gluon.model_zoo.vision.inception gluon.model_zoo.vision.mobilenet
gluon.model_zoo.vision.resnet gluon.model_zoo.vision.squeezenet gluon.model_zoo.vision.vgg gluon.nn
gluon.nn.activations gluon.nn.basic_layers gluon.nn.conv_layers gluon.parameter gluon.rnn gluon.rnn.rnn_cell
gluon.rnn.rnn_layer gluon.trainer gluon.utils image image.detection image.image initializer io io.io io.utils kvstore
kvstore.base kvstore.kvstore libinfo library log lr_scheduler metric model module module.base_module
module.bucketing_module module.executor_group module.module module.python_module module.sequential_module monitor name
ndarray ndarray.contrib ndarray.image ndarray.linalg ndarray.ndarray ndarray.op ndarray.random ndarray.sparse
ndarray.utils numpy numpy.linalg numpy.multiarray numpy.random numpy_dispatch_protocol numpy_extension
numpy_extension.image numpy_extension.random numpy_op_signature operator optimizer optimizer.contrib
optimizer.optimizer profiler random recordio registry rnn rnn.io rnn.rnn rnn.rnn_cell rtc runtime symbol symbol.contrib
symbol.image symbol.linalg symbol.numpy symbol.numpy.linalg symbol.numpy.random symbol.numpy_extension
symbol.numpy_extension.image symbol.numpy_extension.random symbol.op symbol.random symbol.sparse symbol.symbol
test_utils util visualization
"""

# Additions that programs import: the classes of errors (MXNet: mxnet.error, which works too), the conversion of plain
# Python control flow to graphs, prints that run with the graph, control flow with its further arguments, folds over
# trees, compilers that take over parts of graphs, functions that make batches, the folder of the generated list of
# operators, rewrites of graphs, predictions over HTTP, steps of training, GPUs beside other libraries, and the package
# that makes `import mxnet` import these modules.
ADDED = [
    "as_mxnet", "autograph", "byteps", "contrib.backends", "contrib.backends.onnxruntime", "contrib.control_flow",
    "contrib.onnx", "contrib.tree", "cuda", "debug", "errors", "gluon.data.batchify", "group", "horovod", "jit",
    "launch", "onnx", "onnx.backend", "ops", "ray", "rewrite", "serving",
]  # fmt: skip


def test_modules_that_mxnet_lacks_carry_an_underscore():
    top = Path(mx.__file__).parent
    modules = {path.relative_to(top).with_suffix("").parts for path in top.rglob("*.py")}
    names = {".".join(part for part in parts if part != "__init__") for parts in modules}
    public = {name for name in names if name and not any(part.startswith("_") for part in name.split("."))}
    assert public - {*MXNET.split(), *ADDED} == set()
    assert set(ADDED) <= public
