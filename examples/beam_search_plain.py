"""The beam search of beam_search_while.py in plain Python: a for with break, and words written in place.

``hybridize()`` turns the loop into the node that while_loop makes, so the search is one graph, which is exported and
loaded again. Words and chances are those of the explicit form, to the bit.
By hand: ``python examples/beam_search_plain.py``; ``--help`` lists the options.
"""

import argparse
import sys
import tempfile

import devices
import hybridnet as mx
from beam_search_while import END, LENGTH, LETTERS, NEVER, BeamSearch, Model, search, train
from hybridnet import gluon


class PlainBeamSearch(BeamSearch):
    """The same arguments and results as BeamSearch."""

    def forward(self, chances, state):
        last, growing = mx.nd.zeros_like(chances), mx.nd.ones_like(chances)
        words = mx.nd.broadcast_mul(mx.nd.zeros((LENGTH, 1)), last.expand_dims(0))  # a column for each beginning
        # A word that has ended is followed by END only, whose log probability is 0.
        only_end = mx.nd.one_hot(last, len(LETTERS), on_value=0.0, off_value=NEVER)
        for step in mx.range(LENGTH):
            if growing.max() == 0:
                break
            following, state = self.model(last, state)
            following = mx.nd.where(mx.nd.broadcast_like(growing.expand_dims(1), following), following, only_end)
            total = mx.nd.broadcast_add(chances.expand_dims(1), following).reshape((-1,))
            chances = mx.nd.slice_like(total.sort(is_ascend=False), last)
            best = mx.nd.slice_like(total.argsort(is_ascend=False), last)
            parents = mx.nd.floor(best / len(LETTERS))
            last = best - parents * len(LETTERS)
            words, state = words.take(parents, axis=1), state.take(parents)
            words[step] = last
            growing = growing.take(parents) * (last != END)
        return words.T, chances


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
    explicit, plain = BeamSearch(model), PlainBeamSearch(model)
    imperative = search(plain, args.beams)
    for block in (explicit, plain):
        block.hybridize(strict=True)
    found, wanted = search(plain, args.beams), search(explicit, args.beams)
    for chance, text in found[:4]:
        print(f"  {text:10} {chance:8.4f}")
    files = plain.export(tempfile.mkdtemp() + "/search")
    block = gluon.SymbolBlock.imports(files[0], ["data0", "data1"], files[1], ctx=mx.current_context())
    loaded = search(block, args.beams)
    print(f"words and chances equal to the bit: {found == wanted}, from the exported file: {loaded == wanted}")
    if found != wanted or loaded != wanted:
        sys.exit("the plain search finds something else")
    if [text for _, text in imperative] != [text for _, text in found]:
        sys.exit("the graph finds other words than the program does line by line")


if __name__ == "__main__":
    main()
