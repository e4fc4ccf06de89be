"""Training in float32, bfloat16 and float16 from the same weights: loss of each step, accuracy after each epoch."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
from amp_training import BATCH, build, digits
from hybridnet import gluon
from plot import figure

EPOCHS = 4


def trained(precision: str, data: tuple[mx.nd.NDArray, ...]) -> tuple[list[float], list[float]]:
    """Trains the net of the example; returns the mean loss of each batch and the accuracy after each epoch."""
    images, labels, test_images, test_labels = data
    net = build()
    net.hybridize(precision=precision)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})
    step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer, precision=precision)
    losses, reached = [], []
    for _ in range(EPOCHS):
        for first in range(0, len(images), BATCH):
            losses.append(float(step(images[first : first + BATCH], labels[first : first + BATCH]).mean().asscalar()))
        right = net(test_images).argmax(axis=1) == test_labels
        reached.append(100 * float(right.mean().asscalar()))
    return losses, reached


def draw(folder: Path) -> None:
    data = digits()
    with figure(folder / "precision_losses.svg", columns=2, size=(3.3, 2.8)) as (left, right):
        for precision, style in {"float32": "-", "bfloat16": "--", "float16": ":"}.items():
            losses, reached = trained(precision, data)
            left.plot(losses, style, label=precision)
            right.plot(range(1, EPOCHS + 1), reached, style, marker="o", label=precision)
        left.set(xlabel="step", ylabel="loss", yscale="log", title="training")
        left.legend(frameon=False, fontsize=9)
        right.set(xlabel="epoch", ylabel="right answers, %", xticks=range(1, EPOCHS + 1))
        right.set_title(f"{len(data[2])} images not seen")


if __name__ == "__main__":
    draw(Path())
