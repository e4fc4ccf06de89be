"""The graph of a foreach before and after the rule of the example, which fuses two operators of the loop's body."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
from beside import draw_beside
from hybridnet import rewrite as rw
from rewrite_loop_body import Net


def fuse(graph, node, names):
    return graph.add("Custom", names["x"], op_type="scaled_tanh", open_attributes=f'{{"scale": "{names["scale"]}"}}')


def draw(folder: Path) -> None:
    net = Net(prefix="net_")
    net.hybridize()
    net(mx.nd.ones((5, 4)), mx.nd.zeros((4,)))
    graph = net.graph()
    before = graph.svg()
    view = graph.find("_foreach")[0].view()
    pattern = ("mul", ("tanh", "x"), rw.P.const(name="scale"))
    rule = rw.PatternSub(pattern, fuse, name="fuse_scaled_tanh", values="rounding")
    report = rw.Topo(rule).apply(view.bodies["do"])
    assert report.fired("fuse_scaled_tanh") == 1
    view.freeze()
    draw_beside(folder / "loop_body_graphs.svg", {"before": before, "after": graph.svg()})


if __name__ == "__main__":
    draw(Path())
