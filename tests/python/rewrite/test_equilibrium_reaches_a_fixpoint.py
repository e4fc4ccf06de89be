"""An EquilibriumDB applies rules until none fires: A -> B -> C reaches C."""

import hybridnet as mx
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, ops


def test_a_chain_of_rules_reaches_its_end() -> None:
    db = rw.EquilibriumDB("chain")
    db.register(rw.OpSub("sin", "cos", name="b to c"))
    db.register(rw.OpSub("relu", "sin", name="a to b"))
    graph = graph_of(mx.sym.relu(mx.sym.var("x")))
    db.query().apply(graph)
    assert ops(graph) == ["cos"]
