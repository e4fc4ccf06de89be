"""Helpers for tests of scans: functions as blocks, counts of operator runs, and texts of plans.

They use public names only: ``hybridize``, ``plan_text``, ``pass_report``, ``test_utils.exec_counts``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import gluon, test_utils

TRIPS = (0, 1, 2, 7)


class Function(gluon.HybridBlock):
    """A block that calls a function of arrays."""

    def __init__(self, function: Callable[..., Any], passes: str | None = None, hybridized: bool = True) -> None:
        super().__init__()
        self.function = function
        if hybridized:
            self.hybridize(strict=True, **({"passes": passes} if passes else {}))

    def forward(self, *arrays: Any) -> Any:
        return self.function(*arrays)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def operators(x: Any) -> Any:
    """Returns ``mx.sym`` for a symbol, ``mx.nd`` for an array."""
    return mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd


def flat(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, (list, tuple)) else [value]


def run(block: gluon.HybridBlock, arrays: Sequence[np.ndarray], gradients: int = 0) -> list[np.ndarray]:
    """Returns the outputs of a block and the gradients, of order `gradients`, of their weighted squares."""
    given = [mx.nd.array(a, dtype="float64") for a in arrays]
    if not gradients:
        return [out.asnumpy() for out in flat(block(*given))]
    for a in given:
        a.attach_grad()
    with mx.autograd.record():
        outs = flat(block(*given))
        loss = sum((out * out).sum() * (k + 1) for k, out in enumerate(outs))
        for _ in range(gradients - 1):
            slopes = mx.autograd.grad(loss, given, create_graph=True, retain_graph=True)
            loss = sum((g * g).sum() for g in slopes)
    loss.backward()
    return [out.asnumpy() for out in outs] + [a.grad.asnumpy() for a in given]


def check_same(function: Callable[..., Any], *arrays: np.ndarray) -> None:
    """Checks that arrays, graphs, and graphs without loop rewrites agree in values, first and second gradients."""
    for order in range(3):
        wanted = run(Function(function, hybridized=False), arrays, order)
        for passes in (None, "fast_run,-loop"):
            for got, want in zip(run(Function(function, passes), arrays, order), wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


def counts(
    function: Callable[..., Any], *arrays: np.ndarray, gradients: int = 0, passes: str = "fast_run,-fusion"
) -> Counter[str]:
    """Counts the runs of each operator in a call of the compiled graph."""
    block = Function(function, passes)
    run(block, arrays, gradients)
    with test_utils.exec_counts() as ran:
        run(block, arrays, gradients)
    total: Counter[str] = Counter()
    for (op, _), count in ran.items():
        total[op] += count
    return total


def plan(function: Callable[..., Any], *arrays: np.ndarray, gradients: int = 0, passes: str | None = None) -> str:
    """The text of the compiled graph."""
    block = Function(function, passes)
    run(block, arrays, gradients)
    return block.plan_text()


def loops(text: str, kind: str = "_foreach") -> list[str]:
    """The lines of the outermost loops in the text of a plan."""
    return re.findall(rf"^  \[\d+\] {kind} .*$", text, re.MULTILINE)
