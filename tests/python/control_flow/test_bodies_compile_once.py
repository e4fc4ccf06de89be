"""A body is traced and compiled once: the number of instructions does not depend on the number of steps."""

from __future__ import annotations

import re

import hybridnet as mx
from hybridnet.contrib import scan

from .scans import Function, normal, plan, run

CALLS = []


def function(x, h):
    def step(a, h):
        CALLS.append(a)
        return (a + h).tanh() * 0.5

    return scan(step, x, h)


def instructions(text):
    """The linked instructions, one per kernel, including those of the body."""
    return [re.sub(r"\(\d+, 3\)|about .*|'.*", "", line) for line in text.splitlines() if re.match(r" +\[\d+\] ", line)]


def test_plans_of_all_lengths_hold_the_same_instructions():
    texts = [plan(function, normal(steps, 3), normal(3)) for steps in (2, 10, 1000)]
    assert instructions(texts[0]) == instructions(texts[1]) == instructions(texts[2])
    assert len(instructions(texts[0])) < 6


def test_one_trace_for_all_lengths():
    block = Function(function)
    CALLS.clear()
    for steps in (2, 10, 1000):
        run(block, [normal(steps, 3), normal(3)])
    assert len(CALLS) == 1


def test_calls_do_not_call_python():
    block = Function(function)
    x, h = mx.nd.ones((50, 3)), mx.nd.zeros((3,))
    block(x, h)
    CALLS.clear()
    block(x, h).wait_to_read()
    assert CALLS == []
