"""Patterns: matches, non-matches, and replacements of matches."""

from __future__ import annotations

import hybridnet as mx
import pytest
from hybridnet import rewrite as rw
from hybridnet.rewrite import P

from rewrite.graphs import graph_of, ops, output_names, run, variables


def matches(pattern, symbol, **options) -> bool:
    graph = graph_of(symbol, **options)
    return bool(rw.PatternSub(pattern, lambda g, n, names: g.full(0.0, like=n[0]), name="found").apply(graph))


def test_commutative_operators_match_in_both_orders() -> None:
    x, y = variables("x", "y")
    pattern = ("add", ("mul", "a", "b"), "a")
    assert matches(pattern, x * y + x)
    assert matches(pattern, x + x * y)
    assert matches(pattern, y + x * y)
    assert not matches(pattern, x * y - x)
    assert not matches(("sub", ("mul", "a", "b"), "a"), x - x * y)


def test_plain_arithmetic_stands_for_all_operators_that_compute_it() -> None:
    x = mx.sym.var("x")
    row = mx.sym.var("row", shape=(1, 3))
    graph = rw.graph(mx.sym.broadcast_mul(x, row) + x * 2.0, {"x": (2, 3)})
    seen = []
    rw.PatternSub(("mul", "a", "b"), lambda g, n, names: seen.append(n.op)).apply(graph)
    assert sorted(seen) == ["_mul_scalar", "broadcast_mul"]


def test_numbers_match_scalars_and_filled_arrays() -> None:
    x = mx.sym.var("x")
    half = ("mul", "a", P.const(0.5, tol=1e-3))
    assert matches(half, x * 0.5)
    assert matches(half, x * 0.5004)
    assert not matches(half, x * 0.6)
    assert matches(half, x * (mx.sym.zeros((2, 3)) + 0.5)) is False
    assert matches(half, x * mx.sym.full((2, 3), 0.5))
    assert matches(("sub", 1, "a"), 1 - x)
    assert not matches(("sub", 1, "a"), x - 1)
    assert not matches(half, x * float("nan"))


def test_numbers_are_bound_and_build_again() -> None:
    x = mx.sym.var("x")
    graph = graph_of((x * 3.0) * 5.0)
    rule = rw.PatternSub(
        ("mul", ("mul", "x", P.const(name="a")), P.const(name="b")),
        lambda g, n, names: names["x"] * (names["a"] * names["b"]),
        values="rounding",
    )
    assert rule.apply(graph)
    assert ops(graph) == ["_mul_scalar"]
    assert graph.nodes[-1].operands[1] == 15.0


def test_a_name_that_comes_twice_is_one_value_or_one_number() -> None:
    x, y = variables("x", "y")
    same = ("sub", "a", "a")
    assert matches(same, x - x)
    assert not matches(same, x - y)
    graph = graph_of((x * 2.0) / 2.0)
    assert rw.PatternSub(("div", ("mul", "x", "n"), "n"), "x").apply(graph)
    assert output_names(graph) == ["x"]
    assert not rw.PatternSub(("div", ("mul", "x", "n"), "n"), "x").apply(graph_of((x * 2.0) / 3.0))


def test_nodes_inside_a_match_are_read_by_the_match_alone() -> None:
    x = mx.sym.var("x")
    inner = mx.sym.relu(x)
    both = mx.sym.Group([mx.sym.tanh(inner), inner])
    assert not matches(("tanh", ("relu", "a")), both)
    assert matches(("tanh", P.op("relu", "a", shared=True)), both)
    assert matches(("tanh", ("relu", "a")), mx.sym.tanh(inner))
    # a node that the match reads twice is inside it
    assert matches(("mul", ("relu", "a"), ("relu", "a")), inner * inner)


def test_parameters_and_tests() -> None:
    x, w = variables("x", "w")
    layer = mx.sym.FullyConnected(x, w, num_hidden=3, no_bias=True, flatten=False)
    assert matches(P.op("FullyConnected", "x", "w", attrs={"flatten": False}), layer, shape=(3, 3))
    assert not matches(P.op("FullyConnected", "x", "w", attrs={"flatten": True}), layer, shape=(3, 3))
    assert matches(P.op("sum", "x", attrs={"axis": 1, "keepdims": True}), mx.sym.sum(x, axis=(1,), keepdims=True))
    with pytest.raises(TypeError, match="no parameter"):
        P.op("FullyConnected", "x", attrs={"flattenn": 1})
    big = P.var("x", where=lambda graph, entry: entry.shape[0] > 2)
    assert matches(("relu", big), x.relu(), shape=(3, 3))
    assert not matches(("relu", big), x.relu(), shape=(2, 3))


