"""Digits classified by the program in C++, whose answers agree with Python's: it runs the exported net."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hybridnet as mx
import numpy as np
from demo import conv_net, digits
from digits_training import train
from plot import COLORS, figure
from programs import compiled_cpp, output_of

EPOCHS = 2


def doubtful_and_sure(chances: np.ndarray) -> np.ndarray:
    """Returns the numbers of 6 images with the least sure answers, and of the surest image of 6 answers each."""
    order = np.argsort(chances.max(axis=1))
    answers = chances.argmax(axis=1)
    surest = [order[answers[order] == answer][-1] for answer in np.unique(answers)[:6]]
    return np.concatenate([order[:6], surest])


def draw(folder: Path) -> None:
    mx.random.seed(1)
    np.random.seed(1)
    images, labels, test_images, test_labels = digits()
    with tempfile.TemporaryDirectory() as made:
        program = compiled_cpp("examples/export_to_cpp/main.cc", Path(made))
        net = conv_net()
        net.initialize(mx.init.Xavier())
        net.hybridize(static_alloc=True)
        train(net, (images, labels, test_images, test_labels), EPOCHS)
        scores = net(mx.nd.array(test_images))
        symbol, params = net.export(f"{made}/digits")
        mx.nd.save(f"{made}/check.params", {"data": mx.nd.array(test_images), "scores": scores})
        verdict = output_of(program, symbol, params, f"{made}/check.params").strip()
    chances = scores.softmax().asnumpy()
    with figure(folder / "cpp_answers.svg", columns=6, rows=2, size=(0.95, 1.35)) as axes:
        for ax, number in zip(axes.ravel(), doubtful_and_sure(chances)):
            ax.imshow(test_images[number, 0], cmap="gray_r")
            answer = int(chances[number].argmax())
            right = answer == int(test_labels[number])
            ax.set_title(f"{answer}  ({100 * chances[number, answer]:.0f} %)", fontsize=10,
                         color="black" if right else COLORS[1])  # fmt: skip
            ax.axis("off")
        axes[0, 0].figure.suptitle(verdict, fontsize=10)


if __name__ == "__main__":
    draw(Path())
