"""Small programs with scan: powers, polynomials, sums until a limit, recurrences with long memory, a Gibbs sampler.

Each runs imperatively and, hybridized, as one graph, and compares values and gradients with NumPy or a closed form.
By hand: ``python examples/scan_programs.py``; ``--help`` lists the options.
"""

import argparse

import devices
import hybridnet as mx
import numpy as np
from hybridnet import autograd, gluon
from hybridnet.contrib import map, reduce, scan, until


class Program(gluon.HybridBlock):
    """A function of arrays as a block."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arrays):
        return self.function(*arrays)


def power(a, k):
    """Returns a ** k elementwise; k may differ between calls. Only the last row is read, so only that one is kept."""
    return scan(lambda product, a: product * a, outputs_info=a * 0 + 1, non_sequences=a, n_steps=k)[-1]


def polynomial(coefficients, x):
    """Horner's rule, beginning at the last coefficient."""
    return reduce(lambda c, value, x: value * x + c, coefficients, x * 0, x, go_backwards=True)


def sum_until(x, limit):
    """Returns the running sums up to the first one above the limit, and their number."""
    sums, counts = scan(lambda a, s, n: ([s + a, n + 1], until(s + a > limit)), x, [x[0] * 0, x[0] * 0])
    return sums, counts[-1]


def echo(sound, silence):
    """Each sample with echoes of the output 20 and 3 samples ago."""
    return scan(lambda a, far, near: a + 0.5 * far - 0.25 * near, sound, {"initial": silence, "taps": [-20, -3]})


def simple_network(x, h, y, w, w_back, w_old):
    """A recurrent network with its input now and 4 steps ago, its state and its output 2 steps ago."""

    def step(now, old, two, one, h, w, w_back, w_old):
        F = mx.sym if isinstance(now, mx.sym.Symbol) else mx.nd
        h = (F.dot(now, w) + F.dot(old, w_old) + F.dot(h, w_back) + two).tanh()
        return [h * 0.5 + one * 0.1, h]

    info = [{"initial": y, "taps": [-2, -1]}, h]
    return scan(step, {"input": x, "taps": [0, -4]}, info, [w, w_back, w_old])[0]


class GibbsSampler(gluon.HybridBlock):
    """Draws pairs (x, y) of correlated normal numbers: x given y, then y given x. Counts its steps over all calls.

    Shapes: correlation (1,), start (chains,); the result is both numbers after each step, (steps, chains) each.
    """

    def __init__(self, steps):
        super().__init__()
        self.steps = steps
        self.drawn = self.params.get("drawn", shape=(1,), init="zeros", grad_req="null")

    def hybrid_forward(self, F, correlation, start, drawn):
        spread = (1 - correlation * correlation).sqrt()

        def step(y):
            x = F.broadcast_add(F.broadcast_mul(y, correlation), F.broadcast_mul(F.random.normal_like(y), spread))
            y = F.broadcast_add(F.broadcast_mul(x, correlation), F.broadcast_mul(F.random.normal_like(y), spread))
            return [x, y], {drawn: drawn + 1}

        return F.contrib.scan(step, outputs_info=[None, start], n_steps=self.steps)


def check(name, got, want, tolerance=1e-5):
    if np.shape(got) != np.shape(want) or not np.allclose(got, want, rtol=tolerance, atol=tolerance):
        raise SystemExit(f"{name}: {got} instead of {want}")


def numpy_echo(sound):
    out = [0.0] * 20
    for a in sound:
        out.append(a + 0.5 * out[-20] - 0.25 * out[-3])
    return np.array(out[20:])


def check_programs(made):
    """made: returns a function unchanged, or hybridized."""
    a = mx.nd.array([1, 2, 3])
    a.attach_grad()
    powers = made(power)
    for k in (1, 2, 5):  # one graph for all k
        with autograd.record():
            value = powers(a, mx.nd.array([k], dtype="int32"))
        value.backward()
        check("power", value.asnumpy(), a.asnumpy() ** k)
        check("its gradient", a.grad.asnumpy(), k * a.asnumpy() ** (k - 1))
    coefficients, x = np.array([1.0, 0.5, -2.0, 3.0]), np.array([0.3, -1.0])
    check("polynomial", made(polynomial)(mx.nd.array(coefficients), mx.nd.array(x)), np.polyval(coefficients[::-1], x))
    sums, count = made(sum_until)(mx.nd.arange(1, 100), mx.nd.array([12.0]))
    check("sum_until", [*sums.asnumpy().ravel(), count.asscalar()], [1, 3, 6, 10, 15, 5])
    sound = np.random.default_rng(0).normal(size=100)
    check("echo", made(echo)(mx.nd.array(sound), mx.nd.zeros((20,))).asnumpy().ravel(), numpy_echo(sound))
    rows = np.random.default_rng(1).normal(size=(5, 3))
    norms = made(lambda rows: map(lambda row: (row * row).sum().sqrt(), rows))
    check("norms", norms(mx.nd.array(rows)).asnumpy().ravel(), np.linalg.norm(rows, axis=1))
    arrays = [mx.nd.random.normal(shape=s) for s in ((9, 2, 3), (2, 4), (2, 2, 4), (3, 4), (4, 4), (3, 4))]
    check("simple_network", made(simple_network)(*arrays).asnumpy(), simple_network(*arrays).asnumpy())


def hybridized(function):
    block = Program(function)
    block.hybridize(strict=True)
    return block


def positive(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"at least 1, not {text}")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=positive, default=200, help="steps of the sampler")
    parser.add_argument("--chains", type=positive, default=500, help="chains of the sampler")
    args = devices.parse_args(parser)
    check_programs(lambda function: function)
    check_programs(hybridized)
    print("programs: 6, on arrays and in graphs")
    mx.random.seed(0)
    sampler = GibbsSampler(args.steps)
    sampler.initialize()
    sampler.hybridize(strict=True)
    for _ in range(2):
        x, y = (rows.asnumpy().ravel() for rows in sampler(mx.nd.array([0.8]), mx.nd.zeros((args.chains,))))
    check("steps of the sampler", sampler.drawn.data().asscalar(), 2 * args.steps)
    print(f"sampler: correlation {np.corrcoef(x, y)[0, 1]:.3f}, drawn from 0.8")


if __name__ == "__main__":
    main()
