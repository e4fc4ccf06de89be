"""A local rule may return None only for outputs without readers: None for a used output is rejected."""

import hybridnet as mx
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of


def test_none_for_a_used_output_is_rejected() -> None:
    halves = mx.sym.split(mx.sym.var("x"), num_outputs=2, axis=0)
    rule = rw.local(tracks=["split"], name="drops")(lambda g, n: [None, n[1]])
    graph = graph_of(halves[0] + 1.0)
    before = graph.fingerprint()
    report = rule.apply(graph)
    assert not report
    assert "returns nothing for output 0" in report.warnings[0]
    assert graph.fingerprint() == before

    # an output without readers may be None
    def only_first(g, n):
        return [g.add("slice_axis", n.inputs[0], axis=0, begin=0, end=1), None]

    assert rw.local(tracks=["split"], name="keeps")(only_first).apply(graph)
