"""Rules that undo each other, A <-> B, stop, and the report names both."""

import hybridnet as mx
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of


def test_rules_that_undo_each_other_stop_and_are_named() -> None:
    rules = [rw.OpSub("relu", "tanh", name="forth"), rw.OpSub("tanh", "relu", name="back")]
    report = rw.Equilibrium(rules).apply(graph_of(mx.sym.relu(mx.sym.var("x"))))
    (warning,) = report.warnings
    assert "forth" in warning
    assert "back" in warning


def chain(length: int) -> object:
    x = mx.sym.var("x")
    for _ in range(length):
        x = mx.sym.tanh(x)
    return graph_of(mx.sym.relu(x))


def test_an_endless_rule_is_named_before_its_budget_ends() -> None:
    calls = []

    @rw.local(tracks=["relu", "clip"])
    def wider(graph, node):
        calls.append(node.name)
        return graph.add("clip", node.inputs[0], a_min=0.0, a_max=float(len(calls)))  # no earlier graph comes back

    @rw.local(tracks=["tanh"])
    def innocent(graph, node):
        return graph.add("sin", node.inputs[0])

    report = rw.Topo([innocent, wider]).apply(chain(60))
    (warning,) = report.warnings
    assert "wider" in warning
    assert "innocent" not in warning
    assert report.fired("wider") == 65
    assert report.fired("innocent") <= 60


def test_a_long_chain_that_gets_shorter_is_no_endless_rule() -> None:
    @rw.local(tracks=["tanh"])
    def shorter(graph, node):
        below = node.inputs[0].node
        return graph.add("tanh", below.inputs[0]) if below.op == "tanh" else None

    graph = chain(300)
    report = rw.Topo(shorter).apply(graph)
    assert report.warnings == []
    assert [node.op for node in graph.nodes if node.op] == ["tanh", "relu"]
