"""In-place rules stand behind position 50, the marker: registering one below it is rejected.

No node of a graph writes over its inputs. The planner places results over values, so whatever rules do, a run writes
over no array of the caller and makes no two results one array: Theano's features Supervisor and NoAliasOut would have
nothing to refuse.
"""

from __future__ import annotations

import random

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import rewrite as rw


def test_a_rule_in_place_below_fifty_is_rejected() -> None:
    names = [row["name"] for row in rw.rows()]
    for place in ({"position": 49.0}, {"db": "fuse_chains"}):
        with pytest.raises(mx.base.MXNetError, match="50 or more"):
            rw.local(tracks=["relu"], name="over_its_input", in_place=True, **place)(lambda g, n: None)
    assert [row["name"] for row in rw.rows()] == names
    rw.local(tracks=["relu"], name="over_its_input", in_place=True, position=50.0)(lambda g, n: None)
    assert [row["name"] for row in rw.rows()][-1] == "over_its_input"


STEPS = (
    lambda a, b: a + b,
    lambda a, b: a * 1,  # removed: its readers read its operand
    lambda a, b: mx.sym.identity(a),
    lambda a, b: mx.sym.relu(a),
    lambda a, b: mx.sym.BlockGrad(mx.sym.tanh(a) * b),
    lambda a, b: a.reshape((3, 4)).reshape((4, 3)),
    lambda a, b: mx.sym.dot(a, b, transpose_b=True).slice_axis(axis=1, begin=0, end=3),
    lambda a, b: mx.sym.concat(a, b, dim=0).slice_axis(axis=0, begin=4, end=8),
)


def random_function(draw: random.Random) -> tuple[list[mx.sym.Symbol], list[mx.sym.Symbol]]:
    """Inputs, and results: inputs, views of inputs, and values that rules find to be equal."""
    inputs = [mx.sym.var(name) for name in "xy"]
    made = list(inputs)
    for _ in range(draw.randint(1, 8)):
        made.append(draw.choice(STEPS)(draw.choice(made), draw.choice(made)))
    results = draw.sample(made, draw.randint(1, min(5, len(made))))
    return inputs, results


@pytest.mark.parametrize("passes", ["fast_run", "none", "fast_run,-inplace"])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_run_writes_over_no_array_of_the_caller_and_results_lie_apart(passes: str, recorded: bool) -> None:
    @rw.local(tracks=["relu"], name="row46_over_its_input", in_place=True, position=50.0)
    def over_its_input(graph, node):
        """Rewrites relu(x) to a maximum, which a plan may place over x."""
        return graph.add("_maximum_scalar", node.inputs[0], scalar=0.0)

    for seed in range(25):
        draw = random.Random(seed)
        inputs, results = random_function(draw)
        function = mx.function(inputs, results, passes=passes)
        values = [np.random.RandomState(seed + k).randn(4, 3).astype("float32") for k in (0, 1)]
        given = [mx.nd.array(value) for value in values]
        for array in given if recorded else ():
            array.attach_grad()
        with mx.autograd.record() if recorded else mx.autograd.pause():
            outs = function(*given)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        mx.nd.waitall()
        memory = [np.from_dlpack(array.detach()) for array in (*given, *outs)]
        for i, one in enumerate(memory):
            assert not any(np.shares_memory(one, other) for other in memory[:i]), seed
        for value, array in zip(values, given, strict=True):
            np.testing.assert_array_equal(array.asnumpy(), value)


def test_a_run_overwrites_donated_memory() -> None:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    given = [mx.nd.ones((4, 3)) for _ in range(2)]
    places = [np.from_dlpack(array).ctypes.data for array in given]
    out = mx.function([mx.In(x, donate=True), y], mx.sym.tanh(x) * y)(*given)
    out.wait_to_read()
    assert np.from_dlpack(out).ctypes.data == places[0]
    np.testing.assert_array_equal(given[1].asnumpy(), 1)


def test_containers_of_in_place_rules_are_rejected_below_fifty_too() -> None:
    rule = rw.local(tracks=["relu"], name="row46_held", in_place=True)(lambda g, n: None)
    sequence = rw.SequenceDB("row46_sequence")
    sequence.register(rule, 1.0)
    group = rw.LocalGroupDB("row46_group")
    group.register(rule)
    around = rw.EquilibriumDB("row46_around")
    around.register(group)
    for holder in (sequence, group, around, rw.Topo([rule]), rw.Equilibrium([rule]), sequence.query()):
        with pytest.raises(mx.base.MXNetError, match="50 or more"):
            rw.register(holder, position=49.0)
    rw.register(sequence, position=50.0)
    rw.unregister(sequence)


def test_a_container_that_stands_below_fifty_takes_no_rule_in_place() -> None:
    rule = rw.local(tracks=["relu"], name="row46_late", in_place=True)(lambda g, n: None)
    group = rw.LocalGroupDB("row46_early")
    rw.register(group, position=20.5)
    try:
        with pytest.raises(ValueError, match="position of 50"):
            group.register(rule)
    finally:
        rw.unregister(group)
