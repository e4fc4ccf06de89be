"""Accuracy of the early-exit net against its cost, the share of images that run through the convolutions."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
from early_exit_cond import EarlyExitNet, accuracy, digits, train
from plot import figure

CONFIDENCES = [0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0]


def draw(folder: Path) -> None:
    mx.random.seed(1)
    np.random.seed(1)
    images, labels, test_images, test_labels = digits()
    net = EarlyExitNet()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    train(net, images, labels, 4)
    data = mx.nd.array(test_images)
    cost, right = [], []
    for net.confidence in CONFIDENCES:  # another confidence is another graph
        scores, which = net(data)
        cost.append(100 * float(which.mean().asscalar()))
        right.append(100 * accuracy(scores, test_labels))
    with figure(folder / "early_exit_cost.svg", size=(5.5, 3.4)) as ax:
        ax.plot(cost, right, marker="o")
        for x, y, confidence in zip(cost, right, CONFIDENCES):
            if confidence in (0.0, 0.6, 0.8, 0.95, 1.0):
                ax.annotate(f"{confidence:g}", (x, y), textcoords="offset points", xytext=(5, -11), fontsize=9)
        ax.set(xlabel="images that need convolutions, %", ylabel="right answers, %")
        ax.set_title("numbers: confidence for the early exit")


if __name__ == "__main__":
    draw(Path())
