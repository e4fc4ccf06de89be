"""Features see each edit in order, may refuse it, and are detached with the rewrite that attached them."""

from __future__ import annotations

import hybridnet as mx
import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, ops, tutorial


class Log(rw.Feature):
    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []

    def on_attach(self, graph):
        self.events.append(("attach",))

    def on_detach(self, graph):
        self.events.append(("detach",))

    def on_import(self, graph, node, reason):
        self.events.append(("import", node.op, reason))

    def on_change_input(self, graph, client, index, old, new, reason):
        self.events.append(("change", client if isinstance(client, str) else client.op, new.node.op or new.node.name))

    def on_prune(self, graph, node, reason):
        self.events.append(("prune", node.op))


def test_a_feature_sees_events_in_order() -> None:
    graph, log = tutorial(), Log()
    graph.attach(log)
    graph.replace_validate({graph.outputs[0]: graph.add("tanh", graph.named("x"))}, reason="by hand")
    graph.detach(log)
    graph.add("relu", graph.named("x"))
    assert log.events[:4] == [
        ("attach",), ("import", "tanh", ""), ("change", "output", "tanh"), ("prune", "elemwise_div"),
    ]  # fmt: skip
    assert log.events[-1] == ("detach",)
    assert sorted(event[1] for event in log.events if event[0] == "prune") == [
        "elemwise_add", "elemwise_div", "elemwise_mul",
    ]  # fmt: skip


def test_undoing_is_seen_too() -> None:
    graph, log = tutorial(), Log()
    start = graph.checkpoint()
    graph.attach(log)
    graph.set_output(0, graph.named("x")[0])
    graph.revert(start)
    kinds = [event[0] for event in log.events]
    assert kinds.count("prune") == kinds.count("import") == 3
    assert kinds.count("change") == 2
    graph.check()


def test_the_rule_at_work_is_the_reason() -> None:
    graph, log = tutorial(), Log()
    graph.attach(log)
    rw.OpSub("elemwise_div", "elemwise_sub", name="my_rule").apply(graph)
    assert ("import", "elemwise_sub", "my_rule") in log.events


def test_a_feature_that_refuses_undoes_the_edit() -> None:
    class NoTanh(rw.Feature):
        def validate(self, graph):
            if graph.find("tanh"):
                raise ValueError("tanh is not wanted here")

    graph = tutorial()
    graph.attach(NoTanh())
    before = graph.fingerprint()
    report = rw.OpSub("elemwise_div", "elemwise_sub", name="fine").apply(graph)
    assert report
    report = rw.local(tracks=["sub"], name="wrong")(lambda g, n: g.add("tanh", n.inputs[0])).apply(graph)
    assert not report
    assert "tanh is not wanted here" in report.warnings[0]
    assert graph.fingerprint() != before
    with pytest.raises(ValueError, match="not wanted"):
        graph.replace_validate([(graph.outputs[0], graph.add("tanh", graph.outputs[0].node.inputs[0]))])
    assert ops(graph)[-1] in ("elemwise_sub", "tanh")
    assert graph.outputs[0].node.op == "elemwise_sub"
    graph.check()


def test_errors_of_callbacks_are_raised_when_the_edit_is_validated() -> None:
    class Broken(rw.Feature):
        def on_import(self, graph, node, reason):
            raise RuntimeError(f"cannot take {node.op}")

    graph = tutorial()
    graph.attach(Broken())
    before = graph.fingerprint()
    report = rw.OpSub("elemwise_div", "elemwise_sub", name="rule").apply(graph)
    assert not report
    assert "cannot take elemwise_sub" in report.warnings[0]
    assert graph.fingerprint() == before


def test_orderings_count_and_must_not_make_a_cycle() -> None:
    class First(rw.Feature):
        def __init__(self, first, second):
            self.pair = (first, second)

        def orderings(self, graph):
            nodes = {node.name: node for node in graph.nodes}
            return [(nodes[self.pair[0]], nodes[self.pair[1]])] if set(self.pair) <= set(nodes) else []

    x = mx.sym.var("x")
    both = mx.sym.Group([mx.sym.relu(x, name="a"), mx.sym.tanh(x, name="b")])
    for first, second in (("a", "b"), ("b", "a")):
        graph = graph_of(both)
        graph.attach(First(first, second))
        assert [node.name for node in graph.schedule][1:] == [first, second]
    graph = graph_of(mx.sym.tanh(mx.sym.relu(x, name="a"), name="b"))
    graph.attach(First("b", "a"))
    with pytest.raises(mx.base.MXNetError, match="cycle"):
        graph.validate()


