"""A graph feature sees import, change and prune events in order."""

from hybridnet import rewrite as rw

from rewrite.graphs import tutorial


def test_a_feature_sees_import_change_prune_in_order() -> None:
    class Order(rw.Feature):
        def __init__(self) -> None:
            self.kinds: list[str] = []

        def on_import(self, graph, node, reason):
            self.kinds.append("import")

        def on_change_input(self, graph, client, index, old, new, reason):
            self.kinds.append("change")

        def on_prune(self, graph, node, reason):
            self.kinds.append("prune")

    graph, order = tutorial(), Order()
    graph.attach(order)
    rw.Walk(rw.OpSub("elemwise_div", "elemwise_sub")).apply(graph)
    assert order.kinds == ["import", "change", "prune"]
