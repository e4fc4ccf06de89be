"""The drawing of a graph: loops and branches of plain Python are boxes around their bodies.

`net.graph()` is the graph of the last hybridized call, `svg()` its drawing, for which Graphviz must be installed.
`hybridnet inspect --svg FILE` draws an exported model.
"""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx


class Smoothed(mx.gluon.HybridBlock):
    """A moving average over rows that falls by 4 where it is above 4."""

    def forward(self, x):
        state, outs = mx.nd.zeros((1,)), []
        for row in x:
            state = 0.5 * state + row
            if state > 4:
                state = state - 4
            outs.append(state)
        return mx.nd.stack(*outs)


def draw(folder: Path) -> None:
    net = Smoothed(prefix="smoothed_")
    net.hybridize()
    net(mx.nd.array([2, 4, 3]))
    (folder / "graph_drawing.svg").write_text(net.graph().svg(), encoding="utf-8")


if __name__ == "__main__":
    draw(Path())
