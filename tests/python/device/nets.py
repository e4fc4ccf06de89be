"""Small networks with layers, loops and branches, and inputs of several runs: those of examples/ where there is one."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "examples"))

import beam_search_while
import early_exit_cond
import hybridnet as mx
import lstm_foreach
import numpy as np
from hybridnet.gluon import Block, nn

RUNS = 4  # a plan records its launches in the second run; later ones are graphs
WIDTH, BATCH = 6, 2


class Case(NamedTuple):
    """A network with parameters on the CPU, and the inputs of each run."""

    net: Block
    runs: list[list[np.ndarray]]


def _images(size: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(1)
    return [[rng.random((4, 1, size, size)).astype("float32")] for _ in range(RUNS)]


def _ready(net: Block, runs: list[list[np.ndarray]]) -> Case:
    mx.random.seed(2)
    net.initialize(mx.init.Xavier(magnitude=4))
    net(*(mx.nd.array(x) for x in runs[0]))
    return Case(net, runs)


def mlp() -> Case:
    net = nn.HybridSequential(prefix="mlp_")
    net.add(nn.Dense(16, activation="relu"), nn.Dense(12, activation="tanh"), nn.Dense(10))
    return _ready(net, _images(8))


def lenet() -> Case:
    net = nn.HybridSequential(prefix="lenet_")
    net.add(nn.Conv2D(4, 5, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(6, 3, activation="tanh"))
    net.add(nn.MaxPool2D(2, 2), nn.Dense(12, activation="tanh"), nn.Dense(10))
    return _ready(net, _images(14))


def language_model() -> Case:
    """Two layers of LSTM cells in a foreach, long enough for a loop of the GPU."""
    rng = np.random.default_rng(3)
    states = [rng.normal(size=(BATCH, WIDTH)).astype("float32") for _ in range(4)]
    runs = [[rng.integers(0, 30, (9, BATCH)).astype("float32"), *states] for _ in range(RUNS)]
    return _ready(lstm_foreach.LanguageModel(width=WIDTH), runs)


def beam_search() -> Case:
    """Beam search in a while_loop."""
    start = np.array([0.0] + [beam_search_while.NEVER] * 3, "float32")
    states = np.random.default_rng(4).normal(size=(RUNS, 4, beam_search_while.WIDTH)).astype("float32")
    return _ready(beam_search_while.BeamSearch(beam_search_while.Model()), [[start, state] for state in states])


def early_exit() -> Case:
    """A cond for each image, half of which leave early."""
    runs = _images(8)
    net = _ready(early_exit_cond.EarlyExitNet(), runs).net
    confidences = np.sort(net.cheap(mx.nd.array(runs[0][0])).softmax().max(axis=1).asnumpy())
    net.confidence = float(confidences[1:3].mean())
    return Case(net, runs)


CASES: dict[str, Callable[[], Case]] = {
    each.__name__: each for each in (mlp, lenet, language_model, beam_search, early_exit)
}


def outputs(net: Block, inputs: list[np.ndarray], ctx: mx.Context) -> list[np.ndarray]:
    """The outputs of a run on the device of the parameters."""
    found = net(*(mx.nd.array(x, ctx=ctx) for x in inputs))
    found = found if isinstance(found, (list, tuple)) else [found]
    assert all(each.context == ctx for each in found)
    return [each.asnumpy() for each in found]
