"""Local and global rules: their return values, how often they run, and errors of wrong ones."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, ops, output_names, run, tutorial, variables, x_times_y_over_y

NAVIGATORS = [rw.Topo, rw.ReverseTopo, rw.Walk, rw.Equilibrium, lambda r: rw.Random(r, seed=3)]


@pytest.mark.parametrize("navigator", NAVIGATORS)
@pytest.mark.parametrize("kind", ["rule", "pattern", "database"])
def test_the_tutorials_program_becomes_x(navigator, kind) -> None:
    graph = tutorial()
    rule = rw.local(tracks=["div"])(x_times_y_over_y)
    if kind == "pattern":
        rule = rw.PatternSub(("div", ("mul", "x", "y"), "y"), "x")
    if kind == "database":
        db = rw.LocalGroupDB("mine")
        db.register(rule)
        report = db.query("fast_run").apply(graph)
    else:
        report = navigator(rule).apply(graph)
    assert report
    assert output_names(graph) == ["x"]
    assert ops(graph) == []
    graph.check()


def test_a_rule_in_the_pipeline_runs_forward_and_backward_and_in_bodies() -> None:
    seen: list[tuple[str, bool]] = []

    @rw.local(tracks=["tanh", "sigmoid"], db="canonicalize")
    def look(graph, node):
        seen.append((node.op, graph.train))

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            rows, _ = F.contrib.foreach(lambda row, s: (F.tanh(row + s), s), x, F.ones((3,)))
            return F.sigmoid(rows)

    net = Net()
    net.hybridize()
    x = mx.nd.ones((2, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward()
    assert {op for op, _ in seen} == {"tanh", "sigmoid"}


def test_a_fusion_of_two_operators_of_a_loop_body() -> None:

    @rw.local(tracks=["mul"], db="canonicalize", values="rounding", name="swish")
    def swish(graph, node):
        if len(node.inputs) != 2:
            return None
        for gate, value in (node.inputs, node.inputs[::-1]):
            if gate.node.op == "sigmoid" and gate.node.inputs[0] == value:
                return graph.add("LeakyReLU", value, act_type="gelu")
        return None

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.contrib.foreach(lambda row, s: (F.sigmoid(row) * row, s), x, F.ones((3,)))[0]

    net = Net()
    net.hybridize()
    x = mx.nd.array(np.linspace(-2, 2, 12).reshape(4, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward()
    report = net.pass_report()
    assert "swish" in report, report
    assert "in the body of" in report, report
    gelu = mx.nd.LeakyReLU(x, act_type="gelu")
    assert np.allclose(y.asnumpy(), gelu.asnumpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("result", "becomes"),
    [
        (lambda g, n: None, ["elemwise_div"]),
        (lambda g, n: n.inputs[1], ["elemwise_add"]),
        (lambda g, n: [n.inputs[1]], ["elemwise_add"]),
        (lambda g, n: (n.inputs[1].node,), ["elemwise_add"]),
        (lambda g, n: {n[0]: n.inputs[1]}, ["elemwise_add"]),
        (lambda g, n: {n[0]: n.inputs[1], "remove": [n]}, ["elemwise_add"]),
        (lambda g, n: {n: n.inputs[1]}, ["elemwise_add"]),
        (lambda g, n: {}, ["elemwise_div"]),
    ],
)
def test_values_that_a_rule_may_return(result, becomes) -> None:
    graph = tutorial()
    rw.Walk(rw.local(tracks=["div"], name="rule")(result)).apply(graph)
    assert ops(graph)[-1:] == becomes
    graph.check()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda g, n: 3, "None, an Entry"),
        (lambda g, n: "x", "None, an Entry"),
        (lambda g, n: [], "1 entries"),
        (lambda g, n: [None], "returns nothing for output 0"),
        (lambda g, n: [n.inputs[0], n.inputs[1]], "1 entries"),
        (lambda g, n: ["x"], "an Entry"),
        (lambda g, n: g.add("sum", n.inputs[0]), "spec"),
        (lambda g, n: g.add("cast", n.inputs[0], dtype="float64"), "spec"),
        (lambda g, n: {n.inputs[0]: n[0]}, "cycle"),
        (lambda g, n: {n[0]: n.inputs[1], "remove": [n.inputs[1].node]}, "not removed"),
        (lambda g, n: {n[0]: n.inputs[1], "remove": ["x"]}, "Nodes"),
        (lambda g, n: 1 / 0, "ZeroDivisionError"),
        (lambda g, n: g.add("no_such_operator", n.inputs[0]), "no_such_operator"),
        (lambda g, n: g.clients(tutorial().outputs[0]), "another graph"),
        (lambda g, n: tutorial().outputs[0], "another graph"),
        (lambda g, n: n.attrs.missing, "AttributeError"),
    ],
)
@pytest.mark.parametrize("navigator", NAVIGATORS)
def test_a_wrong_rule_is_named_and_leaves_the_graph_as_it_was(result, text, navigator) -> None:
    graph = tutorial()
    before = graph.fingerprint()
    report = navigator(rw.local(tracks=["div"], name="the_wrong_one")(result)).apply(graph)
    assert not report
    assert graph.fingerprint() == before
    (warning,) = set(report.warnings)
    assert "the_wrong_one" in warning
    assert text in warning
    graph.check()


def test_edits_of_a_rule_that_returns_none_are_undone() -> None:
    graph = tutorial()
    before = graph.fingerprint()

    def edits(graph, node):
        graph.replace(node, node.inputs[1])

    assert not rw.local(tracks=["div"], name="edits")(edits).apply(graph)
    assert graph.fingerprint() == before
    graph.check()


def test_unread_nodes_of_a_rule_are_removed() -> None:
    graph = tutorial()

    def spare(graph, node):
        for _ in range(5):
            graph.add("relu", node.inputs[0])
        return graph.add("tanh", node.inputs[0])

    report = rw.Walk(rw.local(tracks=["div"], name="spare")(spare)).apply(graph)
    assert "relu" not in ops(graph)
    assert report.lines[0]["made"] == 1


def test_rules_that_undo_each_other_are_stopped_and_named() -> None:
    graph = graph_of(mx.sym.var("x").relu())
    there = rw.OpSub("relu", "tanh", name="there")
    back = rw.OpSub("tanh", "relu", name="back")
    report = rw.Equilibrium([there, back]).apply(graph)
    assert any("there" in text and "back" in text and "not come to an end" in text for text in report.warnings)
    graph.check()


def test_a_rule_that_never_ends_is_stopped_and_named() -> None:
    grow = rw.local(tracks=["relu"], name="grow")(lambda g, n: g.add("relu", g.add("abs", n.inputs[0])))
    double = rw.local(tracks=["relu"], name="grow")(
        lambda g, n: g.add("relu", n.inputs[0]) + g.add("relu", g.add("abs", n.inputs[0]))
    )
    for rule in (grow, double):
        for navigator in (rw.Equilibrium, rw.Topo, rw.ReverseTopo, rw.Random):
            graph = graph_of(mx.sym.var("x").relu())
            report = navigator(rule).apply(graph)
            assert any("grow" in text and "not come to an end" in text for text in report.warnings)
            graph.check()


def test_an_interrupt_ends_the_rewriting_and_is_no_failure_of_the_rule() -> None:
    def stop(graph, node):
        raise KeyboardInterrupt

    graph = tutorial()
    before = graph.fingerprint()
    with pytest.raises(KeyboardInterrupt):
        rw.local(tracks=["div"], name="stop")(stop).apply(graph)
    assert graph.fingerprint() == before

    rw.local(tracks=["relu"], name="stop_later", db="canonicalize")(stop)

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.relu(x)

    net = Net()
    net.hybridize()
    with pytest.raises(KeyboardInterrupt):
        net(mx.nd.ones((2,)))
    rw.unregister("stop_later")
    assert net(mx.nd.ones((2,))).asnumpy().tolist() == [1, 1]


def test_a_global_rewrite_with_its_requirements() -> None:
    class Halve(rw.GlobalRewriter):
        """Removes every second relu."""

        def requirements(self, graph):
            self.index = rw.OpIndex()
            graph.attach(self.index)

        def apply_to(self, graph):
            for node in self.index["relu"][::2]:
                graph.replace(node, node.inputs[0])

    x = mx.sym.var("x")
    for _ in range(4):
        x = mx.sym.abs(mx.sym.relu(x))
    graph = graph_of(x)
    assert Halve().apply(graph)
    assert ops(graph).count("relu") == 2
    assert graph.features == []
    graph.check()


def test_a_global_rewrite_that_raises_undoes_everything() -> None:
    @rw.global_()
    def half_way(graph):
        graph.replace(graph.outputs[0], graph.named("x"))
        raise RuntimeError("half way")

    graph = tutorial()
    before = graph.fingerprint()
    report = half_way.apply(graph)
    assert not report
    assert graph.fingerprint() == before
    assert any("half_way" in text and "RuntimeError: half way" in text for text in report.warnings)


def test_op_remove_needs_as_many_inputs_as_outputs() -> None:
    x = mx.sym.var("x")
    graph = graph_of(mx.sym.identity(mx.sym.identity(x)) + 1.0)
    assert rw.OpRemove("identity").apply(graph)
    assert ops(graph) == ["_plus_scalar"]
    report = rw.OpRemove("elemwise_add").apply(graph_of(x + mx.sym.var("y")))
    assert not report
    assert "2 inputs and 1 outputs" in report.warnings[0]


def test_op_sub_keeps_parameters_that_both_have() -> None:
    graph = graph_of(mx.sym.sum(mx.sym.var("x"), axis=1, keepdims=True))
    assert rw.OpSub("sum", "max").apply(graph)
    (node,) = graph.find("max")
    assert node.params["axis"] in (1, (1,), [1])
    assert node.params["keepdims"] is True


def test_values_of_the_tutorial_stay() -> None:
    x, y = variables("x", "y")
    graph = graph_of((x * y) / y)
    arrays = {"x": np.array([[1, 2, 3], [4, 5, 6]], np.float32), "y": np.full((2, 3), 3, np.float32)}
    before = run(graph, **arrays)
    rw.local(tracks=["div"])(x_times_y_over_y).apply(graph)
    assert np.allclose(run(graph, **arrays)[0], before[0], rtol=1e-6)
