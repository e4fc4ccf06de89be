"""Sizes that files leave open: one import serves them all, or a run with another size is an error."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.errors import ShapeError
from hybridnet.errors import ValueError as HybridNetValueError
from hybridnet.onnx import import_to_gluon
from onnx_models import assert_as_onnxruntime, expected, helper, model, node, run

I64 = np.int64


def test_that_a_length_that_is_equal_for_small_sizes_stays_open(rng: np.random.Generator) -> None:
    """max(samples // 1000, 1) rows of 1000 samples."""
    nodes = [
        node("Shape", "x", "size"),
        node("Div", "size thousand", "quotient"),
        node("Max", "quotient one", "rows"),
        node("Mul", "rows thousand", "whole"),
        node("Sub", "whole size", "rest"),
        node("Max", "rest zero", "more"),
        node("Concat", "zero more", "widths", axis=0),
        node("Pad", "x widths", "padded"),
        node("Slice", "padded zero whole", "kept"),
        node("Concat", "rows thousand", "shape", axis=0),
        node("Reshape", "kept shape", "table"),
        node("ReduceSum", "table axes", "y", keepdims=0),
    ]
    numbers = {"thousand": [1000], "one": [1], "zero": [0], "axes": [1]}
    proto = model(
        nodes, {"x": ("float32", ["n"])}, constants={key: np.array(item, I64) for key, item in numbers.items()}
    )
    assert_as_onnxruntime(proto, *[(rng.integers(0, 9, size).astype("float32"),) for size in (7, 1000, 1999, 3500)])


def test_that_an_open_size_of_1_which_squeeze_would_drop_is_an_error() -> None:
    proto = model([node("Squeeze", "x")], {"x": ("float32", ["n", 1, 3])})
    net = import_to_gluon(proto)
    assert run(net, [np.ones((2, 1, 3), "float32")])[0].shape == (2, 3)
    with pytest.raises(HybridNetValueError, match=r"Squeeze, which makes 'y' drops all axes of size 1.*\[0\]"):
        run(net, [np.ones((1, 1, 3), "float32")])
    fixed = import_to_gluon(proto, input_shapes={"x": (1, 1, 3)})
    assert run(fixed, [np.ones((1, 1, 3), "float32")])[0].shape == (3,)


def test_that_the_declared_number_of_axes_of_an_output_chooses_the_sizes() -> None:
    """PyTorch writes a squeezed result for one example so."""
    proto = model([node("Squeeze", "x")], {"x": ("float32", ["n", 1, "m"])})
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, ["m"]))
    net = import_to_gluon(proto)
    for size in (4, 9):
        x = np.arange(size, dtype="float32").reshape(1, 1, size)
        np.testing.assert_array_equal(run(net, [x])[0], expected(proto, [x])[0], strict=True)
    with pytest.raises(ShapeError):
        run(net, [np.ones((2, 1, 4), "float32")])


def test_that_other_sizes_than_those_which_the_import_has_fixed_are_an_error() -> None:
    proto = model([node("Add", "x c")], {"x": ("float32", ["n"])}, constants={"c": np.ones(4, "f")})
    with pytest.raises(HybridNetValueError, match=r"sizes \[1\] on the axes \[0\].*input_shapes=\{'x': \(...\)\}"):
        run(import_to_gluon(proto), [np.ones(4, "float32")])
    fixed = import_to_gluon(proto, input_shapes={"x": (4,)})
    np.testing.assert_array_equal(run(fixed, [np.ones(4, "float32")])[0], np.full(4, 2, "float32"))


@pytest.mark.parametrize("sizes", [(2, 3, 4), (4, 2, 1), (1, 5, 7)], ids=str)
def test_that_elements_are_added_in_tensors_of_open_sizes(sizes: tuple[int, ...], rng: np.random.Generator) -> None:
    rows, columns, count = sizes
    inputs = {"x": ("float32", ["a", "b"]), "i": ("int64", ["a", "c"]), "u": ("float32", ["a", "c"])}
    proto = model([node("ScatterElements", "x i u", axis=1, reduction="add")], inputs)
    x, u = (rng.normal(size=size).astype("float32") for size in ((rows, columns), (rows, count)))
    assert_as_onnxruntime(proto, (x, rng.integers(-columns, columns, (rows, count)), u))
    with pytest.raises(HybridNetValueError, match="ScatterElements, which makes 'y': an index is outside"):
        run(import_to_gluon(proto), [x, np.full((rows, count), columns), u])


def test_that_slices_are_added_in_tensors_of_open_sizes(rng: np.random.Generator) -> None:
    inputs = {"x": ("float32", ["a", "b", 2]), "i": ("int64", ["n", 2]), "u": ("float32", ["n", 2])}
    proto = model([node("ScatterND", "x i u", reduction="add")], inputs)
    for a, b, count in ((2, 3, 5), (4, 1, 3)):
        places = np.stack([rng.integers(0, a, count), rng.integers(-b, b, count)], 1)
        x, u = (rng.normal(size=size).astype("float32") for size in ((a, b, 2), (count, 2)))
        assert_as_onnxruntime(proto, (x, places, u))


def test_that_ones_and_zeros_of_constant_nodes_are_not_trained() -> None:
    constants = [
        helper.make_node("Constant", [], [name], value=mx.onnx._package.onnx().numpy_helper.from_array(array))
        for name, array in (("w", np.array([1.5, 2.0], "f")), ("ones", np.ones(2, "f")))
    ]
    nodes = [*constants, node("Mul", "x w", "scaled"), node("Mul", "scaled ones", "more"), node("Mul", "more v", "y")]
    proto = model(nodes, {"x": ("float32", ["n", 2])}, constants={"v": np.ones(2, "f")})
    parameters = import_to_gluon(proto).collect_params()
    assert {name: parameter.grad_req for name, parameter in parameters.items()} == {
        "w": "write",
        "ones": "null",
        "v": "write",
    }
