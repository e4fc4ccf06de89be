"""Mixed precision: handwritten digits in float32, bfloat16 and float16.

Trains the same net from the same seeds with ``mx.jit.train_step`` in each precision: products run in 16 bits, weights
and their updates stay in float32. float16 has a small range, so the step scales its loss: it raises and lowers the
scale, and leaves out updates whose gradients overflow. At the end the net predicts in the same precision.
By hand: ``python examples/amp_training.py``; ``--help`` lists the options.
"""

import argparse
import sys
import time

import devices
import hybridnet as mx
import numpy as np
from hybridnet import gluon, nd
from hybridnet.gluon import nn
from sklearn.datasets import load_digits

BATCH = 50


def digits() -> tuple[nd.NDArray, nd.NDArray, nd.NDArray, nd.NDArray]:
    """Images (N, 1, 8, 8) and labels (N,) for training, and for testing."""
    found = load_digits()
    order = np.random.RandomState(0).permutation(len(found.target))
    images = (found.images[order, None] / 16).astype("float32")
    labels = found.target[order].astype("float32")
    return nd.array(images[:1400]), nd.array(labels[:1400]), nd.array(images[1400:]), nd.array(labels[1400:])


def build() -> nn.HybridSequential:
    mx.random.seed(5)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(32, 3, padding=1, activation="relu", in_channels=1))
        net.add(nn.Conv2D(32, 3, padding=1, in_channels=32), nn.BatchNorm(in_channels=32), nn.Activation("relu"))
        net.add(nn.MaxPool2D(), nn.Flatten(), nn.Dense(64, activation="relu", in_units=512), nn.Dense(10, in_units=64))
    net.initialize(mx.init.Xavier())
    return net


def train(precision: str, epochs: int, data: tuple[nd.NDArray, ...]) -> tuple[float, float]:
    """Returns the accuracy on the test images and milliseconds per step."""
    images, labels, test_images, test_labels = data
    net = build()
    net.hybridize(precision=precision)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})
    step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer, precision=precision)
    best = float("inf")
    for _ in range(epochs):
        begin = time.perf_counter()
        for first in range(0, len(images), BATCH):
            step(images[first : first + BATCH], labels[first : first + BATCH])
        nd.waitall()
        best = min(best, time.perf_counter() - begin)
    found = net(test_images).argmax(axis=1)
    return float((found == test_labels).mean().asscalar()), best * 1e3 / (len(images) // BATCH)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    epochs = devices.parse_args(parser).epochs
    data = digits()
    accuracies = {}
    for precision in ("float32", "bfloat16", "float16"):
        accuracies[precision], milliseconds = train(precision, epochs, data)
        print(f"{precision:9} test accuracy {accuracies[precision]:.3f}, {milliseconds:.2f} ms per step")
    near = all(abs(value - accuracies["float32"]) <= 0.01 for value in accuracies.values())
    print(f"accuracies agree within a point: {near}")
    return 0 if near else 1


if __name__ == "__main__":
    sys.exit(main())
