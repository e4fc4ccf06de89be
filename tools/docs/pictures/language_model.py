"""Perplexity of the language model while it learns: each point is a stretch of 32 letters in 32 columns of text."""

from __future__ import annotations

import math
from pathlib import Path

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from lstm_foreach import ALPHABET, BATCH, LanguageModel, perplexity_of_counts, stretches, texts
from plot import figure

STEPS = 120


def draw(folder: Path) -> None:
    mx.random.seed(1)
    np.random.seed(1)
    train, test = texts()
    net = LanguageModel(96)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 4e-3})
    loss_of, curve = gluon.loss.SoftmaxCrossEntropyLoss(), []
    while len(curve) < STEPS:
        states = net.cells.begin_state(batch_size=BATCH)
        for data, following in stretches(train):
            with autograd.record():
                scores, *states = net(data, *states)
                loss = loss_of(scores.reshape((-1, len(ALPHABET))), following.reshape((-1,))).mean()
            loss.backward()
            gluon.utils.clip_global_norm([p.grad() for p in net.collect_params().values()], 1.0)
            trainer.step(1)
            states = [state.detach() for state in states]
            curve.append(math.exp(loss.asscalar()))
    letters, pairs = (perplexity_of_counts(train, test, pairs=value) for value in (False, True))
    with figure(folder / "language_model.svg", size=(5.5, 3.2)) as ax:
        ax.plot(curve[:STEPS], label="two LSTM layers in a foreach")
        ax.axhline(letters, color="#90a4ae", linestyle="--", label="counts of letters")
        ax.axhline(pairs, color="#90a4ae", linestyle=":", label="counts of pairs")
        ax.set(xlabel="update", ylabel="perplexity", yscale="log")
        ax.legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
