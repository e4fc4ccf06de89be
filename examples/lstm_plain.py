"""The language model of lstm_foreach.py with its time loop as a plain for: the same graph, to the bit.

``hybridize()`` turns the loop over the letters into the node that foreach makes. Both forms train for some steps from
the same weights; their losses and weights are compared, and the operators of both plans are shown.
By hand: ``python examples/lstm_plain.py``; ``--help`` lists the options.
"""

import argparse
import re
import sys

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from lstm_foreach import ALPHABET, BATCH, LanguageModel, positive, stretches, texts


class PlainLanguageModel(LanguageModel):
    """The same parameters, arguments and results as LanguageModel."""

    def forward(self, letters, *states):
        outs, states = [], list(states)  # a list as after each step, so that the loop has one type for it
        for letter in self.embed(letters):
            out, states = self.cells(letter, states)
            outs.append(out)
        return self.score(mx.nd.stack(*outs)), *states


def trained(net: LanguageModel, weights: list[np.ndarray], steps: int) -> tuple[list[float], list[np.ndarray]]:
    """Trains from these weights; returns the losses and the weights reached."""
    net.initialize(mx.init.Xavier())
    parameters = list(net.collect_params().values())
    for parameter, value in zip(parameters, weights):
        parameter.set_data(mx.nd.array(value))
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 4e-3})
    loss_of, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    states = net.cells.begin_state(batch_size=BATCH)
    for (data, following), _ in zip(stretches(texts()[0]), range(steps)):
        with autograd.record():
            scores, *states = net(data, *states)
            loss = loss_of(scores.reshape((-1, len(ALPHABET))), following.reshape((-1,))).mean()
        loss.backward()
        trainer.step(1)
        states = [state.detach() for state in states]
        losses.append(loss.asscalar())
    return losses, [parameter.data().asnumpy() for parameter in parameters]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=positive, default=10, help="steps of training (default: 10)")
    parser.add_argument("--width", type=positive, default=128, help="units of each LSTM layer (default: 128)")
    args = devices.parse_args(parser)
    mx.random.seed(1)
    first = LanguageModel(args.width)
    first.initialize(mx.init.Xavier())
    weights = [parameter.data().asnumpy() for parameter in first.collect_params().values()]
    found = []
    for kind in (LanguageModel, PlainLanguageModel):
        net = kind(args.width)
        found.append(trained(net, weights, args.steps))
        operators = re.findall(r"^  \[\d+\] (\w+) ", net.plan_text(), re.MULTILINE)
        print(f"{kind.__name__:18} loss {found[-1][0][-1]:.4f}, plan: {' '.join(dict.fromkeys(operators))}")
    (losses, reached), (plain_losses, plain_reached) = found
    equal = losses == plain_losses and all(np.array_equal(a, b) for a, b in zip(reached, plain_reached))
    print(f"losses and weights after {args.steps} steps equal to the bit: {equal}")
    if not equal:
        sys.exit("the plain loop computes something else")


if __name__ == "__main__":
    main()
