"""The adaptive solver of ode_while.py as a plain while with an if in it, with gradients through both.

A step whose error is too large is tried again with a shorter length: an if in place of where. Values and gradients are
those of the explicit form, to the bit.
By hand: ``python examples/ode_plain.py``; ``--help`` lists the options.
"""

import argparse
import sys

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd
from ode_while import MAX_STEPS, AdaptiveSolver, array, logistic


class PlainSolver(AdaptiveSolver):
    """The same arguments and results as AdaptiveSolver."""

    def forward(self, y, left, *parameters):
        length, tried = left * 0.01, mx.nd.zeros_like(left)
        mx.autograph.max_iterations(MAX_STEPS)
        while left > 0:
            h = mx.nd.minimum(length, left)  # the last step ends at `end` exactly
            new, error = self.step(mx.nd, y, h, parameters)
            if error <= 1:
                y, left = new, left - h
            # The step length follows the solution; the solution's derivative does not follow the step length.
            length = h * mx.nd.clip(0.9 * mx.nd.BlockGrad(error + 1e-10) ** (-1 / 5), 0.2, 5.0)
            tried = tried + 1
        return y, left, tried


def values_and_gradients(solve: AdaptiveSolver, start: list[float], time: float, rate: float) -> list[np.ndarray]:
    inputs = [array(start), array(rate), array(2.0)]
    for value in inputs:
        value.attach_grad()
    with autograd.record():
        y, left, tried = solve(inputs[0], array(time), *inputs[1:])
        y.sum().backward()
    return [part.asnumpy() for part in (y, left, tried, *(value.grad for value in inputs))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tolerance", type=float, default=1e-8, help="of the error of one step (default: 1e-8)")
    parser.add_argument("--rate", type=float, default=1.3, help="of growth (default: 1.3)")
    args = devices.parse_args(parser)
    if not (0 < args.tolerance < 1 and args.rate > 0):
        parser.error("--rate must be greater than 0, and --tolerance between 0 and 1")
    explicit, plain = AdaptiveSolver(logistic, args.tolerance), PlainSolver(logistic, args.tolerance)
    equal = True
    for time in (0.5, 3.0, 12.0):
        case = ([0.05, 0.3, 1.9], time, args.rate)
        imperative = values_and_gradients(plain, *case)
        explicit.hybridize(strict=True)
        plain.hybridize(strict=True)
        wanted, found = values_and_gradients(explicit, *case), values_and_gradients(plain, *case)
        plain.hybridize(False)
        same = all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
        apart = max(np.abs(a - b).max() for a, b in zip(found, imperative, strict=True))
        print(f"time {time:5.1f}: {int(found[2].item()):3d} steps, equal to the bit {same}, to imperative {apart:.1e}")
        equal = equal and same and apart < 1e-10
    if not equal:
        sys.exit("the plain solver computes something else")


if __name__ == "__main__":
    main()
