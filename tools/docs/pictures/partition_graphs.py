"""The graph of the example before and after its elementwise parts are compiled by the machine's C compiler."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hybridnet as mx
import rewrite_partition_gcc
from beside import draw_beside
from hybridnet import rewrite as rw
from hybridnet.errors import ImportError as MissingProgram
from rewrite_partition_gcc import GccBackend, Net, supports


def compile_parts(graph: Any, backend: GccBackend) -> None:
    """Replaces the parts of the graph and of the loop's body, like the compilation of a block with this backend."""
    rw.partition(supports, 2, backend, tags=())
    try:
        view = graph.find("_foreach")[0].view()
        for part in (view.bodies["do"], graph):
            rw.apply(part, "gcc", end=100)
        view.freeze()
    finally:
        rw.unregister("gcc")


def draw(folder: Path) -> None:
    if rewrite_partition_gcc.COMPILER is None:
        raise MissingProgram("the picture needs a C compiler, gcc or cc")
    net = Net(prefix="net_")
    net.hybridize()
    net(mx.nd.ones((20, 64)))
    graph = net.graph()
    before = graph.svg()
    with tempfile.TemporaryDirectory() as made:
        backend = GccBackend(Path(made))
        compile_parts(graph, backend)
        assert len(backend.sources) == 2
        draw_beside(folder / "partition_graphs.svg", {"before": before, "after": graph.svg()})


if __name__ == "__main__":
    draw(Path())