def test_a_feature_is_attached_once() -> None:
    graph, log = tutorial(), Log()
    graph.attach(log)
    with pytest.raises(ValueError, match="already"):
        graph.attach(log)
    graph.attach(Log())
    assert graph.features[0] is log
    graph.detach(log)
    with pytest.raises(ValueError, match="not attached"):
        graph.detach(log)

    class Refuses(rw.Feature):
        def on_attach(self, graph):
            raise ValueError("not me")

    with pytest.raises(mx.base.MXNetError, match="not me"):
        graph.attach(Refuses())
    assert len(graph.features) == 1


def test_the_index_by_operator_is_kept_up_to_date() -> None:
    graph, index = tutorial(), rw.OpIndex()
    graph.attach(index)
    assert index.count("elemwise_add") == 1
    rw.OpSub("elemwise_div", "elemwise_sub").apply(graph)
    assert (index.count("elemwise_div"), index.count("elemwise_sub")) == (0, 1)
    assert index["elemwise_sub"] == graph.find("elemwise_sub")
    mark = graph.checkpoint()
    graph.set_output(0, graph.named("x"))
    assert index.count("elemwise_add") == 0
    graph.revert(mark)
    assert index["elemwise_add"] == graph.find("elemwise_add")


def test_history_takes_the_graph_back() -> None:
    graph, history = tutorial(), rw.History()
    graph.attach(history)
    before = graph.fingerprint()
    mark = history.checkpoint()
    rw.OpSub("elemwise_div", "elemwise_sub", name="change").apply(graph)
    assert any("change" in edit for edit in history.edits)
    history.revert(mark)
    assert graph.fingerprint() == before


def test_checks_after_each_replacement() -> None:
    def few(graph):
        if len(graph) > 7:
            raise ValueError("too many nodes")

    graph = tutorial()
    graph.attach(rw.ReplaceValidate(few))
    grow = rw.local(tracks=["div"], name="grow")(lambda g, n: (n.inputs[0] + 1.0) - (n.inputs[1] + 2.0))
    report = grow.apply(graph)
    assert not report
    assert "too many nodes" in report.warnings[0]


def test_lines_of_the_program_pass_to_replacements() -> None:
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.relu(x) + 1.0

    net = Net()
    net.hybridize()
    net(mx.nd.ones((2,)))
    graph, origins = net.graph(), rw.Provenance()
    graph.attach(origins)
    (relu,) = graph.find("relu")
    line = origins.of(relu)
    assert "test_features.py" in line
    graph.replace(relu, graph.add("abs", relu.inputs[0]))
    assert origins.of(graph.find("abs")[0]) == line


def test_regions_name_the_loop_that_needs_a_node() -> None:
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, p):
            doubled = x * 2.0
            return F.contrib.cond(p, lambda: doubled + 1.0, lambda: x), F.tanh(x)

    net = Net()
    net.hybridize()
    net(mx.nd.ones((2,)), mx.nd.ones((1,)))
    graph, regions = net.graph(), rw.RegionMap()
    graph.attach(regions)
    (doubled,) = graph.find("mul")
    (tanh,) = graph.find("tanh")
    assert [node.op for node in regions.of(doubled)] == ["_cond"]
    assert regions.of(tanh) == []
    (x,) = [entry.node for entry in graph.inputs if entry.shape == (2,)]
    assert regions.of(x) == []


def test_a_tracker_reports_changes() -> None:
    graph, tracker, others = tutorial(), rw.ChangeTracker(), rw.ChangeTracker(["somebody"])
    graph.attach(tracker)
    graph.attach(others)
    assert not tracker.changed
    rw.OpSub("elemwise_div", "elemwise_sub").apply(graph)
    assert tracker.changed
    assert not others.changed
    tracker.reset()
    assert not tracker.changed


def test_the_report_shows_the_time_of_feature_callbacks() -> None:
    @rw.global_(db="canonicalize", requirements=lambda graph: graph.attach(rw.OpIndex()))
    def with_index(graph):
        for relu in graph.find("relu"):
            graph.replace(relu, graph.add("tanh", relu.inputs[0]))

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.relu(x) + 1

    net = Net()
    net.hybridize(passes="fast_run,canonicalize_joint:-with_index")
    net(mx.nd.ones((2,)))
    rows = [line.split() for line in net.pass_report().splitlines() if line.strip().startswith("feature ")]
    counts = {row[1]: int(row[3]) for row in rows}
    assert counts["OpIndex.on_attach"] == 2  # once per sweep; the second sweep of the stage changes nothing
    assert counts["OpIndex.on_import"] == counts["OpIndex.on_prune"] == 1
    assert counts["OpIndex.on_change_input"] >= 1
    assert counts["OpIndex.validate"] >= 1
    assert all(float(row[4]) >= 0 and row[5] == "us" for row in rows)
