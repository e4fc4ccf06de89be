"""Views of loops: all 12 index maps round-trip, and bodies are edited and put back."""

from __future__ import annotations

import itertools
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import ops, run
from rewrite.zoo import Net, branches, counted_while

SIDES = ("outer_input", "inner_input", "inner_output", "outer_output")
LOOP = """
graph
%x = input : float32(4, 3)
%h = input : float32(3,)
%w = input : float32(3,)
%v = input : float32(3,)
%sums = loop[4] seq{%row: %x} carry{%state: %h} inv{%a: %w, %b: %v} do
    %factor = elemwise_mul(%a, %b)
    %product = elemwise_mul(%row, %factor)
    %next = elemwise_add(%product, %state)
  next{%state: %next} out{.0: %product, .1: %next}
output %sums.0
output %sums.2
"""
ARRAYS = {
    "x": np.arange(12, dtype=np.float32).reshape(4, 3), "h": np.ones(3, np.float32),
    "w": np.array([1, 2, 3], np.float32), "v": np.array([2, 0.5, 1], np.float32),
}  # fmt: skip


def loop() -> tuple[Any, Any]:
    graph = rw.parse(LOOP)
    return graph, graph.named("sums")


def graph_of_net(function: Any) -> Any:
    net = Net(function)
    net.hybridize()
    net(mx.nd.ones((4, 3)))
    return net.graph()


def node_with_bodies(graph: Any) -> Any:
    (node,) = (node for node in graph.nodes if node.bodies)
    return node


@pytest.mark.parametrize("function", [None, counted_while, branches], ids=["loop", "while", "branch"])
@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(SIDES, 2)))
def test_all_twelve_maps_round_trip(function: Any, source: str, target: str) -> None:
    graph = rw.parse(LOOP) if function is None else graph_of_net(function)
    node = node_with_bodies(graph)
    view = node.view()
    there, back = view.index_map(source, target), view.index_map(target, source)
    assert {back[number]: number for number in there.values()} == {v: k for k, v in back.items() if k in there.values()}
    assert all(back[there[number]] == number for number in there)
    assert len(there) == len(back)
    sizes = {"outer_input": len(node.inputs), "outer_output": len(node)}
    assert all(number < sizes.get(source, 100) for number in there)


def test_maps_say_which_input_belongs_to_which_output() -> None:
    _, node = loop()
    view = node.view()
    assert view.index_map("outer_input", "inner_input") == {0: 0, 1: 1, 2: 2, 3: 3}
    assert view.index_map("inner_input", "outer_output") == {1: 2}
    assert view.index_map("inner_output", "outer_output") == {0: 0, 1: 1, 2: 2}
    with pytest.raises(ValueError, match="outer_input"):
        view.index_map("outer", "inner_input")


def test_slots_by_group() -> None:
    _, node = loop()
    view = node.view()
    assert [(slot.outer.node.name, slot.inner.node.name) for slot in view.seqs] == [("x", "row")]
    (carry,) = view.carries
    assert (carry.outer.node.name, carry.inner.node.name, carry.given.node.name, carry.output) == (
        "h", "state", "next", 2,
    )  # fmt: skip
    assert [slot.outer.node.name for slot in view.invs] == ["w", "v"]
    assert [(slot.given.node.name, slot.output) for slot in view.outs] == [("product", 0), ("next", 1)]
    assert list(view.bodies) == ["do"]
    assert list(node_with_bodies(graph_of_net(counted_while)).view().bodies) == ["test", "do"]
    assert list(node_with_bodies(graph_of_net(branches)).view().bodies) == ["pred", "then", "else"]


def hoist(graph: Any, node: Any) -> Any:
    """Moves a product of two invariants in front of the loop."""
    view = node.view()
    body = view.bodies["do"]
    outer = {slot.inner: slot.outer for slot in view.invs}
    for product in body.find("mul"):
        if len(product.inputs) == 2 and all(entry in outer for entry in product.inputs):
            once = graph.add("mul", *(outer[entry] for entry in product.inputs), like=node)
            body.replace(product[0], view.add_inv(once[0]))
            return view.replacement()
    return None


