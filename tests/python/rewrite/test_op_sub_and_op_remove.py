"""OpRemove removes a chain of identities; OpSub and OpRemove reject other numbers of inputs and outputs."""

import hybridnet as mx
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, ops, variables


def test_identities_go_and_wrong_arity_is_rejected() -> None:
    x, y = variables("x", "y")
    graph = graph_of(mx.sym.relu(mx.sym.identity(mx.sym.identity(mx.sym.identity(x)))))
    assert rw.OpRemove("identity").apply(graph)
    assert ops(graph) == ["relu"]
    assert rw.OpSub("relu", "tanh").apply(graph)
    assert ops(graph) == ["tanh"]
    report = rw.OpRemove("elemwise_add").apply(graph_of(x + y))
    assert not report
    assert "as many inputs as outputs" in report.warnings[0]