def test_a_test_that_raises_is_named() -> None:
    graph = graph_of(mx.sym.var("x").relu())
    rule = rw.PatternSub(("relu", P.var("x", where=lambda g, e: e.nothing)), "x", name="curious")
    report = rule.apply(graph)
    assert not report
    assert "curious" in report.warnings[0]
    assert "AttributeError" in report.warnings[0]


def test_many_and_alternatives() -> None:
    x, y, z = variables("x", "y", "z")
    found = []
    rule = rw.PatternSub(
        P.op("Concat", "first", P.many("rest")), lambda g, n, names: found.append((names["first"], names["rest"]))
    )
    rule.apply(graph_of(mx.sym.concat(x, y, z, dim=0)))
    assert [entry.node is not None for entry in found[0][1]] == [True, True]
    either = ("relu", P.alt(("tanh", "a"), ("sigmoid", "a")))
    assert matches(either, x.tanh().relu())
    assert matches(either, x.sigmoid().relu())
    assert not matches(either, x.abs().relu())
    assert matches(P.alt(("tanh", "a"), ("relu", "a")), x.relu())


def test_many_patterns_cost_one_walk_and_the_first_that_matches_is_taken() -> None:
    x, y = variables("x", "y")
    pairs = [
        (("add", ("negative", "a"), "b"), ("sub", "b", "a")),
        (("add", ("exp", "a"), ("exp", "b")), ("exp", "a")),
        (("add", "a", "b"), "a"),
    ]
    graph = graph_of(mx.sym.negative(x) + y)
    assert rw.PatternSub(pairs, name="several").apply(graph)
    assert ops(graph) == ["elemwise_sub"]
    graph = graph_of(x.exp() + y.exp())
    rw.Walk(rw.PatternSub(pairs, name="several")).apply(graph)
    assert ops(graph) == ["exp"]
    graph = graph_of(x.exp() + y)
    rw.Walk(rw.PatternSub(pairs, name="several")).apply(graph)
    assert ops(graph) == ["exp"]


def test_replacements_with_parameters_and_numbers() -> None:
    x = mx.sym.var("x")
    graph = graph_of(x.relu())
    assert rw.PatternSub(("relu", "x"), ("clip", "x", {"a_min": 0.0, "a_max": 6.0})).apply(graph)
    assert ops(graph) == ["clip"]
    graph = graph_of(x - x)
    assert rw.PatternSub(("sub", "x", "x"), 0.0).apply(graph)
    assert run(graph)[0].tolist() == [[0, 0, 0], [0, 0, 0]]
    assert ops(graph) == ["_full"]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: rw.PatternSub(("no_such_op", "x"), "x"), mx.base.MXNetError, "no_such_op"),
        (lambda: rw.PatternSub(("relu", "x"), "y"), ValueError, "'y'"),
        (lambda: rw.PatternSub(("relu", None), "x"), TypeError, "part of a pattern"),
        (lambda: rw.PatternSub((), "x"), TypeError, "part of a pattern"),
        (lambda: rw.PatternSub(("relu", "x"), "x", values="sometimes"), ValueError, "same"),
    ],
)
def test_wrong_patterns_are_errors_where_they_are_made(make, error, text) -> None:
    with pytest.raises(error, match=text):
        make()


def test_a_hundred_patterns_on_one_root() -> None:
    unary = ["exp", "log", "tanh", "sigmoid", "relu", "abs", "sqrt", "square", "sin", "cos"]
    pairs = [((outer, (inner, "x")), ("negative", "x")) for outer in unary for inner in unary]
    rule = rw.PatternSub(pairs, name="hundred")
    graph = graph_of(mx.sym.cos(mx.sym.log(mx.sym.var("x"))))
    assert rule.apply(graph)
    assert ops(graph) == ["negative"]
    assert not rule.apply(graph_of(mx.sym.cos(mx.sym.var("x") + 1.0)))
