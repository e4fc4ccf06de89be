"""The merge pass knows commutative operators: add(a, b) and add(b, a) become one node."""

from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, variables


def test_sums_in_both_orders_are_one_node() -> None:
    a, b = variables("a", "b")
    graph = graph_of((a + b) * (b + a))
    rw.apply(graph, "merge")
    assert len(graph.find("add")) == 1
