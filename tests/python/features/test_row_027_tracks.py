"""Row 27: tracks. A node of an untracked operator is never visited."""

import hybridnet as mx
from hybridnet import rewrite as rw
from rewrite.graphs import graph_of


def test_untracked_operators_are_never_visited() -> None:
    seen = []
    x = mx.sym.var("x")
    graph = graph_of(mx.sym.tanh(mx.sym.relu(mx.sym.identity(x))) + 2.0)
    rw.local(tracks=["relu"], name="by_name")(lambda g, n: seen.append(n.op)).apply(graph)
    assert seen == ["relu"]
    seen.clear()
    rw.local(traits=["identity"], name="by_trait")(lambda g, n: seen.append(n.op)).apply(graph)
    assert "_copy" in seen
    assert not {"relu", "tanh"} & set(seen)
