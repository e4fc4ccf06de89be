"""A rule visits only nodes of the operators, or matches of the pattern, that it tracks."""

import hybridnet as mx
import pytest
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


def test_a_rule_with_a_pattern_sees_only_matches_and_their_named_values() -> None:
    seen = []
    x, y = mx.sym.var("x"), mx.sym.var("y")
    graph = graph_of(mx.sym.relu(x * y) + mx.sym.relu(x + y))

    @rw.local(pattern=("relu", ("mul", "a", "b")))
    def tanh_of_products(graph, node, names):
        """The rule is called for relu(a * b) and for no other relu."""
        seen.append((node.op, sorted(names), {names["a"].node.name, names["b"].node.name}))
        return graph.add("tanh", names["a"])

    assert tanh_of_products.apply(graph).fired("tanh_of_products") == 1
    assert seen == [("relu", ["a", "b"], {"x", "y"})]
    assert len(graph.find("tanh")) == len(graph.find("relu")) == 1
    with pytest.raises(TypeError, match="apply"):
        tanh_of_products(graph, graph.nodes[0])


def test_a_rule_by_pattern_enters_the_pipeline_as_others_do() -> None:
    @rw.local(pattern=("add", ("relu", "a"), ("relu", "a")), db="canonicalize", tags=["fast_run", "row27"])
    def twice(graph, node, names):
        """Rewrites relu(a) + relu(a) to 2 relu(a)."""
        return graph.add("mul", graph.add("relu", names["a"]), 2.0)

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, a):
            return F.relu(a) + F.relu(a)

    net, data = Net(), mx.nd.array([-1.0, 3.0])
    net.hybridize()
    assert net(data).asnumpy().tolist() == [0, 6]
    report = net.pass_report()
    assert "twice" in report


def test_a_pattern_stands_alone() -> None:
    for beside in ({"tracks": ["relu"]}, {"traits": ["view"]}):
        with pytest.raises(ValueError, match="pattern="):
            rw.local(pattern=("relu", "a"), **beside)
    for wrong in ((), ("no_such_operator", "a"), object()):
        with pytest.raises(mx.base.MXNetError):
            rw.local(pattern=wrong, name="wrong")(lambda graph, node, names: None)
