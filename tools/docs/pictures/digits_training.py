"""Training of the digits net: loss of each batch, accuracy after each epoch, and images with their answers."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
from demo import accuracy, conv_net, digits, train_step
from hybridnet import gluon
from plot import figure

EPOCHS = 5


def train(
    net: gluon.HybridBlock, data: tuple[np.ndarray, ...], epochs: int = EPOCHS
) -> tuple[list[float], list[float]]:
    """Returns the loss of each batch and the accuracy on test images after each epoch."""
    images, labels, test_images, test_labels = data
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(images, labels), batch_size=64, shuffle=True)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    losses, reached = [], []
    for _ in range(epochs):
        for batch, label in loader:
            losses.append(float(train_step(net, loss_of, trainer, batch, label).mean().asscalar()))
        reached.append(accuracy(net, test_images, test_labels))
    return losses, reached


def draw(folder: Path) -> None:
    mx.random.seed(1)
    np.random.seed(1)
    data = digits()
    net = conv_net()
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True)
    losses, reached = train(net, data)
    with figure(folder / "digits_training.svg", columns=2) as (left, right):
        left.plot(losses)
        left.set(xlabel="batch", ylabel="loss", yscale="log", title="training")
        right.plot(range(1, EPOCHS + 1), [100 * value for value in reached], marker="o")
        right.set(xlabel="epoch", ylabel="right answers, %", title="360 images not seen", xticks=range(1, EPOCHS + 1))
    answers = net(mx.nd.array(data[2])).argmax(axis=1).asnumpy().astype(int)
    wrong = np.flatnonzero(answers != data[3])[:8]
    shown = np.concatenate([wrong, np.setdiff1d(np.arange(len(answers)), wrong)])[:16]
    with figure(folder / "digits_answers.svg", columns=8, rows=2, size=(0.9, 1.1)) as axes:
        for ax, number in zip(axes.ravel(), shown):
            ax.imshow(data[2][number, 0], cmap="gray_r")
            label = int(data[3][number])
            right = answers[number] == label
            text = str(answers[number]) if right else f"{answers[number]}, not {label}"
            ax.set_title(text, fontsize=9, color="black" if right else "#e65100")
            ax.axis("off")


if __name__ == "__main__":
    draw(Path())
