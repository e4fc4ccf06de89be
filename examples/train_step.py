"""A compiled training step: handwritten digits, with one plan from the forward pass to the update.

Trains the same net twice from the same seeds, by the usual loop over a hybridized net and by ``mx.jit.train_step``, and
shows that weights agree to the bit, the time of a step, and that a schedule of learning rates needs one plan.
By hand: ``python examples/train_step.py``; ``--help`` lists the options.
"""

import argparse
import sys
import time

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon, nd
from hybridnet.gluon import nn
from sklearn.datasets import load_digits

BATCH = 50


def digits() -> tuple[nd.NDArray, nd.NDArray, nd.NDArray, nd.NDArray]:
    """Images (N, 1, 8, 8) and labels (N,) for training, and for testing."""
    found = load_digits()
    order = np.random.RandomState(0).permutation(len(found.target))
    images = (found.images[order, None] / 16).astype("float32")
    labels = found.target[order].astype("float32")
    return nd.array(images[:1500]), nd.array(labels[:1500]), nd.array(images[1500:]), nd.array(labels[1500:])


def build() -> tuple[nn.HybridSequential, gluon.Trainer]:
    mx.random.seed(5)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(16, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Dropout(0.2), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net(nd.zeros((1, 1, 8, 8)))
    schedule = mx.lr_scheduler.CosineScheduler(max_update=300, base_lr=0.01, final_lr=0.001)
    return net, gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01, "lr_scheduler": schedule})


def train(step, images: nd.NDArray, labels: nd.NDArray, epochs: int) -> float:
    """Runs the epochs; returns milliseconds per step of the fastest one."""
    best = float("inf")
    mx.random.seed(6)
    for _ in range(epochs):
        begin = time.perf_counter()
        for first in range(0, len(images), BATCH):
            step(images[first : first + BATCH], labels[first : first + BATCH])
        nd.waitall()
        best = min(best, time.perf_counter() - begin)
    return best * 1e3 / (len(images) // BATCH)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    epochs = devices.parse_args(parser).epochs
    images, labels, test_images, test_labels = digits()

    net, trainer = build()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    net.hybridize(static_alloc=True)
    loss.hybridize(static_alloc=True)

    def loop(data: nd.NDArray, label: nd.NDArray) -> nd.NDArray:
        with autograd.record():
            value = loss(net(data), label)
        value.backward()
        trainer.step(BATCH)
        return value

    loop_ms = train(loop, images, labels, epochs)

    compiled, trainer_of_step = build()
    step = mx.jit.train_step(compiled, gluon.loss.SoftmaxCrossEntropyLoss(), trainer_of_step)
    step_ms = train(step, images, labels, epochs)

    accuracy = float((compiled(test_images).argmax(axis=1) == test_labels).mean().asscalar())
    pairs = zip(net.collect_params().values(), compiled.collect_params().values(), strict=True)
    same = all(np.array_equal(a.data().asnumpy(), b.data().asnumpy()) for a, b in pairs)
    print(f"test accuracy {accuracy:.3f}; weights equal those of the loop: {same}")
    print(f"plans: {step.num_plans}, learning rate now {trainer_of_step.learning_rate:.4f}")
    print(f"a step takes {step_ms:.2f} ms, the loop {loop_ms:.2f} ms")
    return 0 if same and accuracy > 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
