"""A plan is a linear list of instructions in an order that respects data, control and destroy edges."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np


def instructions(text):
    """The memory names that each instruction reads and writes, in the order of the plan's text."""
    found = []
    for line in text.splitlines():
        match = re.match(r"\s+\[\d+\] \S+ (?:<.*?> )?\((.*?)\) -> (.*)", line)
        if match:
            written = re.match(r"([a-z]+\d+)", match[2])
            found.append((re.findall(r"\b([a-z]+\d+)\b", match[1]), written[1] if written else ""))
    return found


def random_function(seed):
    rng = np.random.RandomState(seed)
    x = mx.sym.var("x")
    shared = [mx.shared(rng.rand(4), name=f"s{k}") for k in range(3)]
    values = [x, *shared]
    for _ in range(12):
        a, b = (values[rng.randint(len(values))] for _ in range(2))
        values.append([a + b, a * b, mx.sym.tanh(a), mx.sym.broadcast_maximum(a, b) - 1][rng.randint(4)])
    news = {variable: values[-1 - rng.randint(6)] for variable in shared}
    return shared, news, mx.function([x], values[-3:], updates=news, passes="fast_run,-fusion"), values


def test_values_are_made_before_they_are_read():
    for seed in range(20):
        _, _, f, _ = random_function(seed)
        f(mx.nd.ones(4))
        made = set()
        steps = instructions(f.plan_text())
        assert steps
        for reads, write in steps:
            for name in reads:
                assert name[0] in "ic" or name in made, (seed, name)
            made.add(write)


def test_old_values_are_read_before_they_are_written_over():
    for seed in range(20):
        shared, _, f, values = random_function(seed)
        before = [variable.get_value().asnumpy() for variable in shared]
        outs = [out.asnumpy() for out in f(mx.nd.ones(4))]
        after = [variable.get_value().asnumpy() for variable in shared]
        for variable, old in zip(shared, before, strict=True):
            variable.set_value(old)
        plain = mx.function([f._definition.ins[0].variable], values[-3:] + list(random_news(f)), passes="none")
        wanted = [out.asnumpy() for out in plain(mx.nd.ones(4))]
        for given, expected in zip(outs + after, wanted, strict=True):
            np.testing.assert_allclose(given, expected, rtol=1e-6, err_msg=str(seed))


def random_news(f):
    return [value for _, _, value in f._definition.updates]
