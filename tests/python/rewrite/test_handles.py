"""Handles of graphs, nodes and entries: their properties, and errors for wrong uses."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, ops, output_names, run, tutorial, variables


def test_a_graph_lists_its_nodes() -> None:
    x, w = variables("x", "w")
    graph = graph_of(mx.sym.FullyConnected(x, w, num_hidden=2, no_bias=True, flatten=False, name="layer"))
    node = graph.named("layer")
    assert (node.op, node.name, len(node), node.is_input, node.is_constant) == (
        "FullyConnected", "layer", 1, False, False,
    )  # fmt: skip
    assert node.params["num_hidden"] == 2
    assert node.params["no_bias"] is True
    assert [entry.node.name for entry in node.inputs] == ["x", "w"]
    assert (node[0].shape, node[0].dtype, node[-1] == node[0]) == ((2, 2), np.float32, True)
    assert [who.name for who, _ in graph.clients(graph.named("x")[0])] == ["layer"]
    assert graph.clients(node[0]) == [("output", 0)]
    assert graph.find("FullyConnected") == [node]
    assert graph.named("x").is_input
    assert "FullyConnected" in graph.text()


def test_shapes_that_cannot_be_inferred_must_be_given() -> None:
    x, y = variables("x", "y")
    with pytest.raises(mx.base.MXNetError, match=r"(?s)shape.*give"):
        rw.graph(mx.sym.FullyConnected(x, y, num_hidden=2, no_bias=True))
    with pytest.raises(ValueError, match="no variable 'z'"):
        rw.graph(x + y, {"z": (1,)})


def test_a_graph_becomes_a_symbol_and_the_first_symbol_stays() -> None:
    x, y = variables("x", "y")
    symbol = x * y + 1.0
    text = symbol.tojson()
    graph = graph_of(symbol)
    (multiply,) = graph.find("mul")
    graph.replace(multiply, graph.add("sub", graph.named("x"), graph.named("y")))
    a, b = np.full((2, 3), 5.0, np.float32), np.full((2, 3), 3.0, np.float32)
    assert run(graph, x=a, y=b)[0].tolist() == (a - b + 1).tolist()
    assert symbol.tojson() == text
    graph.check()


def test_arithmetic_of_entries_chooses_the_operator() -> None:
    x, row = mx.sym.var("x"), mx.sym.var("row")
    graph = rw.graph(mx.sym.broadcast_add(x, row), {"x": (2, 3), "row": (1, 3)})
    a, b = graph.named("x")[0], graph.named("row")[0]
    made = [a + a, a * b, a - 2, 2 - a, 3 / b, a / 4, b**2, 2**b, -a, a % 2]
    assert [entry.node.op for entry in made] == [
        "elemwise_add", "broadcast_mul", "_minus_scalar", "_rminus_scalar", "_rdiv_scalar", "_div_scalar",
        "_power_scalar", "_rpower_scalar", "negative", "_mod_scalar",
    ]  # fmt: skip
    assert made[3].node.operands[0] == 2.0
    with pytest.raises(TypeError):
        a + "text"
    with pytest.raises(ValueError, match="both operands are numbers"):
        graph.add("add", 1, 2)


def test_constants_are_copies() -> None:
    graph = graph_of(mx.sym.var("x") + 0.0)
    array = mx.nd.array([[1.0, 2, 3], [4, 5, 6]])
    entry = graph.constant(array)
    array[:] = 0
    assert entry.node.is_constant
    assert entry.node.value.asnumpy().sum() == 21
    graph.replace(graph.outputs[0], graph.add("mul", graph.named("x"), entry))
    x = np.ones((2, 3), np.float32)
    assert run(graph, x=x)[0].sum() == 21


@pytest.mark.parametrize(
    ("edit", "error", "text"),
    [
        (lambda g: g.replace(g.outputs[0], g.add("sum", g.named("x"))), mx.base.MXNetError, "spec"),
        (lambda g: g.replace(g.named("y"), g.outputs[0]), mx.base.MXNetError, "cycle"),
        (lambda g: g.add("relu", g.named("x"), g.named("y")), TypeError, "1 inputs"),
        (lambda g: g.add("reluu", g.named("x")), mx.base.MXNetError, "relu"),
        (lambda g: g.add("dot", g.named("x"), g.named("x")), mx.base.MXNetError, "dot"),
        (lambda g: g.add("relu", "x"), TypeError, "an Entry"),
        (lambda g: g.add("sum", g.named("x"), axiss=1), mx.base.MXNetError, "axis"),
        (lambda g: g.named("nobody"), ValueError, "0 nodes"),
        (lambda g: g.outputs[0].node[3], IndexError, "1 outputs"),
        (lambda g: g.set_input(g.outputs[0].node, 7, g.named("x")), IndexError, "below"),
        (lambda g: g.revert(3), ValueError, "not open"),
        (lambda g: g.replace_validate([(g.outputs[0], g.add("sum", g.named("x")))]), ValueError, "undone"),
        (lambda g: g.replace_validate([(g.outputs[0], g.named("x"))], [g.named("x")]), ValueError, "not removed"),
        (lambda g: g.add("relu", tutorial().named("x")), ValueError, "another graph"),
    ],
)
def test_a_wrong_edit_is_an_error_and_leaves_the_graph_as_it_was(edit, error, text) -> None:
    graph = tutorial()
    before = graph.fingerprint()
    with pytest.raises(error, match=text):
        edit(graph)
    assert graph.fingerprint() == before
    graph.check()


def test_a_node_that_is_gone_says_so() -> None:
    graph = tutorial()
    (division,) = graph.find("div")
    graph.replace(division, graph.named("x"))
    assert division not in graph
    with pytest.raises(ValueError, match="no longer in the graph"):
        len(division)
    with pytest.raises(ValueError, match="no longer in the graph"):
        graph.add("relu", division)


@pytest.mark.parametrize("kind", ["local", "pattern", "global", "where"])
def test_a_handle_that_is_kept_is_an_error_and_names_its_rule(kind) -> None:
    kept = []

    def keep(graph, thing=None, names=None):
        kept.extend([graph, *([] if thing is None else [thing])])

    graph = tutorial()
    if kind == "local":
        rw.local(tracks=["div"], name="keeper")(keep).apply(graph)
    elif kind == "pattern":
        rw.PatternSub(("div", "a", "b"), keep, name="keeper").apply(graph)
    elif kind == "where":
        rw.PatternSub(("div", rw.P.var("a", where=lambda g, e: keep(g, e)), "b"), "a", name="keeper").apply(graph)
    else:
        rw.global_(name="keeper")(lambda g: keep(g, g.nodes[-1])).apply(graph)
    assert kept
    for use in (lambda: len(kept[0]), lambda: kept[0].text(), lambda: kept[0].add("relu", graph.named("x"))):
        with pytest.raises(ValueError, match="over"):
            use()
    with pytest.raises(ValueError, match="over"):
        kept[1].shape if isinstance(kept[1], rw.Entry) else kept[1].op
    assert re.match(r"<(Node|Entry)", repr(kept[1]))
    assert kept[1] == kept[1]
    assert isinstance(hash(kept[1]), int)


def test_checkpoints_nest_and_take_edits_back() -> None:
    graph = tutorial()
    before = graph.fingerprint()
    outer = graph.checkpoint()
    graph.replace(graph.outputs[0], graph.named("x"))
    inner = graph.checkpoint()
    graph.set_output(0, graph.add("tanh", graph.named("x")))
    assert ops(graph) == ["tanh"]
    graph.revert(inner)
    assert output_names(graph) == ["x"]
    graph.revert(outer)
    assert graph.fingerprint() == before
    with pytest.raises(ValueError, match="not open"):
        graph.revert(inner)
    graph.release(outer)
    graph.check()


def test_clones_map_original_nodes_to_copies() -> None:
    graph = tutorial()
    copy, equivalent = graph.clone()
    assert copy.fingerprint() == graph.fingerprint()
    assert equivalent[graph.outputs[0]] == copy.outputs[0]
    assert equivalent[graph.outputs[0]] != graph.outputs[0]
    rw.local(tracks=["div"], name="xy_over_y")(lambda g, n: n.inputs[0]).apply(copy)
    assert copy.fingerprint() != graph.fingerprint()


def test_the_graph_of_a_block() -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.Dropout(0.5), mx.gluon.nn.Dense(2))
    net.initialize()
    net.hybridize()
    with pytest.raises(RuntimeError, match="hybridize"):
        net.graph()
    net(mx.nd.ones((3, 5)))
    graph = net.graph()
    assert ops(graph) == ["FullyConnected", "Activation", "Dropout", "FullyConnected"]
    assert graph.outputs[0].shape == (3, 2)
    assert net.graph(train=True).train
    rw.apply(graph)
    assert "Dropout" not in ops(graph)
    assert net.graph().named("data").is_input
