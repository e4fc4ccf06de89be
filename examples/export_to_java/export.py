"""Writes the models for the programs of this folder, a classifier of digits and a beam search, and results to compare.

``python export.py FOLDER`` writes digits-* and search-* (the exported models), digits.params (arrays "data", "scores")
and search.params (arrays "chances", "state", "words"). README.md of this folder says how to run the Java programs.
"""

from __future__ import annotations

import pathlib
import sys

import hybridnet as mx
from hybridnet import autograd, gluon
from hybridnet.gluon import nn
from sklearn.datasets import load_digits

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import beam_search_while

BEAMS = 32


def export_digits(folder: pathlib.Path) -> None:
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8).astype("float32") / 16
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1, activation="relu"), nn.MaxPool2D(), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 5e-3})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    batches = list(gluon.data.DataLoader(gluon.data.ArrayDataset(images[:1500], labels[:1500]), 50))
    for data, label in batches * 5:
        with autograd.record():
            loss = loss_of(net(data), label)
        loss.backward()
        trainer.step(len(data))
    test = mx.nd.array(images[1500:])
    net.export(str(folder / "digits"))
    mx.nd.save(str(folder / "digits.params"), {"data": test, "scores": net(test)})


def export_search(folder: pathlib.Path) -> None:
    model = beam_search_while.Model()
    model.initialize(mx.init.Xavier())
    model.hybridize()
    beam_search_while.train(model, 100)
    search = beam_search_while.BeamSearch(model)
    search.hybridize()
    chances = mx.nd.array([0.0] + [beam_search_while.NEVER] * (BEAMS - 1))
    state = mx.nd.zeros((BEAMS, beam_search_while.WIDTH))
    words, _ = search(chances, state)
    search.export(str(folder / "search"))
    mx.nd.save(str(folder / "search.params"), {"chances": chances, "state": state, "words": words})


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    mx.random.seed(3)
    export_digits(target)
    export_search(target)
