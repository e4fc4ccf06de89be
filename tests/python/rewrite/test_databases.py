"""Databases and queries: order, selection, names, and the pipeline of the process."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, ops, tutorial, x_times_y_over_y


def recorder(log: list[str], name: str, **options):
    return rw.global_(name=name, **options)(lambda graph: log.append(name))


def test_positions_then_names_decide_the_order() -> None:
    log: list[str] = []
    db = rw.SequenceDB("mine")
    for name, position in [("c", 1), ("b", 1), ("half", 0.5), ("a", 0)]:
        db.register(recorder(log, name), position)
    db.query("fast_run").apply(tutorial())
    assert log == ["a", "half", "b", "c"]
    log.clear()
    db.query(rw.Query(position_cutoff=0.5)).apply(tutorial())
    assert log == ["a", "half"]


# The four rewrites have the tags a: x, b: x y, c: y z, d: z.
QUERIES = [
    ({"include": ["x"]}, "ab"),
    ({"include": ["x", "y"]}, "abc"),
    ({"include": ["x", "y"], "exclude": ["z"]}, "ab"),
    ({"include": ["x"], "require": ["y"]}, "b"),
    ({"include": ["x", "y", "z"], "require": ["y", "z"]}, "c"),
    ({"include": ["x", "y", "z"], "exclude": ["x", "z"]}, ""),
    ({"include": ["a"]}, "a"),
    ({"include": ["a", "d"]}, "ad"),
    ({"include": ["x"], "exclude": ["a"]}, "b"),
    ({"include": ["nothing"]}, ""),
    ({"include": ["z"], "require": ["nothing"]}, ""),
    ({"include": ["y"], "exclude": ["nothing"]}, "bc"),
]


@pytest.mark.parametrize(("query", "wanted"), QUERIES)
def test_queries_are_set_algebra(query, wanted) -> None:
    log: list[str] = []
    db = rw.SequenceDB("mine")
    for i, (name, tags) in enumerate({"a": "x", "b": "xy", "c": "yz", "d": "z"}.items()):
        db.register(recorder(log, name), i, *tags)
    made = rw.Query(**query)
    db.query(made).apply(tutorial())
    assert "".join(log) == wanted
    assert rw.Query.parse(str(made)) == made or made.include == []
    log.clear()
    db.query(str(made)).apply(tutorial())
    assert "".join(log) == wanted


def test_refined_copies_leave_the_query_as_it_is() -> None:
    query = rw.Query(include=["a"])
    refined = query.including("b").excluding("c").requiring("d")
    assert str(query) == "a"
    assert str(refined) == "a,b,-c,&d"


def test_subqueries_hold_in_their_database() -> None:
    log: list[str] = []
    inner = rw.SequenceDB("inner")
    inner.register(recorder(log, "one"), 0, "fast_run", "slow")
    inner.register(recorder(log, "two"), 1, "fast_run")
    outer = rw.SequenceDB("outer")
    outer.register(inner, 0)
    outer.register(recorder(log, "three"), 1, "fast_run", "slow")
    outer.query(rw.Query(subquery={"inner": rw.Query(exclude=["slow"])})).apply(tutorial())
    assert log == ["two", "three"]
    log.clear()
    outer.query("fast_run,inner:-slow").apply(tutorial())
    assert log == ["two", "three"]
    log.clear()
    outer.query("fast_run,-slow").apply(tutorial())
    assert log == ["two"]


@pytest.mark.parametrize("make", [rw.SequenceDB, rw.EquilibriumDB, rw.LocalGroupDB])
def test_names_are_taken_once_and_tags_are_no_names(make) -> None:
    db = make("mine")
    place = (0,) if make is rw.SequenceDB else ()
    rule = rw.local(tracks=["div"], name="rule")(x_times_y_over_y)
    other = rw.local(tracks=["div"], name="other")(x_times_y_over_y)
    tagged = rw.local(tracks=["div"], name="tag")(x_times_y_over_y)
    db.register(rule, *place, "tag")
    assert "rule" in db
    for wrong in (lambda: db.register(rule, *place), lambda: db.register(tagged, *place)):
        with pytest.raises(ValueError, match="taken"):
            wrong()
    with pytest.raises(ValueError, match="is the name of a rewrite"):
        db.register(other, *place, "rule")
    with pytest.raises(TypeError, match="holds rewrites"):
        db.register("rule", *place)


def test_an_equilibrium_reaches_the_result_of_several_rules() -> None:
    db = rw.EquilibriumDB("chain")
    db.register(rw.OpSub("sin", "cos", name="b_to_c"))
    db.register(rw.OpSub("relu", "sin", name="a_to_b"))
    graph = graph_of(mx.sym.relu(mx.sym.relu(mx.sym.var("x"))))
    report = db.query().apply(graph)
    assert ops(graph) == ["cos", "cos"]
    assert (report.fired("a_to_b"), report.fired("b_to_c")) == (2, 2)


def test_globals_cleanup_and_final_rules_of_an_equilibrium() -> None:
    log: list[str] = []
    rules = [
        rw.OpSub("relu", "tanh", name="rule"),
        recorder(log, "each_sweep"),
        recorder(log, "first", phase="cleanup"),
        recorder(log, "last", phase="final"),
    ]
    rw.Equilibrium(rules).apply(graph_of(mx.sym.var("x").relu()))
    assert log == ["first", "each_sweep", "last"] * 2


# ---- the pipeline of the process


class Net(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.relu(x) + 1.0


def run_net(net: Net, size: int = 2) -> list[float]:
    return net(mx.nd.array([-1.0, *range(1, size)])).asnumpy().tolist()


def relu_becomes_abs(**options):
    return rw.local(tracks=["relu"], name="relu_to_abs", **options)(lambda g, n: g.add("abs", n.inputs[0]))


def test_compiled_plans_stay_and_the_next_ones_have_the_rule() -> None:
    net = Net()
    net.hybridize()
    assert run_net(net) == [1, 2]
    before = rw.generation()
    relu_becomes_abs(db="canonicalize", values="unsafe", tags=["fast_run"])
    assert rw.generation() == before + 1
    assert run_net(net) == [1, 2]  # the existing plan
    assert run_net(net, 3) == [1, 2, 3]  # unsafe rules need fast_math
    rw.unregister("relu_to_abs")
    relu_becomes_abs(db="canonicalize")
    assert run_net(net) == [1, 2]
    assert run_net(net, 4) == [2, 2, 3, 4]  # a new size is compiled with the new rule
    net.hybridize()
    assert run_net(net) == [2, 2]
    net.hybridize(exclude=["relu_to_abs"])
    assert run_net(net) == [1, 2]


def test_a_rule_that_looks_at_a_shape_is_asked_for_each_size() -> None:
    """A graph rewritten for some sizes serves others, unless a rule may have decided by the sizes."""

    @rw.local(tracks=["relu"], db="canonicalize", name="large_only")
    def large_only(graph, node):
        return graph.add("abs", node.inputs[0]) if node[0].shape[0] >= 6 else None

    net = Net()
    net.hybridize()
    for size in (7, 9, 12, 5, 4, 8, 3, 20):
        assert run_net(net, size)[0] == (2 if size >= 6 else 1), size
    rw.unregister("large_only")
    net.hybridize()
    for size in (7, 9, 12, 5, 4, 8, 3, 20):
        assert run_net(net, size)[0] == 1
    assert net._cached_op.num_rewritten <= 3


def test_unsafe_rules_run_where_fast_math_is_asked_for() -> None:
    relu_becomes_abs(db="canonicalize", values="unsafe")
    net = Net()
    net.hybridize(passes="fast_run,fast_math")
    assert run_net(net) == [2, 2]


@pytest.mark.parametrize(
    ("position", "graph"),
    [(0.5, "forward"), (2, "forward"), (15, "joint"), (37, "joint"), (39, "parts"), (55, "parts")],
)
def test_a_position_between_the_stages(position, graph) -> None:
    sizes = []
    rw.global_(name="looker", position=position)(lambda g: sizes.append(len(g.nodes)))
    names = [row["name"] for row in rw.rows()]
    positions = [row["position"] for row in rw.rows()]
    assert positions == sorted(positions)
    assert positions[names.index("looker")] == position
    net = Net()
    net.hybridize(passes="fast_run,looker")
    x = mx.nd.ones((2,))
    x.attach_grad()
    with mx.autograd.record():
        net(x)
    assert len(sizes) == (2 if graph == "parts" else 1)


def test_a_position_cuts_the_pipeline_off() -> None:
    log: list[str] = []
    rw.global_(name="late", position=45)(lambda g: log.append("late"))
    net = Net()
    net.hybridize(passes="fast_run,<=44")
    run_net(net)
    assert log == []
    net.hybridize(passes=rw.Query(position_cutoff=45))
    run_net(net)
    assert log == ["late"]


def test_a_stage_takes_a_query_of_its_own() -> None:
    relu_becomes_abs(db="canonicalize")
    net = Net()
    net.hybridize(passes="fast_run,canonicalize:-relu_to_abs,canonicalize_joint:-relu_to_abs")
    assert run_net(net) == [1, 2]


def test_scopes_choose_passes_for_graphs_compiled_inside() -> None:
    relu_becomes_abs(db="canonicalize")
    net = Net()
    net.hybridize()
    with rw.scope(exclude=["relu_to_abs"]):
        assert run_net(net) == [1, 2]
    assert run_net(net) == [1, 2]
    assert run_net(net, 3) == [2, 2, 3]
    with rw.scope("none"):
        net.hybridize()
        assert run_net(net) == [1, 2]
    with rw.scope(include=["none"]):
        net.hybridize(passes="fast_run")
        assert run_net(net) == [2, 2]
    with pytest.raises(mx.base.MXNetError, match="did you mean"):
        rw.scope(exclude=["relu_to_abss"])


def test_a_database_of_the_user_in_the_pipeline() -> None:
    db = rw.EquilibriumDB("my_rules")
    db.register(rw.OpSub("relu", "abs", name="to_abs"))
    rw.register(db, position=1.5)
    net = Net()
    net.hybridize()
    assert run_net(net) == [2, 2]
    net.hybridize(exclude=["my_rules"])
    assert run_net(net) == [1, 2]


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda: relu_becomes_abs(db="canonicalise"), ValueError, "canonicalize"),
        (lambda: relu_becomes_abs(position=-1), mx.base.MXNetError, "position"),
        (lambda: relu_becomes_abs(position=100), mx.base.MXNetError, "position"),
        (lambda: relu_becomes_abs(position=float("nan")), ValueError, "NaN"),
        (lambda: relu_becomes_abs(position=49, in_place=True), mx.base.MXNetError, "50 or more"),
        (lambda: relu_becomes_abs(db="canonicalize", in_place=True), mx.base.MXNetError, "50 or more"),
        (lambda: relu_becomes_abs(db="canonicalize", after=["fuse_elementwise"]), mx.base.MXNetError, "before"),
        (lambda: relu_becomes_abs(db="loops", phase="final"), mx.base.MXNetError, "sweeps"),
        (lambda: relu_becomes_abs(after=["merge"]), ValueError, "no database"),
        (lambda: rw.local(tracks=["reluu"], name="w")(x_times_y_over_y), mx.base.MXNetError, "relu"),
        (lambda: rw.local(traits=["linear"], name="w")(x_times_y_over_y), ValueError, "pointwise"),
        (lambda: rw.local(tracks=[3], name="w")(x_times_y_over_y), TypeError, "names"),
        (lambda: rw.local(tracks=["relu"])("no function"), TypeError, "decorator"),
        (lambda: rw.register(rw.OpSub("relu", "abs")), ValueError, "has no position"),
        (lambda: rw.unregister("merge"), mx.base.MXNetError, "library"),
        (lambda: rw.unregister("nobody"), mx.base.MXNetError, "nobody"),
        (lambda: rw.register(rw.OpSub("relu", "abs", name="merge"), db="canonicalize"), mx.base.MXNetError, "taken"),
        (lambda: rw.register(rw.OpSub("relu", "abs", name="fusion"), db="canonicalize"), mx.base.MXNetError, "taken"),
        (lambda: rw.Query(include="fast_run"), TypeError, "lists"),
        (lambda: rw.Topo("rule"), TypeError, "drives rules"),
    ],
)  # fmt: skip
def test_wrong_registrations_are_errors_and_leave_the_pipeline_as_it_was(wrong, error, text) -> None:
    before = [row["name"] for row in rw.rows()]
    with pytest.raises(error, match=text):
        wrong()
    assert [row["name"] for row in rw.rows()] == before


def test_reports_count_the_work_of_rules() -> None:
    graph = graph_of(mx.sym.relu(mx.sym.relu(mx.sym.var("x"))) + 1.0)
    report = rw.Walk([relu_becomes_abs(), rw.OpSub("sin", "cos", name="idle")]).apply(graph)
    (line, idle) = report.lines
    assert (line["name"], line["tried"], line["fired"], line["made"], line["dropped"]) == ("relu_to_abs", 2, 2, 2, 2)
    assert idle["tried"] == idle["fired"] == 0
    assert np.isfinite(line["microseconds"])


def test_rules_registered_while_others_compile_do_no_harm() -> None:
    import threading

    net = Net()
    net.hybridize()
    stop = threading.Event()

    def register_again() -> None:
        while not stop.is_set():
            rw.register(relu_becomes_abs(tags=["never"]), db="canonicalize")
            rw.unregister("relu_to_abs")

    other = threading.Thread(target=register_again)
    other.start()
    try:
        for size in range(2, 60):
            assert run_net(net, size)[0] == 1
    finally:
        stop.set()
        other.join()