def test_a_rule_in_python_hoists_a_product_of_invariants() -> None:
    graph, _ = loop()
    expected = run(graph, **ARRAYS)
    assert "elemwise_mul" not in ops(graph)
    report = rw.Equilibrium(rw.local(tracks=["_foreach"], name="hoist")(hoist)).apply(graph)
    graph.check()
    assert (report.fired("hoist"), report.warnings) == (1, [])
    assert "elemwise_mul" in ops(graph)
    view = node_with_bodies(graph).view()
    assert len(view.bodies["do"].find("mul")) == 1
    assert len(view.invs) == 1
    for before, after in zip(expected, run(graph, **ARRAYS), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("with_rule", [False, True])
def test_gradients_through_a_loop_that_a_rule_has_edited(with_rule: bool) -> None:
    graph, _ = loop()
    if with_rule:
        assert rw.local(tracks=["_foreach"], name="hoist")(hoist).apply(graph)
    args = {name: mx.nd.array(value) for name, value in ARRAYS.items()}
    grads = {name: mx.nd.zeros_like(value) for name, value in args.items()}
    bound = graph.symbol().bind(mx.cpu(), args, args_grad=grads)
    outputs = bound.forward(is_train=True)
    bound.backward([mx.nd.ones_like(output) for output in outputs])
    x, w, v = (ARRAYS[name].astype(np.float64) for name in "xwv")  # sum(x * w * v) + sum(h + sum(x * w * v))
    wanted = {
        "x": np.broadcast_to(2 * w * v, x.shape), "h": np.ones(3), "w": 2 * x.sum(axis=0) * v,
        "v": 2 * x.sum(axis=0) * w,
    }  # fmt: skip
    for name, gradient in wanted.items():
        np.testing.assert_allclose(grads[name].asnumpy(), gradient, rtol=1e-6)


def test_freezing_replaces_the_node_and_ends_the_view() -> None:
    graph, node = loop()
    view = node.view()
    body = view.bodies["do"]
    (product,) = (n for n in body.nodes if n.name == "product")
    body.replace(product[0], body.add("elemwise_add", *product.inputs))
    made = view.freeze()
    graph.check()
    assert node not in graph
    assert made in graph
    x, w, v = (ARRAYS[name] for name in "xwv")
    np.testing.assert_array_equal(run(graph, **ARRAYS)[0], x + w * v)
    for use in (lambda: body.nodes, lambda: product.op, lambda: view.bodies, lambda: view.freeze(), lambda: view.invs):
        with pytest.raises(ValueError, match=r"over|frozen"):
            use()


def test_handles_of_a_body_end_with_the_rule() -> None:
    graph, _ = loop()
    kept = []

    @rw.local(tracks=["_foreach"])
    def keeper(graph, node):
        view = node.view()
        kept.extend([view, view.bodies["do"], view.carries[0].inner])

    keeper.apply(graph)
    with pytest.raises(ValueError, match="over"):
        list(kept[0].bodies)
    with pytest.raises(ValueError, match="over"):
        kept[0].freeze()
    del kept[0]
    for use in (lambda: len(kept[0]), lambda: kept[1].shape):
        with pytest.raises(ValueError, match="over"):
            use()


def test_outputs_come_and_go() -> None:
    graph, node = loop()
    view = node.view()
    with pytest.raises(ValueError, match="has readers"):
        view.remove_output(0)
    view.remove_output(1)
    body = view.bodies["do"]
    assert view.add_output(body.add("negative", view.carries[0].inner)[0]) == 1
    made = view.freeze()
    graph.set_output(0, graph.add("identity", made[1]))
    graph.check()
    states = np.cumsum(np.vstack([ARRAYS["h"], ARRAYS["x"] * ARRAYS["w"] * ARRAYS["v"]]), axis=0)
    np.testing.assert_allclose(run(graph, **ARRAYS)[0], -states[:4])


def test_sequences_have_as_many_rows_as_there_are_iterations() -> None:
    graph, node = loop()
    view = node.view()
    with pytest.raises(mx.errors.ShapeError, match="4 rows"):
        view.add_seq(graph.named("w"))
    row = view.add_seq(graph.add("exp", graph.named("x"))[0])
    body = view.bodies["do"]
    body.set_output(0, body.add("elemwise_add", view.outs[0].given, row))
    view.freeze()
    graph.check()
    x, w, v = (ARRAYS[name] for name in "xwv")
    np.testing.assert_allclose(run(graph, **ARRAYS)[0], x * w * v + np.exp(x), rtol=1e-6)


def test_branches_are_edited_too() -> None:
    graph = graph_of_net(branches)
    x = np.linspace(-1, 2, 12, dtype=np.float32).reshape(4, 3)
    view = node_with_bodies(graph).view()
    then, otherwise = view.bodies["then"], view.bodies["else"]
    extra = view.add_input("then", graph.named("data"))
    (exp,) = then.find("exp")
    then.replace(exp[0], then.add("sin", extra))
    assert view.add_output(then.add("cos", extra)[0], otherwise.outputs[1]) == 2
    made = view.freeze()
    graph.check()
    assert len(made) == 3
    graph.set_output(1, made[2])
    first, second = run(graph, data=x)
    np.testing.assert_allclose(first, np.sin(x), rtol=1e-5)
    np.testing.assert_allclose(second, np.cos(x), rtol=1e-5)
    first, second = run(graph, data=-x - 3)
    np.testing.assert_allclose(first, -x - 4, rtol=1e-5)
    np.testing.assert_allclose(second, x + 3, rtol=1e-5)


def test_wrong_uses_change_nothing() -> None:
    graph, node = loop()
    before = graph.fingerprint()
    view = node.view()
    with pytest.raises(ValueError, match=r"pred, then or else|add_inv"):
        view.add_input("do", graph.named("w"))
    with pytest.raises(TypeError, match="one value"):
        view.add_output()
    with pytest.raises(ValueError, match="another graph"):
        view.add_output(graph.named("w")[0])
    with pytest.raises(IndexError):
        view.remove_output(7)
    with pytest.raises(ValueError, match="no bodies"):
        graph.named("x").view()

    class Refusing(rw.Feature):
        def validate(self, graph):
            raise RuntimeError("not today")

    graph.attach(Refusing())
    with pytest.raises(mx.errors.HybridNetError, match="not today"):
        view.freeze()
    graph.check()
    assert graph.fingerprint() == before
    assert view.bodies["do"].outputs  # the view is still usable


@pytest.mark.parametrize("read", [[0], [2], [0, 1]])
def test_a_replacement_of_a_loop_with_outputs_that_nothing_reads(read: list[int]) -> None:
    text = LOOP.replace("output %sums.0\noutput %sums.2\n", "".join(f"output %sums.{i}\n" for i in read))
    part = rw.parse(text)
    expected = run(part, **ARRAYS)
    assert rw.local(tracks=["_foreach"], name="hoist")(hoist).apply(part)
    part.check()
    for before, after in zip(expected, run(part, **ARRAYS), strict=True):
        np.testing.assert_array_equal(before, after)
