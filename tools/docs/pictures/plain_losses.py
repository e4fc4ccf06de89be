"""The language model with foreach and with a plain for: losses of both, from the same weights."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
from lstm_foreach import LanguageModel
from lstm_plain import PlainLanguageModel, trained
from plot import figure

WIDTH, STEPS = 64, 30


def draw(folder: Path) -> None:
    mx.random.seed(1)
    first = LanguageModel(WIDTH)
    first.initialize(mx.init.Xavier())
    weights = [parameter.data().asnumpy() for parameter in first.collect_params().values()]
    losses, reached = trained(LanguageModel(WIDTH), weights, STEPS)
    plain_losses, plain_reached = trained(PlainLanguageModel(WIDTH), weights, STEPS)
    apart = max(np.abs(a - b).max() for a, b in zip(reached, plain_reached, strict=True))
    steps = range(1, STEPS + 1)
    with figure(folder / "plain_losses.svg", size=(5.5, 3.2)) as ax:
        ax.plot(steps, losses, label="foreach")
        ax.plot(steps, plain_losses, "o", markersize=4, label="plain for, hybridized")
        ax.set(xlabel="update", ylabel="loss", title=f"largest difference of the trained weights: {apart:g}")
        ax.legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
