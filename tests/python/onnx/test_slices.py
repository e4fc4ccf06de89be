"""Slices of open axes, for sizes that are shorter than those that the import tries; and slices of bytes."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from onnx_models import assert_as_onnxruntime, model, node


def _sliced(*bounds: int, more: str = "", constants: dict[str, np.ndarray] | None = None) -> object:
    numbers = {name: np.int64([bound]) for name, bound in zip(("b", "e", "a", "s"), bounds, strict=True)}
    nodes = [node("Slice", "x b e a s", "z"), *(node(*each.split(":")) for each in more.split(";") if each)]
    return model(nodes, {"x": ("float32", ["N", 4])}, constants={**numbers, **(constants or {})})


@pytest.mark.parametrize("bounds", [(-7, -(2**31), 0, -2), (-3, -(2**31), 0, -1), (-1, -(2**31), 0, -1), (5, 0, 0, -2)])
def test_slices_with_a_negative_step_start_at_the_first_element_at_the_earliest(bounds: tuple[int, ...]) -> None:
    proto = _sliced(*bounds, more="Identity:z:y")
    assert_as_onnxruntime(proto, *[[np.random.rand(size, 4).astype("float32")] for size in (9, 2, 3, 7, 6, 1, 20)])


@pytest.mark.parametrize(
    "bounds", [(0, 3, 0, 1), (2, 7, 0, 2), (-4, 2**31 - 1, 0, 1), (-6, -3, 0, 1), (-6, 1, 0, 1), (2, 3, 0, 1)]
)
@pytest.mark.parametrize("more", ["Identity:z:y", "Shape:z:y", "Size:z:y", "Relu:z:r;Shape:r:h;ConstantOfShape:h:y"])
def test_slices_of_short_axes_and_their_sizes_are_those_of_the_run(bounds: tuple[int, ...], more: str) -> None:
    proto = _sliced(*bounds, more=more)
    assert_as_onnxruntime(proto, *[[np.random.rand(size, 4).astype("float32")] for size in (9, 1, 2, 3, 4, 5, 8)])


def test_slices_that_must_have_one_size_have_it_or_raise() -> None:
    proto = _sliced(0, 3, 0, 1, more="MatMul:w z:y", constants={"w": np.ones((2, 3), np.float32)})
    net = mx.onnx.import_to_gluon(proto)
    assert net(mx.nd.ones((5, 4))).asnumpy().tolist() == [[3.0] * 4] * 2
    with pytest.raises(mx.errors.HybridNetError):
        net(mx.nd.ones((2, 4))).asnumpy()


def test_broadcast_slices_have_the_size_of_the_import_or_raise() -> None:
    net = mx.onnx.import_to_gluon(_sliced(-6, -5, 0, 1, more="Add:w z:y", constants={"w": np.ones((5, 4), np.float32)}))
    assert net(mx.nd.ones((9, 4))).shape == (5, 4)
    with pytest.raises(mx.errors.HybridNetError):
        net(mx.nd.ones((3, 4))).asnumpy()


def test_a_slice_of_dequantized_bytes_moves_bytes() -> None:
    numbers = {"b": np.int64([1]), "e": np.int64([3]), "i": np.float32(0.1), "o": np.uint8(3)}
    nodes = [
        node("QuantizeLinear", "x i o", "q"),
        node("DequantizeLinear", "q i o", "d"),
        node("Slice", "d b e", "y"),
    ]
    proto = model(nodes, {"x": ("float32", ["N", 4])}, constants=numbers)
    assert_as_onnxruntime(proto, *[[np.random.rand(size, 4).astype("float32")] for size in (5, 2)])


def test_open_axes_that_fit_no_size_are_named_by_the_first_sizes_that_were_tried() -> None:
    """Later attempts take sizes as fixed; their errors would show numbers that are not in the file."""
    proto = model([node("MatMul", "x w", "y")], {"x": ("float32", ["N"])}, constants={"w": np.ones((7, 2), "f4")})
    with pytest.raises(mx.errors.ValueError, match="fits none of the sizes"):
        mx.onnx.import_model(proto)


def test_a_number_of_parts_that_differs_from_the_outputs_is_refused() -> None:
    proto = model([node("Split", "x", "y", num_outputs=2**40)], {"x": ("float32", [4])})
    with pytest.raises(mx.errors.ValueError, match="num_outputs is 1099511627776, and the node has 1 outputs"):
        mx.onnx.import_model(proto)
