"""A language model of characters: two LSTM layers in one foreach, trained on Python's own manual.

The text is part of Python (the output of ``help("assignment")``). Training is truncated backpropagation through time:
the states at the end of a stretch of text are the initial states of the next one, without their history. Hybridized,
the time loop is one node of the graph, its gradient another loop, and neither runs Python.
By hand: ``python examples/lstm_foreach.py``; ``--help`` lists the options.
"""

import argparse
import math
import pydoc_data.topics
import sys
import time

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.gluon import nn, rnn

TOPICS = ["assignment", "calls", "compound", "debugger", "execmodel", "import", "strings", "types"]
ALPHABET = " abcdefghijklmnopqrstuvwxyz.,:;()'\"=_-"
BATCH, STRETCH = 32, 32


class LanguageModel(gluon.HybridBlock):
    """Scores (T, N, len(ALPHABET)) of the letters that follow letters (T, N); and the states after the last."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET), 32)
        self.cells = rnn.HybridSequentialRNNCell()
        self.cells.add(rnn.LSTMCell(width, input_size=32))
        self.cells.add(rnn.LSTMCell(width, input_size=width))
        self.score = nn.Dense(len(ALPHABET), flatten=False, in_units=width)

    def hybrid_forward(self, F, letters, *states):
        outs, states = F.contrib.foreach(self.cells, self.embed(letters), list(states))
        return self.score(outs), *states


def texts() -> tuple[np.ndarray, np.ndarray]:
    """Letters as positions in ALPHABET, columns of text (T, BATCH): for training, and for testing."""
    text = " ".join(pydoc_data.topics.topics.get(topic, "") for topic in TOPICS)
    letters = np.array([ALPHABET.index(c) for c in " ".join(text.lower().split()) if c in ALPHABET], dtype="float32")
    columns = letters[: len(letters) // BATCH * BATCH].reshape(BATCH, -1).T
    border = len(columns) * 9 // 10
    return columns[:border], columns[border:]


def stretches(columns: np.ndarray):
    """Yields pairs of inputs and the letters that follow them, in order."""
    for t in range(0, len(columns) - STRETCH, STRETCH):
        yield mx.nd.array(columns[t : t + STRETCH]), mx.nd.array(columns[t + 1 : t + STRETCH + 1])


def train_epoch(net: LanguageModel, trainer: gluon.Trainer, columns: np.ndarray) -> float:
    """Trains for one epoch; returns the perplexity during training."""
    loss_of, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    loss_of.hybridize()
    states = net.cells.begin_state(batch_size=BATCH)
    for data, following in stretches(columns):
        with autograd.record():
            scores, *states = net(data, *states)
            loss = loss_of(scores.reshape((-1, len(ALPHABET))), following.reshape((-1,))).mean()
        loss.backward()
        gluon.utils.clip_global_norm([p.grad() for p in net.collect_params().values()], 1.0)
        trainer.step(1)
        states = [state.detach() for state in states]  # the truncation: the next gradient stops here
        losses.append(loss.asscalar())
    return math.exp(np.mean(losses))


def perplexity(net: LanguageModel, columns: np.ndarray) -> float:
    loss_of, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    states = net.cells.begin_state(batch_size=BATCH)
    for data, following in stretches(columns):
        scores, *states = net(data, *states)
        losses.append(loss_of(scores.reshape((-1, len(ALPHABET))), following.reshape((-1,))).mean().asscalar())
    return math.exp(np.mean(losses))


def perplexity_of_counts(train: np.ndarray, test: np.ndarray, pairs: bool) -> float:
    """The test perplexity of counts of letters, or of pairs of letters, in the training text: baselines."""
    counts = np.ones((len(ALPHABET), len(ALPHABET)))  # one is added to each count, so no pair is impossible
    np.add.at(counts, (train[:-1].astype(int), train[1:].astype(int)), 1)
    if not pairs:
        counts[:] = counts.sum(axis=0)
    chances = counts / counts.sum(axis=1, keepdims=True)
    return math.exp(-np.mean(np.log(chances[test[:-1].astype(int), test[1:].astype(int)])))


def sample(net: LanguageModel, start: str, count: int, rng: np.random.Generator) -> str:
    """Returns `start` and `count` letters drawn from the model, with likely letters preferred."""
    states, text = net.cells.begin_state(batch_size=1), start
    letters = start
    for _ in range(count):
        scores, *states = net(mx.nd.array([[ALPHABET.index(c)] for c in letters]), *states)
        chances = mx.nd.softmax(scores[-1, 0] / 0.6).asnumpy().astype("float64")
        letters = ALPHABET[rng.choice(len(ALPHABET), p=chances / chances.sum())]
        text += letters
    return text


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected an integer from 1 up, got {text!r}")
    return int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=positive, default=3, help="passes over the text (default: 3)")
    parser.add_argument("--width", type=positive, default=128, help="units of each LSTM layer (default: 128)")
    parser.add_argument("--letters", type=positive, default=200, help="letters to write in the end (default: 200)")
    args = devices.parse_args(parser)
    mx.random.seed(1)
    np.random.seed(1)
    train, test = texts()
    letters, pairs = (perplexity_of_counts(train, test, pairs) for pairs in (False, True))
    print(f"{train.size} letters to learn from; perplexity of counting letters {letters:.1f}, pairs {pairs:.1f}")
    net = LanguageModel(args.width)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 4e-3})
    for epoch in range(args.epochs):
        start = time.perf_counter()
        learned = train_epoch(net, trainer, train)
        seconds = time.perf_counter() - start
        reached = perplexity(net, test)
        print(f"epoch {epoch}: perplexity {learned:.2f}, not seen {reached:.2f}, {seconds:.1f} s")
    print(sample(net, "the value of ", args.letters, np.random.default_rng(2)))
    if not reached < letters:
        sys.exit(f"the model did not learn: perplexity {reached:.2f}, no better than counting letters")


if __name__ == "__main__":
    main()
