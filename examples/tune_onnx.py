"""Tuning an ONNX file of another library: its head is replaced, and the net is trained on digits and exported again.

The file comes from PyTorch if that is installed, else from the package onnx: a net for 28 x 28 images with three
classes. The digits of scikit-learn have 8 x 8 pixels and ten classes; its convolutions fit both. ONNX Runtime runs the
result. Needs the packages onnx, onnxruntime and scikit-learn. By hand: ``python examples/tune_onnx.py``.
"""

import argparse
import contextlib
import io
import pathlib
import sys
import tempfile
import warnings

import devices
import hybridnet as mx
import numpy as np
import onnx
import onnxruntime
from hybridnet import autograd, gluon, nd
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

BATCH = 50


def digits() -> tuple[nd.NDArray, nd.NDArray, np.ndarray, np.ndarray]:
    """Images (N, 1, 8, 8) and labels (N,) for training, and for testing."""
    found = load_digits()
    order = np.random.RandomState(0).permutation(len(found.target))
    images = (found.images[order, None] / 16).astype("float32")
    labels = found.target[order].astype("float32")
    return nd.array(images[:1500]), nd.array(labels[:1500]), images[1500:], labels[1500:]


def write_with_torch(path: str) -> bool:
    """Writes the file with PyTorch; False: it is not installed."""
    try:
        import torch
    except ImportError:
        return False
    torch.manual_seed(0)
    layers = torch.nn
    net = layers.Sequential(
        *(layers.Conv2d(1, 16, 3, padding=1), layers.BatchNorm2d(16), layers.ReLU(), layers.MaxPool2d(2)),
        *(layers.Conv2d(16, 32, 3, padding=1), layers.BatchNorm2d(32), layers.ReLU()),
        *(layers.AdaptiveAvgPool2d(1), layers.Flatten(), layers.Linear(32, 3)),
    )
    axes = {"x": {0: "batch", 2: "height", 3: "width"}}
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net.eval(), torch.zeros(1, 1, 28, 28), path, input_names=["x"], dynamic_axes=axes, dynamo=False
        )
    return True


def write_with_onnx(path: str) -> None:
    """Writes a file like that of PyTorch, node by node."""
    draw = np.random.default_rng(0)
    nodes, arrays, name = [], {}, "x"
    for number, (inputs, outputs) in enumerate([(1, 16), (16, 32)]):
        arrays[f"w{number}"] = draw.normal(0, (2 / (9 * inputs)) ** 0.5, (outputs, inputs, 3, 3))
        nodes.append(helper.make_node("Conv", [name, f"w{number}"], [f"c{number}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"]))
        name = f"r{number}"
        if number == 0:
            nodes.append(helper.make_node("MaxPool", [name], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]))
            name = "pooled"
    arrays["w"], arrays["b"] = draw.normal(size=(3, 32)), np.zeros(3)
    nodes.append(helper.make_node("GlobalAveragePool", [name], ["means"]))
    nodes.append(helper.make_node("Flatten", ["means"], ["flat"], name="Flatten"))
    nodes.append(helper.make_node("Gemm", ["flat", "w", "b"], ["y"], transB=1))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1, "height", "width"])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    constants = [numpy_helper.from_array(array.astype("float32"), key) for key, array in arrays.items()]
    graph = helper.make_graph(nodes, "net", [given], [made], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)


def with_new_head(path: str, classes: int) -> gluon.HybridBlock:
    """The net of the file with another last layer: the graph up to the old one's input, and a Dense."""
    symbol, arguments, states = mx.onnx.import_model(path)
    layers = symbol.get_internals()
    last = next(name for name in layers.list_outputs() if name.endswith("Flatten_output"))
    features = gluon.SymbolBlock(layers[last], mx.sym.var("x"))
    known = {**arguments, **states}
    for name, parameter in features.collect_params().items():
        parameter.shape = known[name].shape
        parameter.initialize()
        parameter.set_data(known[name])
    net = gluon.nn.HybridSequential()
    width = layers[last].infer_shape(x=(1, 1, 8, 8))[1][0][1]
    net.add(features, gluon.nn.Dense(classes, in_units=width))
    net[1].initialize(mx.init.Xavier())
    return net


def train(net: gluon.HybridBlock, images: nd.NDArray, labels: nd.NDArray, epochs: int) -> None:
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    net.hybridize()
    for _ in range(epochs):
        for first in range(0, len(images), BATCH):
            with autograd.record():
                error = loss(net(images[first : first + BATCH]), labels[first : first + BATCH])
            error.backward()
            trainer.step(BATCH)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    epochs = devices.parse_args(parser).epochs
    images, labels, test_images, test_labels = digits()
    mx.random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        given, tuned = (str(pathlib.Path(folder) / name) for name in ("given.onnx", "tuned.onnx"))
        maker = "PyTorch" if write_with_torch(given) else "onnx.helper"
        if maker == "onnx.helper":
            write_with_onnx(given)
        net = with_new_head(given, 10)
        train(net, images, labels, epochs)
        mx.onnx.export_model(net, onnx_file_path=tuned)
        session = onnxruntime.InferenceSession(tuned, providers=["CPUExecutionProvider"])
        own = net(nd.array(test_images)).asnumpy()
        other = session.run(None, {session.get_inputs()[0].name: test_images})[0]
    accuracy = float((other.argmax(1) == test_labels).mean())
    difference = float(np.abs(own - other).max())
    print(f"a net of {maker}, tuned: test accuracy {accuracy:.3f} in ONNX Runtime")
    print(f"largest difference to HybridNet: {difference:.1e}")
    return 0 if accuracy > 0.9 and difference < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
