"""ONNX's loops, branches, sequences and optional values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import hybridnet as mx  # noqa: E402
from hybridnet.errors import HybridNetError, UnsupportedError  # noqa: E402
from onnx_models import assert_as_onnxruntime, helper, model, node, run  # noqa: E402

FLOAT, INT, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def body(nodes: list[Any], inputs: str = "", outputs: str = "y", types: dict[str, int] | None = None) -> Any:
    """A graph inside of a node; `types` of its inputs that are no floats, which have no axes."""
    types = types or {}
    return helper.make_graph(
        nodes,
        "body",
        [
            helper.make_tensor_value_info(name, types.get(name, FLOAT), [] if name in types else None)
            for name in inputs.split()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs.split()],
    )


LOOP_TYPES = {"i": INT, "go": BOOL}


def floats(rng: Any, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def growing_loop(**given: Any) -> Any:
    """s <- s * w + i, whose rows are stacked."""
    steps = [
        node("Cast", "i", "number", to=FLOAT),
        node("Mul", "s w", "product"),
        node("Add", "product number", "after"),
        node("Sub", "after s", "row"),
    ]
    return body([*steps, *given.get("more", [node("Identity", "go", "on")])], "i go s", "on after row", LOOP_TYPES)


# --------------------------------------------------------------------------------------------------------------- loops
@pytest.mark.parametrize("hybridize", [False, True])
def test_a_loop_with_a_fixed_count_is_a_foreach_for_all_sizes(rng, hybridize):
    proto = model(
        [node("Loop", "count _ x", "y rows", body=growing_loop())],
        {"x": ("float32", ["N"])},
        "y rows",
        {"count": np.array(4), "w": floats(rng, 1)},
    )
    symbol, _, _ = mx.onnx.import_model(proto)
    assert '"_foreach"' in symbol.tojson()
    assert_as_onnxruntime(proto, *[[floats(rng, size)] for size in (3, 1, 7)], hybridize=hybridize)


def test_a_loop_counts_a_size_of_an_input(rng):
    proto = model(
        [
            node("Shape", "x", "shape"),
            node("Gather", "shape zero", "count"),
            node("Loop", "count _ x", "y rows", body=growing_loop()),
        ],
        {"x": ("float32", ["N"])},
        "y rows",
        {"zero": np.array(0), "w": floats(rng, 1)},
    )
    assert_as_onnxruntime(proto, *[[floats(rng, size)] for size in (3, 1, 7)])


def test_a_loop_counts_a_number_from_data_also_zero(rng):
    proto = model(
        [node("Loop", "count _ x", "y rows", body=growing_loop())],
        {"x": ("float32", ["N"]), "count": ("int64", [])},
        "y rows",
        {"w": floats(rng, 1)},
    )
    assert_as_onnxruntime(proto, [floats(rng, 3), np.array(5)], [floats(rng, 2), np.array(1)])
    start = floats(rng, 3)
    last, rows = run(mx.onnx.import_to_gluon(proto), [start, np.array(0)])
    assert (last == start).all()
    assert rows.shape == (0, 3)


@pytest.mark.parametrize("count", [None, 3])
def test_a_loop_with_a_condition_ends_when_it_fails(rng, count):
    condition = [node("ReduceSum", "after", "sum", keepdims=0), node("Less", "sum limit", "on")]
    proto = model(
        [node("Loop", "count start x" if count else "_ start x", "y rows", body=growing_loop(more=condition))],
        {"x": ("float32", ["N"])},
        "y rows",
        {"count": np.array(3), "start": np.array(True), "limit": np.float32(40), "w": np.float32([1.5])},
    )
    assert_as_onnxruntime(proto, *[[abs(floats(rng, size))] for size in (3, 1, 7)])


def test_a_carried_value_may_grow(rng):
    steps = [node("Concat", "s s", "after", axis=0), node("ReduceSum", "s", "row", keepdims=0)]
    graph = body([*steps, node("Identity", "go", "on")], "i go s", "on after row", LOOP_TYPES)
    proto = model(
        [node("Loop", "count _ x", "y rows", body=graph)],
        {"x": ("float32", ["N"])},
        "y rows",
        {"count": np.array(3)},
    )
    assert_as_onnxruntime(proto, *[[floats(rng, size)] for size in (3, 1)])


def test_values_that_a_loop_passes_on_stay_constants(rng):
    steps = [node("MatMul", "s weight_in", "after"), node("Identity", "weight_in", "weight_out")]
    graph = body([*steps, node("Identity", "go", "on")], "i go s weight_in", "on after weight_out", LOOP_TYPES)
    proto = model(
        [node("Loop", "count _ x weight", "y _", body=graph)],
        {"x": ("float32", ["N", 4])},
        constants={"count": np.array(3), "weight": floats(rng, 4, 4)},
    )
    symbol, _, _ = mx.onnx.import_model(proto)
    assert '"FullyConnected"' in symbol.tojson()
    assert_as_onnxruntime(proto, *[[floats(rng, size, 4)] for size in (3, 1)])


@pytest.mark.parametrize("first, length", [(0, 1), (1, 2)])
def test_a_slice_at_the_number_of_the_iteration_does_not_cut_the_graph(rng, first, length):
    steps = [
        node("Add", "i begin", "low"),
        node("Add", "low length", "high"),
        node("Unsqueeze", "low zero", "starts"),
        node("Unsqueeze", "high zero", "ends"),
        node("Slice", "x starts ends one", "window"),
        node("ReduceSum", "window one", "sum", keepdims=0),
        node("Add", "s sum", "after"),
    ]
    graph = body([*steps, node("Identity", "go", "on")], "i go s", "on after window", LOOP_TYPES)
    constants = {"begin": first, "length": length, "zero": [0], "one": [1], "count": 3}
    proto = model(
        [node("Loop", "count _ s0", "y rows", body=graph)],
        {"x": ("float32", [3, "N"]), "s0": ("float32", [3])},
        "y rows",
        {name: np.array(value) for name, value in constants.items()},
    )
    symbol, _, _ = mx.onnx.import_model(proto)
    assert "_with_values" not in symbol.tojson()
    assert_as_onnxruntime(proto, *[[floats(rng, 3, size), floats(rng, 3)] for size in (5, 8)])


def test_a_variable_that_a_loop_sets_first_may_have_another_shape_before_it(rng):
    steps = [node("Add", "s w", "after"), node("Mul", "after after", "unset_after")]
    graph = body([*steps, node("Identity", "go", "on")], "i go s unset", "on after unset_after", LOOP_TYPES)
    proto = model(
        [node("Loop", "count _ x number", "y last", body=graph)],
        {"x": ("float32", ["N", 2])},
        "y last",
        {"count": np.array(3), "number": np.float32(0), "w": floats(rng, 2)},
    )
    assert_as_onnxruntime(proto, *[[floats(rng, size, 2)] for size in (3, 1)])


def test_a_loop_without_an_end_is_wrong(rng):
    proto = model(
        [node("Loop", "_ _ x", "y rows", body=growing_loop())], {"x": ("float32", [2])}, "y rows", {"w": [1.0]}
    )
    with pytest.raises(ValueError, match="has no end"):
        mx.onnx.import_to_gluon(proto)


# --------------------------------------------------------------------------------------------------- branches, nesting
def nested_model(rng: Any) -> Any:
    """If in Loop in If, with captured weights on each level."""
    then = body([node("Mul", "s w", "a")], outputs="a")
    otherwise = body([node("Sub", "s b", "c")], outputs="c")
    steps = [
        node("ReduceSum", "s", "sum", keepdims=0),
        node("Less", "sum limit", "small"),
        node("If", "small", "after", then_branch=then, else_branch=otherwise),
        node("Identity", "go", "on"),
    ]
    loop = body(
        [
            node("Mul", "x w", "x2"),
            node("Loop", "count _ x2", "y1", body=body(steps, "i go s", "on after", LOOP_TYPES)),
        ],
        outputs="y1",
    )
    return model(
        [
            node("ReduceSum", "x", "total", keepdims=0),
            node("Less", "total ten", "few"),
            node("If", "few", "y", then_branch=loop, else_branch=body([node("Add", "x w", "y2")], outputs="y2")),
        ],
        {"x": ("float32", ["N"])},
        constants={
            "w": np.float32([1.5]),
            "b": np.float32([0.7]),
            "limit": np.float32(4),
            "ten": np.float32(10),
            "count": np.array(5),
        },
    )


def test_branches_in_loops_in_branches(rng):
    assert_as_onnxruntime(nested_model(rng), *[[rng.random(size).astype("float32")] for size in (3, 6, 40)])


def test_a_loop_with_branches_has_gradients(rng):
    net = mx.onnx.import_to_gluon(nested_model(rng))
    x = rng.random(4).astype("float32")
    data = mx.nd.array(x)
    data.attach_grad()
    with mx.autograd.record():
        loss = (net(data) ** 2).sum()
    loss.backward()

    def at(values: np.ndarray) -> float:
        return float((run(net, [values])[0].astype("float64") ** 2).sum())

    step = 1e-2
    for index in range(4):
        offset = step * np.eye(4, dtype="float32")[index]
        slope = (at(x + offset) - at(x - offset)) / (2 * step)
        assert abs(slope - data.grad.asnumpy()[index]) < 1e-3 * abs(slope) + 1e-3


def test_weights_of_a_loop_learn_as_in_torch(rng):
    torch = pytest.importorskip("torch")
    weight, x = floats(rng, 3, 3), floats(rng, 2, 3)
    graph = body(
        [node("MatMul", "s weight", "p"), node("Tanh", "p", "after"), node("Identity", "go", "on")],
        "i go s",
        "on after",
        LOOP_TYPES,
    )
    proto = model(
        [node("Loop", "count _ x", "y", body=graph)],
        {"x": ("float32", ["N", 3])},
        constants={"count": np.array(4), "weight": weight},
    )
    net = mx.onnx.import_to_gluon(proto)
    with mx.autograd.record():
        loss = net(mx.nd.array(x)).sum()
    loss.backward()
    (parameter,) = [p for p in net.collect_params().values() if p.grad_req != "null"]
    known = torch.tensor(weight, requires_grad=True)
    state = torch.tensor(x)
    for _ in range(4):
        state = torch.tanh(state @ known)
    state.sum().backward()
    wanted = known.grad.numpy()
    made = parameter.grad().asnumpy()
    np.testing.assert_allclose(
        made, wanted.T if np.allclose(parameter.data().asnumpy(), weight.T) else wanted, rtol=1e-4, atol=1e-5
    )


def test_a_condition_that_is_known_chooses_while_the_file_is_imported(rng):
    branches = {
        "then_branch": body([node("Neg", "x", "a")], outputs="a"),
        "else_branch": body([node("Exp", "x", "b")], outputs="b"),
    }
    proto = model([node("If", "yes", "y", **branches)], {"x": ("float32", ["N"])}, constants={"yes": np.array(True)})
    symbol, _, _ = mx.onnx.import_model(proto)
    assert "_cond" not in symbol.tojson()
    assert_as_onnxruntime(proto, [floats(rng, 3)])


def test_branches_may_have_different_sizes(rng):
    branches = {
        "then_branch": body([node("Concat", "x x", "a", axis=0)], outputs="a"),
        "else_branch": body([node("Neg", "x", "b")], outputs="b"),
    }
    proto = model(
        [node("ReduceSum", "x", "sum", keepdims=0), node("Less", "sum zero", "c"), node("If", "c", "y", **branches)],
        {"x": ("float32", ["N"])},
        constants={"zero": np.float32(0)},
    )
    x = abs(floats(rng, 4))
    assert_as_onnxruntime(proto, [x], [-x], [-x[:2]])


def test_a_branch_for_a_size_that_was_not_tried_is_an_error_when_it_is_met(rng):
    branches = {
        "then_branch": body([node("Squeeze", "x one", "a")], outputs="a"),
        "else_branch": body([node("Identity", "x", "b")], outputs="b"),
    }
    proto = model(
        [
            node("Shape", "x", "shape"),
            node("Gather", "shape one", "width"),
            node("Equal", "width one", "c"),
            node("If", "c", "z", **branches),
            node("Neg", "z", "y"),
        ],
        {"x": ("float32", ["N", "M"])},
        constants={"one": np.array([1])},
    )
    assert_as_onnxruntime(proto, [floats(rng, 3, 4)])
    with pytest.raises(HybridNetError, match="then_branch of ONNX node 'z' does not fit"):
        run(mx.onnx.import_to_gluon(proto), [floats(rng, 3, 1)])


def test_a_number_of_a_branch_that_other_sizes_do_not_choose_is_an_error_too(rng):
    branches = {
        "then_branch": body([node("Mul", "x x", "a")], outputs="a"),
        "else_branch": body([node("ReduceSum", "x", "b", keepdims=0)], outputs="b"),
    }
    proto = model(
        [
            node("Shape", "x", "shape"), node("Gather", "shape zero", "n"), node("Less", "n four", "c"),
            node("If", "c", "y", **branches),
        ],
        {"x": ("float32", ["N", 3])},
        constants={"zero": np.array(0), "four": np.array(4)},
    )  # fmt: skip
    net = mx.onnx.import_to_gluon(proto)
    x = floats(rng, 9, 3)
    np.testing.assert_allclose(run(net, [x])[0], x.sum(), rtol=1e-5)
    with pytest.raises(HybridNetError, match="then_branch of ONNX node 'y' does not fit"):
        run(net, [floats(rng, 2, 3)])


def test_a_branch_that_no_size_fits_together_with_the_other_is_an_error_when_data_choose_it(rng):
    branches = {
        "then_branch": body([node("Add", "x eight", "a")], outputs="a"),
        "else_branch": body([node("Add", "x five", "b")], outputs="b"),
    }
    constants = {"eight": floats(rng, 8), "five": floats(rng, 5)}
    proto = model(
        [node("If", "rate", "y", **branches)], {"x": ("float32", ["N", 8]), "rate": ("bool", [])}, constants=constants
    )
    net, x = mx.onnx.import_to_gluon(proto), floats(rng, 2, 8)
    np.testing.assert_allclose(run(net, [x, np.array(True)])[0], x + constants["eight"], rtol=1e-6)
    with pytest.raises(ValueError, match=r"else_branch .* does not fit the sizes"):
        run(net, [x, np.array(False)])


# ---------------------------------------------------------------------------------------------------------------- scan
@pytest.mark.parametrize("directions, out_directions", [*itertools.product([[0, 0], [0, 1], [1, 1]], [[0, 1], [1, 0]])])
@pytest.mark.parametrize("axis, out_axis", [(0, 0), (1, 1), (-1, 0)])
def test_a_scan_runs_along_any_axis_in_both_directions(rng, directions, out_directions, axis, out_axis):
    steps = [
        node("Mul", "s k", "t"),
        node("Add", "t a", "u"),
        node("Add", "u b", "after"),
        node("Sub", "after a", "r1"),
    ]
    graph = body([*steps, node("Mul", "r1 after", "r2")], "s a b", "after r1 r2")
    attributes = {
        "scan_input_directions": directions,
        "scan_output_directions": out_directions,
        "scan_input_axes": [axis, axis],
        "scan_output_axes": [out_axis, 0],
    }
    shape = ["T", 3] if axis == 0 else [3, "T"]
    proto = model(
        [node("Scan", "s0 x z", "last q1 q2", body=graph, num_scan_inputs=2, **attributes)],
        {"s0": ("float32", [3]), "x": ("float32", shape), "z": ("float32", shape)},
        "last q1 q2",
        {"k": np.float32([0.5])},
    )

    def sequence(length: int) -> np.ndarray:
        return floats(rng, length, 3) if axis == 0 else floats(rng, 3, length)

    assert_as_onnxruntime(proto, *[[floats(rng, 3), sequence(size), sequence(size)] for size in (4, 1, 6)])


@pytest.mark.parametrize("backwards", [0, 1])
def test_scan_of_opset_8_ends_each_example_at_its_length(rng, backwards):
    graph = body([node("Add", "s a", "after"), node("Mul", "after a", "row")], "s a", "after row")
    proto = model(
        [node("Scan", "lengths s0 x", "last rows", body=graph, num_scan_inputs=1, directions=[backwards])],
        {"lengths": ("int64", ["B"]), "s0": ("float32", ["B", 3]), "x": ("float32", ["B", "T", 3])},
        "last rows",
        opset=8,
    )
    proto.ir_version = 4
    feeds = [[np.array([2, size]), floats(rng, 2, 3), floats(rng, 2, size, 3)] for size in (4, 3)]
    assert_as_onnxruntime(proto, *feeds)


# ----------------------------------------------------------------------------------------------------------- sequences
def test_sequences_of_known_length_become_tensors(rng):
    proto = model(
        [
            node("SplitToSequence", "x sizes", "parts", axis=0),
            node("SequenceErase", "parts one", "rest"),
            node("Neg", "x", "negative"),
            node("SequenceInsert", "rest negative zero", "more"),
            node("SequenceAt", "more last", "a"),
            node("ConcatFromSequence", "more", "b", axis=0),
            node("SequenceLength", "more", "c"),
        ],
        {"x": ("float32", [6, "N"])},
        "a b c",
        {"sizes": np.array([1, 3, 2]), "one": np.array(1), "zero": np.array(0), "last": np.array(-1)},
        opset=17,
    )
    assert_as_onnxruntime(proto, [floats(rng, 6, 4)], [floats(rng, 6, 1)])


def test_a_loop_that_carries_a_sequence_is_unrolled(rng):
    values = helper.make_tensor_sequence_value_info
    graph = helper.make_graph(
        [
            node("Cast", "i", "number", to=FLOAT),
            node("Mul", "x number", "row"),
            node("SequenceInsert", "before row", "after"),
            node("Identity", "go", "on"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", INT, []),
            helper.make_tensor_value_info("go", BOOL, []),
            values("before", FLOAT, None),
        ],
        [helper.make_tensor_value_info("on", BOOL, []), values("after", FLOAT, None)],
    )

    def proto(constants: dict[str, Any], inputs: dict[str, Any]) -> Any:
        return model(
            [
                node("SequenceEmpty", "", "none", dtype=FLOAT),
                node("Loop", "count _ none", "rows", body=graph),
                node("ConcatFromSequence", "rows", "y", axis=0, new_axis=1),
            ],
            {"x": ("float32", [2, "N"]), **inputs},
            constants=constants,
            opset=17,
        )

    assert_as_onnxruntime(proto({"count": np.array(4)}, {}), [floats(rng, 2, 3)], [floats(rng, 2, 1)])
    with pytest.raises(UnsupportedError, match="sequence"):
        mx.onnx.import_to_gluon(proto({}, {"count": ("int64", [])}))


def test_the_place_in_a_sequence_must_be_known(rng):
    proto = model(
        [node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s k", "y")],
        {"x": ("float32", [2]), "k": ("int64", [])},
        opset=17,
    )
    with pytest.raises(UnsupportedError, match="position in a sequence is computed"):
        mx.onnx.import_to_gluon(proto)


def test_optional_values_are_known_while_the_file_is_imported(rng):
    proto = model(
        [
            node("Optional", "x", "o"),
            node("OptionalHasElement", "o", "has"),
            node("OptionalGetElement", "o", "value"),
            node("Cast", "has", "one", to=FLOAT),
            node("Mul", "value one", "y"),
        ],
        {"x": ("float32", ["N"])},
        opset=17,
    )
    assert_as_onnxruntime(proto, [floats(rng, 3)])
