"""Images that leave the early-exit net after two layers, and images that need its convolutions.

The net is the one with a plain for over the images and a plain if for the exit.
"""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
from early_exit_cond import digits, train
from early_exit_plain import PlainEarlyExitNet
from plot import COLORS, figure

EPOCHS, SHOWN = 8, 7


def of_each_answer(chosen: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Returns the number of one chosen image for each answer, in the order of the images."""
    numbers = np.flatnonzero(chosen)
    return np.sort(numbers[np.unique(answers[numbers], return_index=True)[1]])


def draw(folder: Path) -> None:
    mx.random.seed(1)
    np.random.seed(1)
    images, labels, test_images, _ = digits()
    net = PlainEarlyExitNet(0.8)
    net.initialize(mx.init.Xavier())
    net.hybridize(strict=True)
    train(net, images, labels, EPOCHS)
    data = mx.nd.array(test_images)
    scores, which = net(data)
    answers = scores.argmax(axis=1).asnumpy().astype(int)
    sure = net.cheap(data).softmax().max(axis=1).asnumpy()
    deep = which.asnumpy().ravel() > 0
    with figure(folder / "early_exit_images.svg", columns=SHOWN, rows=2, size=(0.85, 1.25)) as axes:
        for row, chosen, color in zip(axes, (~deep, deep), (COLORS[2], COLORS[1])):
            for ax, number in zip(row, of_each_answer(chosen, answers)):
                ax.imshow(test_images[number, 0], cmap="gray_r")
                ax.set_title(f"{answers[number]}  ({100 * sure[number]:.0f} %)", fontsize=10, color=color)
                ax.axis("off")
        top, bottom = f"above: {(~deep).sum()} images leave early", f"below: {deep.sum()} need convolutions"
        axes[0, 0].figure.suptitle(f"{top}, {bottom}", fontsize=10)


if __name__ == "__main__":
    draw(Path())
