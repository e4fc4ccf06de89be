"""Beam search in one while_loop: the most likely Roman numerals of a small recurrent model.

A GRU learns the numerals from 1 to 89, small ones more often. The search keeps the best few prefixes, tries every
letter after each, and stops as soon as all have ended. Hybridized, search and model are one graph, which is exported
and loaded again, and compared with an exhaustive search of all words.
By hand: ``python examples/beam_search_while.py``; ``--help`` lists the options.
"""

import argparse
import sys
import tempfile
import time

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.gluon import nn, rnn

LETTERS = ".IVXL"  # a dot stands before and after each numeral
END, LENGTH, WIDTH, NEVER = 0, 9, 48, -1e9  # LXXXVIII. has nine letters


class Model(gluon.HybridBlock):
    """One step: log probabilities (N, 5) of the next letter after letters (N,), and the new state (N, WIDTH)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), 16)
        self.cell = rnn.GRUCell(WIDTH, input_size=16)
        self.score = nn.Dense(len(LETTERS), in_units=WIDTH)

    def hybrid_forward(self, F, letters, state):
        out, (state,) = self.cell(self.embed(letters), [state])
        return F.log_softmax(self.score(out)), state


class BeamSearch(gluon.HybridBlock):
    """From log probabilities (beams,) and a state: words (beams, LENGTH), best first, and their log probabilities."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def hybrid_forward(self, F, chances, state):
        def unfinished(step, words, last, growing, chances, state):
            return F.max(growing) > 0

        def extend(step, words, last, growing, chances, state):
            following, state = self.model(last, state)
            # A word that has ended is followed by END only, whose log probability is 0.
            only_end = F.one_hot(F.zeros_like(last), len(LETTERS), on_value=0.0, off_value=NEVER)
            following = F.where(F.broadcast_like(growing.expand_dims(1), following), following, only_end)
            total = F.broadcast_add(chances.expand_dims(1), following).reshape((-1,))
            chances, best = F.sort(total, is_ascend=False), F.argsort(total, is_ascend=False)
            chances, best = F.slice_like(chances, last), F.slice_like(best, last)
            parents = F.floor(best / len(LETTERS))
            last = best - parents * len(LETTERS)
            words = F.take(words, parents) + F.broadcast_mul(last.expand_dims(1), F.one_hot(step, LENGTH))
            growing = F.take(growing, parents) * (last != END)
            return step + 1, words, last, growing, chances, F.take(state, parents)

        words = F.broadcast_mul(F.zeros_like(chances).expand_dims(1), F.zeros((1, LENGTH)))
        first = (F.zeros((1,)), words, F.zeros_like(chances), F.ones_like(chances), chances, state)
        loop = F.contrib.while_loop(unfinished, extend, first, max_iterations=LENGTH, has_outputs=False)
        _, words, _, _, chances, _ = loop
        return words, chances


def numeral(number: int) -> str:
    tens, ones = divmod(number, 10)
    tens = "L" * (tens // 5) + ["", "X", "XX", "XXX", "XL"][tens % 5]
    return tens + ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"][ones]


def train(model: Model, steps: int) -> None:
    """Trains on all numerals at once, number n with weight n ** -0.7."""
    words = [numeral(n) for n in range(1, 90)]
    padded = mx.nd.array([[LETTERS.index(c) for c in "." + w.ljust(LENGTH, ".")] for w in words]).T
    counted = mx.nd.array([[t <= len(w) for w in words] for t in range(LENGTH)])
    weights = mx.nd.array([[n**-0.7 for n in range(1, 90)]])
    trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 1e-2})
    for _ in range(steps):
        with autograd.record():
            chances, _ = mx.nd.contrib.foreach(model, padded[:-1], mx.nd.zeros((len(words), WIDTH)))
            loss = -(mx.nd.pick(chances, padded[1:]) * counted * weights).sum() / weights.sum()
        loss.backward()
        trainer.step(1)


def all_words(model: Model) -> list[tuple[float, str]]:
    """Every word of less than LENGTH letters and its log probability, most likely first."""
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
    words, chances = block(mx.nd.array([0.0] + [NEVER] * (beams - 1)), mx.nd.zeros((beams, WIDTH)))  # an empty prefix
    texts = ["".join(LETTERS[int(i)] for i in word).rstrip(".") for word in words.asnumpy()]
    return [(chance, text) for chance, text in zip(chances.asnumpy().tolist(), texts) if chance > NEVER / 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beams", type=int, default=32, help="beginnings that are kept (default: 32)")
    parser.add_argument("--steps", type=int, default=200, help="steps of training (default: 200)")
    args = devices.parse_args(parser)
    if args.beams < 1 or args.steps < 0:
        parser.error("--beams must be at least 1, --steps at least 0")
    mx.random.seed(3)
    model = Model()
    model.initialize(mx.init.Xavier())
    model.hybridize()
    train(model, args.steps)
    find = BeamSearch(model)
    find.hybridize()
    wanted = all_words(model)
    search(find, args.beams)  # compiles
    begin = time.perf_counter()
    found = search(find, args.beams)
    print(f"beam search: {(time.perf_counter() - begin) * 1e3:.2f} ms; beside it the best of all {len(wanted)} words")
    for (chance, text), (best, truth) in zip(found[:8], wanted):
        print(f"  {text:10} {chance:8.4f}   {truth:10} {best:8.4f}")
    ((greedy, text),) = search(find, 1)
    print(f"  {text:10} {greedy:8.4f}   is what a beam of one finds")
    graph, values = find.export(tempfile.mkdtemp() + "/search")
    block = gluon.SymbolBlock.imports(graph, ["data0", "data1"], values, ctx=mx.current_context())
    if search(block, args.beams) != found:
        sys.exit("the exported search finds other words")
    chances = {word: chance for chance, word in wanted}
    if any(abs(chances.get(text, chance) - chance) > 1e-4 for chance, text in found):
        sys.exit("the search gives a word another chance than the model does")
    if found[0][0] < greedy - 1e-4:
        sys.exit("the search is worse than a beam of one")
    if args.beams >= 32 and [text for _, text in found[:8]] != [text for _, text in wanted[:8]]:
        sys.exit("the search missed words that are likelier than what it found")


if __name__ == "__main__":
    main()
