"""A PatternSub rule does not fire if the constraint of its pattern is false."""

import hybridnet as mx
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of


def test_a_false_constraint_keeps_the_rule_from_firing() -> None:
    def rule(rows):
        tall = rw.P.var("x", where=lambda graph, entry: entry.shape[0] >= rows)
        return rw.PatternSub(("relu", tall), "x")

    assert not rule(3).apply(graph_of(mx.sym.relu(mx.sym.var("x"))))
    assert rule(2).apply(graph_of(mx.sym.relu(mx.sym.var("x"))))
