"""An early-exit net: easy images leave after two cheap layers, only doubtful ones need convolutions.

Both classifiers are trained together on scikit-learn's digits. The hybridized net is then one foreach over the images
of a batch with a cond in it: if the first classifier is confident, its answer is returned, else the convolutions run.
Each branch marks its answers, and the counts of executed operators show that the other one did not run.
By hand: ``python examples/early_exit_cond.py``; ``--help`` lists the options.
"""

import argparse
import sys
import time

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.gluon import nn


class EarlyExitNet(gluon.HybridBlock):
    """Classifies images (N, 1, 8, 8) by two layers and, if their confidence is too low, by convolutions.

    In training: the scores (N, 10) of both. In inference: one of them for each image, and its number, 0 or 1 (N, 1).
    """

    def __init__(self, confidence: float = 0.8) -> None:
        super().__init__()
        self.confidence = confidence
        self.cheap = nn.HybridSequential()
        self.cheap.add(nn.Dense(32, activation="relu", in_units=64), nn.Dense(10, in_units=32))
        self.deep = nn.HybridSequential()
        self.deep.add(
            nn.Conv2D(32, kernel_size=3, padding=1, activation="relu", in_channels=1),
            nn.Conv2D(32, kernel_size=3, padding=1, activation="relu", in_channels=32),
            nn.MaxPool2D(),
            nn.Dense(64, activation="relu", in_units=32 * 4 * 4),
            nn.Dense(10, in_units=64),
        )

    def hybrid_forward(self, F, images):
        if autograd.is_training():
            return self.cheap(images), self.deep(images)

        def classify(image, nothing):
            image = image.expand_dims(0)
            scores = self.cheap(image)
            sure = F.max(F.softmax(scores)) > self.confidence
            out, which = F.contrib.cond(
                sure,
                lambda: [scores, F.zeros((1,))],
                lambda: [self.deep(image), F.ones((1,))],
            )
            return [out.reshape((-1,)), which], nothing

        return F.contrib.foreach(classify, images, [])[0]


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """1797 scanned digits, 8x8 pixels: images (N, 1, 8, 8) in [0, 1] and labels, split 4 to 1."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        sys.exit("this example needs scikit-learn for its data: pip install scikit-learn")
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    return images[train], labels[train].astype("float32"), images[test], labels[test].astype("float32")


def train(net: EarlyExitNet, images: np.ndarray, labels: np.ndarray, epochs: int) -> None:
    """Trains on the sum of both exits' losses."""
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    dataset = gluon.data.ArrayDataset(images, labels)
    for _ in range(epochs):
        for data, label in gluon.data.DataLoader(dataset, batch_size=64, shuffle=True):
            with autograd.record():
                cheap, deep = net(data)
                loss = loss_of(cheap, label) + loss_of(deep, label)
            loss.backward()
            trainer.step(len(data))


def accuracy(scores: mx.nd.NDArray, labels: np.ndarray) -> float:
    return float((scores.asnumpy().argmax(1) == labels).mean())


def microseconds(net: EarlyExitNet, images: np.ndarray) -> float:
    """The least time per image of ten runs."""
    data, times = mx.nd.array(images), []
    for _ in range(10):
        start = time.perf_counter()
        net(data)[0].wait_to_read()
        times.append(time.perf_counter() - start)
    return min(times) / len(images) * 1e6


def convolutions_run(net: EarlyExitNet, data: mx.nd.NDArray) -> int:
    """The number of convolutions that one call computes."""
    with mx.test_utils.exec_counts() as counts:
        net(data)[0].wait_to_read()
    return sum(count for (op, _), count in counts.items() if op.lower().endswith("convolution"))


def chance(text: str) -> float:
    if not 0 <= (value := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"expected a number in [0, 1], got {text}")
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8, help="passes over the images (default: 8)")
    parser.add_argument("--confidence", type=chance, default=0.8, help="of leaving early (default: 0.8)")
    args = devices.parse_args(parser)
    if args.epochs < 1:
        parser.error("--epochs must be at least 1")
    mx.random.seed(1)
    np.random.seed(1)
    images, labels, test_images, test_labels = digits()
    net = EarlyExitNet(args.confidence)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    train(net, images, labels, args.epochs)

    data = mx.nd.array(test_images)
    scores, which = net(data)
    doubtful = which.asnumpy().ravel().astype(bool)
    unsure = net.cheap(data).softmax().max(axis=1).asnumpy() <= args.confidence
    reached, cheap, deep = (accuracy(s, test_labels) for s in (scores, net.cheap(data), net.deep(data)))
    print(f"test accuracy: early exit {reached:.4f}, cheap layers alone {cheap:.4f}, convolutions alone {deep:.4f}")
    for name, rows in (("cheap", ~doubtful), ("deep", doubtful)):
        each = f", {microseconds(net, test_images[rows]):.1f} us each" if rows.any() else ""
        print(f"the {name} branch ran {rows.sum()} times{each}")
    ran = convolutions_run(net, data)
    print(f"{ran} convolutions ran; without the exit {2 * len(data)} would have")
    if (doubtful != unsure).any():
        sys.exit("the branches did not follow the confidence of the cheap layers")
    if ran != 2 * doubtful.sum():
        sys.exit("convolutions ran for images that leave early")
    if reached < cheap:
        sys.exit("the early exit is worse than the cheap layers alone")


if __name__ == "__main__":
    main()
