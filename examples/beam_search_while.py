"""Beam search in one while_loop: the likeliest Roman numerals of a small recurrent model.

A GRU learns the numerals from 1 to 89, small ones more often. The search keeps the best few beginnings, tries every
letter behind each, and stops as soon as all have ended. Hybridized, search and model are one graph, which is exported
and loaded again. Then all words there are are tried. By hand: ``python examples/beam_search_while.py``.
"""

import pathlib
import sys
import tempfile
import time

import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.gluon import nn, rnn

LETTERS = ".IVXL"  # a dot stands before and behind each numeral
END, LENGTH, WIDTH, BEAMS, NEVER = 0, 9, 48, 32, -1e9  # LXXXVIII. has nine letters


class Model(gluon.HybridBlock):
    """One step: logarithms of the chances (N, 5) of what follows letters (N,), and the new state (N, WIDTH)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), 16)
        self.cell = rnn.GRUCell(WIDTH, input_size=16)
        self.score = nn.Dense(len(LETTERS), in_units=WIDTH)

    def hybrid_forward(self, F, letters, state):
        out, (state,) = self.cell(self.embed(letters), [state])
        return F.log_softmax(self.score(out)), state


class BeamSearch(gluon.HybridBlock):
    """From chances (beams,), state (beams, WIDTH): words (beams, LENGTH), best first, and their log chances."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def hybrid_forward(self, F, chances, state):
        def unfinished(step, words, last, growing, chances, state):
            return F.max(growing) > 0

        def extend(step, words, last, growing, chances, state):
            following, state = self.model(last, state)
            # A word that has ended is followed by END only, which costs nothing.
            only_end = F.one_hot(F.zeros_like(last), len(LETTERS), on_value=0.0, off_value=NEVER)
            following = F.where(F.broadcast_like(growing.expand_dims(1), following), following, only_end)
            total = F.broadcast_add(chances.expand_dims(1), following).reshape((-1,))
            chances, best = F.sort(total, is_ascend=False), F.argsort(total, is_ascend=False)
            chances, best = F.slice_like(chances, last), F.slice_like(best, last)
            parents = F.floor(best / len(LETTERS))
            last = best - parents * len(LETTERS)
            column = F.one_hot(step, LENGTH)
            words = F.take(words, parents) + F.broadcast_mul(last.expand_dims(1), column)
            growing = F.take(growing, parents) * (last != END)
            return step + 1, words, last, growing, chances, F.take(state, parents)

        words = F.broadcast_mul(F.zeros_like(chances).expand_dims(1), F.zeros((1, LENGTH)))
        first = (F.zeros((1,)), words, F.zeros_like(chances), F.ones_like(chances), chances, state)
        _, words, _, _, chances, _ = F.contrib.while_loop(
            unfinished, extend, first, max_iterations=LENGTH, has_outputs=False
        )
        return words, chances


def numeral(number: int) -> str:
    text = ""
    for value, letters in ((50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        text += letters * (number // value)
        number %= value
    return text


def train(model: Model, steps: int) -> None:
    """All numerals at once, number n with weight n ** -0.7."""
    words = [numeral(n) for n in range(1, 90)]
    padded = mx.nd.array([[LETTERS.index(c) for c in "." + w.ljust(LENGTH, ".")] for w in words]).T
    counted = mx.nd.array([[t <= len(w) for w in words] for t in range(LENGTH)])
    weights = mx.nd.array([[n**-0.7 for n in range(1, 90)]])
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 1e-2})
    state = mx.nd.zeros((len(words), WIDTH))
    for _ in range(steps):
        with autograd.record():
            chances, _ = mx.nd.contrib.foreach(model, padded[:-1], state)
            loss = -(mx.nd.pick(chances, padded[1:]) * counted * weights).sum() / weights.sum()
        loss.backward()
        trainer.step(1)


def all_words(model: Model) -> list[tuple[float, str]]:
    """Every word of less than LENGTH letters and the logarithm of its chance, likeliest first."""
    found, beginnings, chances = [], [""], np.zeros(1)
    last, state = mx.nd.zeros((1,)), mx.nd.zeros((1, WIDTH))
    for _ in range(LENGTH):
        following, state = model(last, state)
        following = chances[:, None] + following.asnumpy()
        found += zip(following[:, END].tolist(), beginnings)
        beginnings = [b + c for b in beginnings for c in LETTERS[1:]]
        chances = following[:, 1:].ravel()
        last = mx.nd.array(np.tile(np.arange(1, len(LETTERS)), len(state)))
        state = mx.nd.repeat(state, len(LETTERS) - 1, axis=0)
    return sorted(found, reverse=True)


def search(block: gluon.Block, beams: int) -> list[tuple[float, str]]:
    start = mx.nd.array([0.0] + [NEVER] * (beams - 1))  # one beginning, the empty one
    words, chances = block(start, mx.nd.zeros((beams, WIDTH)))
    texts = ["".join(LETTERS[int(i)] for i in word).rstrip(".") for word in words.asnumpy()]
    return list(zip(chances.asnumpy().tolist(), texts))


def main() -> None:
    mx.random.seed(3)
    model = Model()
    model.initialize(mx.init.Xavier())
    model.hybridize()
    train(model, steps=200)
    find = BeamSearch(model)
    find.hybridize()
    begin = time.perf_counter()
    wanted = all_words(model)
    print(f"all {len(wanted)} words: {time.perf_counter() - begin:.2f} s")
    search(find, BEAMS)
    begin = time.perf_counter()
    found = search(find, BEAMS)
    print(f"beam search: {(time.perf_counter() - begin) * 1e3:.2f} ms")
    for (chance, text), (best, truth) in zip(found[:8], wanted):
        print(f"  {text:10} {chance:8.4f}   {truth:10} {best:8.4f}")
    ((chance, text),) = search(find, 1)
    print(f"  {text:10} {chance:8.4f}   is what a beam of one finds")
    files = find.export(str(pathlib.Path(tempfile.mkdtemp()) / "search"))
    loaded = gluon.SymbolBlock.imports(files[0], ["data0", "data1"], files[1])
    if search(loaded, BEAMS) != found:
        sys.exit("the exported search finds other words")
    if [t for _, t in found[:8]] != [t for _, t in wanted[:8]] or abs(found[0][0] - wanted[0][0]) > 1e-4:
        sys.exit("beam search missed words that are likelier than what it found")
    if chance >= wanted[0][0]:
        sys.exit("a beam of one is as good: this model shows nothing")


if __name__ == "__main__":
    main()
