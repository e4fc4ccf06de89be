"""Helpers for tests of rewrites: results and gradients in all modes, counts of operator runs, loops of a plan."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
from hybridnet import test_utils

from .blocks import Block, flat

nd = mx.nd


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def evaluate(function, arrays, hybridized=True, passes=None, order=0):
    """Returns results and gradients of their weighted squares (order 0: a prediction, results only), and the block."""
    block = Block(function)
    if hybridized:
        block.hybridize(**({"passes": passes} if passes else {}))
    arrays = [nd.array(a, dtype="float64") for a in arrays]
    if order == 0:
        return [out.asnumpy() for out in flat(block(*arrays))], block
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        outs = flat(block(*arrays))
        loss = sum((out * out).sum() * (k + 1) for k, out in enumerate(outs))
        if order == 2:
            loss = sum((g * g).sum() for g in mx.autograd.grad(loss, arrays, create_graph=True, retain_graph=True))
    loss.backward()
    return [out.asnumpy() for out in outs] + [array.grad.asnumpy() for array in arrays], block


def same_everywhere(function, arrays):
    """Checks that arrays, graphs, and graphs without loop rewrites agree in results, first and second gradients."""
    for order in (0, 1, 2):
        want, _ = evaluate(function, arrays, hybridized=False, order=order)
        for passes in (None, "fast_run,-loop"):
            got, _ = evaluate(function, arrays, passes=passes, order=order)
            for one, two in zip(got, want, strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-10)


def runs(function, arrays, order=0, passes="fast_run,-fusion"):
    """Counts the runs of each operator by name, without the copies that plans insert by themselves."""
    counts = {}
    evaluate(function, arrays, passes=passes, order=order)
    with test_utils.exec_counts() as ran:
        evaluate(function, arrays, passes=passes, order=order)
    for (op, _), count in ran.items():
        if op != "copy":
            counts[op] = counts.get(op, 0) + count
    return counts


def lines_of(block):
    return block._cached_op.graph_text().split("backward:")[0].splitlines()


def loops_of(block, kind="_foreach"):
    """The lines of the outermost loops in the plan."""
    word = {"_foreach": "loop", "_while_loop": "while"}[kind]
    return [line for line in lines_of(block) if re.match(rf"%\S+ = {word}\[", line)]


def number(line, name):
    """The number of sequences, states or outputs (num_seq, num_carry, num_out) of the loop on this line."""
    if name == "num_out":
        types = re.sub(r"\{[^}]*\}", "", line).partition(" : ")[2]
        extra = 1 if " = while[" in line else 0  # the number of iterations
        return len(re.findall(r"\w+\(", types)) - number(line, "num_carry") - extra
    found = re.search(rf" {name.removeprefix('num_')}\{{([^}}]*)\}}", line)
    return found[1].count("%") // 2 if found else 0
