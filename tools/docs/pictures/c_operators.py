"""Operators of the library in C: scaled_square with its gradient, and row_extremes over rows of noise."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hybridnet as mx
import numpy as np
from beside import draw_beside
from hybridnet import autograd
from hybridnet import rewrite as rw
from plot import COLORS, figure
from programs import compiled_library


class Tripled(mx.gluon.HybridBlock):
    """Three times the square, which the rule of the library rewrites."""

    def hybrid_forward(self, F, x):
        return F.square(x) * 3


def draw_rule(path: Path) -> None:
    """Draws a graph before and after the rule of the library."""
    net = Tripled(prefix="net_")
    net.hybridize()
    net(mx.nd.ones((4, 5)))
    graph = net.graph()
    before = graph.svg()
    report = rw.apply(graph, "use_scaled_square", end=100)
    assert report.fired("use_scaled_square") == 1
    draw_beside(path, {"before": before, "after": graph.svg()})


def load_library() -> None:
    """Loads the operators and the rule; they stay for the life of the process."""
    with tempfile.TemporaryDirectory() as made:
        mx.library.load(compiled_library("examples/operator_library/operators.c", Path(made)), verbose=False)


def draw(folder: Path) -> None:
    load_library()
    x = mx.nd.array(np.linspace(-2, 2, 100))
    x.attach_grad()
    with autograd.record():
        y = mx.nd.scaled_square(x, scale=1.5)
    y.backward()
    mx.random.seed(2)
    rows = mx.nd.random.normal(shape=(40, 12))
    low, high = (part.asnumpy() for part in mx.nd.row_extremes(rows))
    with figure(folder / "c_operators.svg", columns=2, size=(3.3, 2.7)) as (left, right):
        left.plot(x.asnumpy(), y.asnumpy(), label="value")
        left.plot(x.asnumpy(), x.grad.asnumpy(), "--", label="derivative")
        left.set(xlabel="x", title="scaled_square, scale=1.5")
        left.legend(frameon=False, fontsize=9)
        right.fill_between(range(40), low, high, color=COLORS[0], alpha=0.2)
        right.plot(rows.asnumpy(), ".", markersize=2, color=COLORS[0])
        right.set(xlabel="row", title="row_extremes")
    draw_rule(folder / "c_rule.svg")


if __name__ == "__main__":
    draw(Path())
