"""Random graphs, edits and rules, right and wrong ones: no crash, and graphs stay consistent.

PYTHONPATH=python:tests/python python -m rewrite.random_rules --programs 10000
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import hybridnet as mx
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of

UNARY = ("relu", "tanh", "sigmoid", "abs", "negative", "identity", "square")
BINARY = ("add", "sub", "mul", "div", "maximum")


def random_graph(draw: random.Random, nodes: int) -> Any:
    """Returns a random graph over three inputs of one shape, sometimes with loops."""
    made = [mx.sym.var(name) for name in "xyz"]
    for _ in range(nodes):
        kind = draw.random()
        if kind < 0.5:
            made.append(getattr(mx.sym, draw.choice(UNARY))(draw.choice(made)))
        elif kind < 0.9:
            a, b = draw.choice(made), draw.choice(made)
            made.append(draw.choice((lambda p, q: p + q, lambda p, q: p * q, lambda p, q: p - q))(a, b))
        else:
            out, _ = mx.sym.contrib.foreach(lambda row, s: (row + s, s), draw.choice(made), mx.sym.ones((3,)))
            made.append(out)
    return graph_of(mx.sym.Group(draw.sample(made, draw.randint(1, min(4, len(made))))), train=draw.random() < 0.2)


def random_edit(draw: random.Random, graph: Any, kept: list[Any]) -> None:
    """Makes one edit through the API, often an invalid one."""
    nodes = graph.nodes
    some = draw.choice(nodes)
    other = draw.choice(kept) if kept and draw.random() < 0.2 else draw.choice(nodes)
    kind = draw.randrange(14)
    if kind == 12:
        random_body_edit(draw, graph, kept)
    elif kind == 13:
        again = rw.parse(graph.text())
        assert again.fingerprint() == graph.fingerprint(), "the text reads back to another graph"
    elif kind == 0:
        kept.append(graph.add(draw.choice(UNARY), some[0]))
    elif kind == 1:
        kept.append(graph.add(draw.choice(BINARY), some[0], draw.choice([other, 2.0, some])))
    elif kind in (2, 3):
        graph.replace(some[0], other if isinstance(other, rw.Entry) else other[0])
    elif kind == 4:
        graph.replace_validate(
            [(some[0], other), (draw.choice(nodes)[0], some)], draw.sample(nodes, draw.randint(0, 2))
        )
    elif kind == 5:
        graph.set_input(some, draw.randint(-1, 2), other)
    elif kind == 6:
        graph.set_output(draw.randint(-1, 3), other)
    elif kind == 7:
        graph.remove_unused()
    elif kind == 8:
        kept.append(graph.constant(mx.nd.ones((2, 3))))
    elif kind == 9:
        graph.replace(some[0], graph.add("cast", some[0], dtype="float64"))
    elif kind == 10:
        mark = graph.checkpoint()
        for _ in range(draw.randint(0, 3)):
            try_edit(draw, graph, kept)
        if draw.random() < 0.7:
            graph.revert(mark)
        graph.release(mark)
    else:
        kept.append(some)


def random_body_edit(draw: random.Random, graph: Any, kept: list[Any]) -> None:
    """Makes a view of a loop, edits a body, and usually freezes the view."""
    loops = [node for node in graph.nodes if node.bodies]
    if not loops:
        return
    view = draw.choice(loops).view()
    body = draw.choice(list(view.bodies.values()))
    for _ in range(draw.randint(0, 3)):
        kind = draw.randrange(4)
        if kind == 0:
            kept.append(view.add_inv(draw.choice(graph.nodes)[0]))
        elif kind == 1:
            kept.append(view.add_seq(draw.choice(graph.nodes)[0]))
        elif kind == 2:
            view.add_output(draw.choice(body.nodes)[0])
        else:
            try_edit(draw, body, kept)
    if draw.random() < 0.8:
        kept.append(view.freeze()[0])
    else:
        kept.extend([view.node, body.nodes[0]])


def try_edit(draw: random.Random, graph: Any, kept: list[Any]) -> bool:
    """Tries a random edit; True if it was valid. Only errors of the library are expected."""
    try:
        random_edit(draw, graph, kept)
    except (mx.base.MXNetError, ValueError, TypeError, IndexError):
        return False
    return True


def random_rule(draw: random.Random, kept: list[Any]) -> Any:
    """Returns a rule that is right, or wrong in one of several ways."""
    tracks = draw.choice([None, ["relu"], ["add"], ["mul", "sub"], ["_foreach"], list(UNARY)])
    kind = draw.randrange(15)

    def rule(graph: Any, node: Any) -> Any:
        if kind == 0:
            return node.inputs[0]
        if kind == 1:
            return graph.add(draw.choice(UNARY), node.inputs[0])
        if kind == 2:
            kept.append(node)
            kept.append(node[0])
            return None
        if kind == 3:
            raise RuntimeError("on purpose")
        if kind == 4:
            return graph.add("relu", node[0])
        if kind == 5:
            return graph.add("cast", node[0], dtype="float16")
        if kind == 6:
            return {node[0]: node.inputs[-1], "remove": [node.inputs[0].node, node]}
        if kind == 7:
            return draw.choice([3, "text", [None], [node[0]] * 3, {}, [], object(), {"remove": [node]}])
        if kind == 8:
            return draw.choice(kept) if kept else None
        if kind == 9:
            try_edit(draw, graph, kept)
            return draw.choice([None, node.inputs[0]])
        if kind == 10:
            return graph.add("add", node.inputs[0], node.inputs[-1])
        if kind == 11:
            mark = graph.checkpoint()
            try_edit(draw, graph, kept)
            graph.revert(mark)
            return None
        if kind == 12:
            graph.attach(rw.OpIndex())
            return node.inputs[0]
        if kind == 14:
            view = node.view()
            body = view.bodies["do"]
            body.set_output(0, body.add(draw.choice(UNARY), body.outputs[0]))
            return view.replacement()
        return node[0]

    return rw.local(tracks=tracks, name=f"rule_{kind}")(rule)


def random_program(seed: int) -> None:
    """Applies random rules by a random navigator; raises if the graph becomes inconsistent."""
    draw = random.Random(seed)
    graph = random_graph(draw, draw.randint(1, 15))
    kept: list[Any] = []
    rules = [random_rule(draw, kept) for _ in range(draw.randint(1, 4))]
    navigator = draw.choice([rw.Topo, rw.ReverseTopo, rw.Walk, rw.Equilibrium, rw.Random])
    outputs = [(entry.shape, entry.dtype) for entry in graph.outputs]
    report = navigator(rules).apply(graph)
    graph.check()
    assert [(entry.shape, entry.dtype) for entry in graph.outputs] == outputs, "an output has another spec"
    assert all("rule_" in warning for warning in report.warnings), "a warning that names no rule"
    rw.apply(graph, draw.choice(["fast_run", "fast_compile", "none"]))
    graph.check()
    graph.symbol().tojson()
    text = graph.text()
    assert rw.parse(text).text() == text, "the text reads back to another graph"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for number in range(arguments.programs):
        try:
            random_program(arguments.seed + number)
        except BaseException:
            print(f"seed {arguments.seed + number}")
            raise
    print(f"{arguments.programs} programs, no failure")


if __name__ == "__main__":
    main()
