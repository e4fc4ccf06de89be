"""The early-exit net of early_exit_cond.py with a plain for over the images and a plain if for the exit.

``hybridize()`` turns them into the nodes that foreach and cond make: the convolutions run only for images that the
first layers do not classify with confidence. Scores and exits are those of the explicit form, to the bit.
By hand: ``python examples/early_exit_plain.py``; ``--help`` lists the options.
"""

import argparse
import sys

import devices
import hybridnet as mx
import numpy as np
from early_exit_cond import EarlyExitNet, accuracy, chance, convolutions_run, digits, train
from hybridnet import autograd


class PlainEarlyExitNet(EarlyExitNet):
    """The same parameters, arguments and results as EarlyExitNet."""

    def forward(self, images):
        if autograd.is_training():
            return self.cheap(images), self.deep(images)
        outs, exits = [], []
        for image in images:
            image = image.expand_dims(0)
            scores, which = self.cheap(image), mx.nd.zeros((1,))
            if scores.softmax().max() <= self.confidence:
                scores, which = self.deep(image), mx.nd.ones((1,))
            outs.append(scores.reshape((-1,)))
            exits.append(which)
        return mx.nd.stack(*outs), mx.nd.stack(*exits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4, help="passes over the images (default: 4)")
    parser.add_argument("--confidence", type=chance, default=0.8, help="of leaving early (default: 0.8)")
    args = devices.parse_args(parser)
    if args.epochs < 1:
        parser.error("--epochs must be at least 1")
    mx.random.seed(1)
    np.random.seed(1)
    images, labels, test_images, test_labels = digits()
    plain = PlainEarlyExitNet(args.confidence)
    plain.initialize(mx.init.Xavier())
    plain.hybridize(strict=True)
    train(plain, images, labels, args.epochs)
    explicit = EarlyExitNet(args.confidence)
    explicit.initialize()
    for parameter, trained in zip(explicit.collect_params().values(), plain.collect_params().values()):
        parameter.set_data(trained.data())
    explicit.hybridize(strict=True)

    data = mx.nd.array(test_images)
    found, wanted = ([part.asnumpy() for part in net(data)] for net in (plain, explicit))
    ran = [convolutions_run(net, data) for net in (plain, explicit)]
    equal = all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    print(f"test accuracy {accuracy(plain(data)[0], test_labels):.4f}; {ran[0]} convolutions ran, explicit {ran[1]}")
    print(f"scores and exits equal to the bit: {equal}")
    if not equal or ran[0] != ran[1] or ran[0] != 2 * found[1].sum():
        sys.exit("the plain net computes something else")


if __name__ == "__main__":
    main()
