"""The graph of x * y / y before and after the rule of the example."""

from __future__ import annotations

from pathlib import Path

from beside import draw_beside
from hybridnet import rewrite as rw
from rewrite_cancel import RULE, graph_of_quotient


def draw(folder: Path) -> None:
    graph = graph_of_quotient()
    before = graph.svg()
    report = RULE.apply(graph)
    assert report
    after = rw.graph(graph.symbol(), shapes={"x": (2, 3)})  # without the inputs that nothing reads now
    draw_beside(folder / "cancel_graphs.svg", {"before": before, "after": after.svg()})


if __name__ == "__main__":
    draw(Path())
