"""Memory of the compiled training step: the values of its plan by place and lifetime, and the loss of each step."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
from hybridnet import gluon
from plot import figure
from train_step import BATCH, build, digits

ROOT = Path(__file__).resolve().parents[3]
EPOCHS = 3


def draw(folder: Path) -> None:
    images, labels, *_ = digits()
    net, trainer = build()
    step = mx.jit.train_step(net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer)
    mx.random.seed(6)
    losses, rates = [], []
    for _ in range(EPOCHS):
        for first in range(0, len(images), BATCH):
            loss = step(images[first : first + BATCH], labels[first : first + BATCH])
            losses.append(float(loss.mean().asscalar()))
            rates.append(trainer.learning_rate)
    text = step.plan_text().replace(f"{ROOT}/", "")  # files of the program by their place in the project
    mx.viz.plot_memory(text, str(folder / "step_memory.svg"))
    with figure(folder / "step_losses.svg", columns=2, size=(3.3, 2.7)) as (left, right):
        left.plot(losses)
        left.set(xlabel="step", ylabel="loss", yscale="log", title=f"{len(losses)} steps")
        right.plot(rates)
        right.set(xlabel="step", title=f"learning rate, in {step.num_plans} plan", ylim=(0, None))


if __name__ == "__main__":
    draw(Path())
