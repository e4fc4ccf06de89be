"""An adaptive ODE solver in one while_loop, with gradients through it: growth of a population with limited food.

Dormand and Prince's pair of orders 5 and 4 chooses its steps by its own error estimate, so the number of iterations is
not known in advance. Hybridized, the whole solver is one node of the graph; its gradient is a loop, too.
The logistic equation y' = r y (1 - y / k) has a solution in closed form: values and gradients are compared with it.
Then the gradient finds the growth rate and the limit from measurements.
By hand: ``python examples/ode_while.py``; ``--help`` lists the options.
"""

import argparse
import sys

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon

MAX_STEPS = 200
# Stage i of a step starts from y + h * sum_j STAGES[i][j] * k_j; the last stage starts from the fifth-order result.
# The fourth-order result differs from it by h * sum_j ERROR[j] * k_j. Dormand and Prince, 1980, table 2.
STAGES = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


class AdaptiveSolver(gluon.HybridBlock):
    """Solves y' = slope(F, y, *parameters) from time 0 to `end`.

    Shapes: start (N,), end (1,), parameters (1,) each; the result is y at `end` (N,), and the steps tried (1,).
    Steps are as long as the estimated error of each component stays below tolerance * (1 + |y|).
    """

    def __init__(self, slope, tolerance: float) -> None:
        super().__init__()
        self.slope = slope
        self.tolerance = tolerance

    def step(self, F, y, h, parameters):
        """One step of length h: the fifth-order value, and its error relative to the tolerance."""
        slopes = []
        for row in STAGES:
            new = y + F.broadcast_mul(h, sum(c * k for c, k in zip(row, slopes) if c)) if row else y
            slopes.append(self.slope(F, new, *parameters))
        error = F.broadcast_mul(h, sum(c * k for c, k in zip(ERROR, slopes) if c))
        return new, F.max(F.abs(error) / (self.tolerance * (1 + F.abs(new)))).reshape((1,))

    def hybrid_forward(self, F, start, end, *parameters):
        def unfinished(y, left, length, tried):
            return left > 0

        def advance(y, left, length, tried):
            h = F.minimum(length, left)  # the last step ends at `end` exactly
            new, error = self.step(F, y, h, parameters)
            accepted = error <= 1
            # The step length follows the solution; the solution's derivative does not follow the step length.
            factor = F.clip(0.9 * F.BlockGrad(error + 1e-10) ** (-1 / 5), 0.2, 5.0)
            y = F.where(F.broadcast_like(accepted, y), new, y)
            return y, F.where(accepted, left - h, left), h * factor, tried + 1

        first = (start, end, end * 0.01, F.zeros_like(end))
        y, left, _, tried = F.contrib.while_loop(
            unfinished, advance, first, max_iterations=MAX_STEPS, has_outputs=False
        )
        return y, left, tried


def logistic(F, y, rate, limit):
    return F.broadcast_mul(F.broadcast_mul(rate, y), 1 - F.broadcast_div(y, limit))


def exact(start: np.ndarray, time: float, rate: float, limit: float) -> np.ndarray:
    return limit / (1 + (limit / start - 1) * np.exp(-rate * time))


def exact_gradients(start: np.ndarray, time: float, rate: float, limit: float) -> list[np.ndarray]:
    """Derivatives of the sum of exact() with respect to start, rate and limit, by hand."""
    decay = np.exp(-rate * time)
    below = 1 + (limit / start - 1) * decay
    return [
        (limit / start / below) ** 2 * decay,
        np.sum(limit * (limit / start - 1) * time * decay / below**2, keepdims=True),
        np.sum(1 / below - limit * decay / (start * below**2), keepdims=True),
    ]


def array(values) -> mx.nd.NDArray:
    return mx.nd.array(np.atleast_1d(values), dtype="float64")


def compare(solve: AdaptiveSolver, start: np.ndarray, time: float, rate: float, limit: float) -> float:
    """The largest difference between solver and closed form, in values and gradients, relative where they exceed 1."""
    for value in (inputs := [array(start), array(rate), array(limit)]):
        value.attach_grad()
    with autograd.record():
        y, left, tried = solve(inputs[0], array(time), *inputs[1:])
        y.sum().backward()
    found = [y.asnumpy()] + [value.grad.asnumpy() for value in inputs]
    wanted = [exact(start, time, rate, limit), *exact_gradients(start, time, rate, limit)]
    worst = max((np.abs(a - b) / np.maximum(1, np.abs(b))).max() for a, b in zip(found, wanted))
    print(f"time {time:5.1f}: {int(tried.asscalar()):3d} steps, largest difference {worst:.1e}")
    if left.asscalar() > 0:
        sys.exit(f"the solver is not there after {MAX_STEPS} steps: raise --tolerance or MAX_STEPS")
    return worst


def fit(solve: AdaptiveSolver, times: list[float], start: float, rate: float, limit: float) -> tuple[float, float]:
    """Finds rate and limit from measurements of the population, by gradient descent through the solver."""
    measured = [array(exact(np.array([start]), time, rate, limit)) for time in times]
    logs = [array(0.0), array(0.0)]  # logarithms of rate and limit: both are positive
    adam, moments = mx.optimizer.create("adam", learning_rate=0.05), []
    for i, value in enumerate(logs):
        value.attach_grad()
        moments.append(adam.create_state(i, value))
    for _ in range(150):
        with autograd.record():
            rest = [solve(array(start), array(t), *(v.exp() for v in logs))[0] - y for t, y in zip(times, measured)]
            mx.nd.concat(*[r**2 for r in rest], dim=0).sum().backward()
        for i, value in enumerate(logs):
            adam.update(i, value, value.grad, moments[i])
    return tuple(float(value.exp().asscalar()) for value in logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tolerance", type=float, default=1e-8, help="of the error of one step (default: 1e-8)")
    parser.add_argument("--rate", type=float, default=1.3, help="of growth, to be found again (default: 1.3)")
    args = devices.parse_args(parser)
    if not (0 < args.tolerance <= 1e-6 and args.rate > 0):
        parser.error("--rate must be greater than 0, and --tolerance too, up to 1e-6: the fit needs exact gradients")
    solve = AdaptiveSolver(logistic, args.tolerance)
    solve.hybridize()
    worst = max(compare(solve, np.array([0.05, 0.3, 1.9]), time, args.rate, limit=2.0) for time in (0.5, 3.0, 12.0))
    if worst > 100 * args.tolerance:
        sys.exit(f"the solver differs from the closed form by {worst:.1e}: more than its steps' errors can explain")
    rate, limit = fit(solve, [1.0, 2.0, 4.0, 7.0], 0.1, args.rate, 2.0)
    print(f"fitted: rate {rate:.4f} ({args.rate}), limit {limit:.4f} (2)")
    if abs(rate - args.rate) > 0.01 * args.rate or abs(limit - 2) > 0.02:
        sys.exit("the gradient did not find rate and limit")


if __name__ == "__main__":
    main()
