"""Sorting, norms of rows, windows of images and losses on gpu(0), on sizes beyond those of the samples."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from both_devices import difference

RANDOM = np.random.default_rng(7)


def draw(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype("float32")


def draw_with_ties(*shape: int) -> np.ndarray:
    values = draw(*shape).round(1)
    values.flat[::17], values.flat[3::29], values.flat[5::31] = np.nan, -0.0, np.inf
    return values


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize(("shape", "axis"), [((3, 1000), -1), ((2, 300, 3), 1), ((1, 20000), 1), ((600, 2), 0)])
def test_order_is_stable_with_nan_last(shape: tuple[int, ...], axis: int, ascending: bool) -> None:
    values = draw_with_ties(*shape)
    attrs = {"axis": axis, "is_ascend": ascending}
    assert difference("sort", [values], **attrs) == 0.0
    assert difference("argsort", [values], dtype="int32", **attrs) == 0.0
    for kind in ("value", "indices", "both", "mask"):
        assert difference("topk", [values], k=7, ret_typ=kind, **attrs) == 0.0


@pytest.mark.parametrize(
    ("name", "shapes", "attrs"),
    [
        ("L2Normalization", [(3, 37, 11, 13)], {"mode": "instance"}),
        ("L2Normalization", [(3, 37, 11, 13)], {"mode": "channel"}),
        ("L2Normalization", [(3, 37, 11, 13)], {"mode": "spatial"}),
        ("GroupNorm", [(3, 36, 11, 13), (4,), (4,)], {"num_groups": 4}),
        ("InstanceNorm", [(3, 36, 11, 13), (36,), (36,)], {}),
        ("LRN", [(3, 36, 11, 13)], {"nsize": 5}),
        ("im2col", [(2, 3, 17, 19)], {"kernel": (3, 3), "stride": (2, 1), "pad": (1, 1), "dilate": (1, 2)}),
        ("col2im", [(2, 27, 135)], {"kernel": (3, 3), "stride": (2, 1), "pad": (1, 1), "output_size": (17, 15)}),
        ("Pad", [(2, 3, 7, 9)], {"mode": "edge", "pad_width": (0, 0, 0, 0, 3, 2, 1, 4)}),
        ("Pad", [(2, 3, 7, 9)], {"mode": "reflect", "pad_width": (0, 0, 0, 0, 3, 2, 1, 4)}),
        ("_backward_pad", [(2, 3, 12, 14)], {"mode": "edge", "pad_width": (0, 0, 0, 0, 3, 2, 1, 4)}),
        ("_backward_pad", [(2, 3, 12, 14)], {"mode": "reflect", "pad_width": (0, 0, 0, 0, 3, 2, 1, 4)}),
    ],
)
def test_rows_and_windows_have_the_cpu_s_values(name: str, shapes: list[Any], attrs: dict[str, Any]) -> None:
    assert difference(name, [draw(*shape) for shape in shapes], **attrs) <= 2e-7


@pytest.mark.parametrize("normalization", ["null", "batch", "valid"])
def test_the_gradient_of_softmax_output_ignores_and_counts_labels(normalization: str) -> None:
    labels = RANDOM.integers(-1, 12, 64).astype("float32")  # two of them are no classes
    attrs = {"normalization": normalization, "use_ignore": True, "ignore_label": -1, "smooth_alpha": 0.1}
    assert difference("_backward_SoftmaxOutput", [draw(64, 10), labels, draw(64, 10)], **attrs) == 0.0


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["SequenceMask", "SequenceLast", "SequenceReverse"])
def test_lengths_are_clamped_as_on_the_cpu(name: str) -> None:
    lengths = np.array([0, 3, 99, np.nan, 5.7], "float32")
    assert difference(name, [draw(9, 5, 3), lengths], use_sequence_length=True) == 0.0


def test_rows_are_rounded_to_the_grids_that_the_cpu_gives_them() -> None:
    rows, weight = draw(5, 700), RANDOM.integers(-127, 128, (3, 700)).astype("int8")
    rows[1], rows[2, 699], rows[3, 5] = np.abs(rows[1]), np.nan, np.inf
    scale = np.abs(draw(3))
    attrs = {"num_hidden": 3, "no_bias": True}
    assert difference("_contrib_dynamic_quantized_fully_connected", [rows, weight, scale], **attrs) < 2e-6


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 3, 0, 1]])
def test_rows_are_taken_in_the_memory_of_their_data(order: list[int]) -> None:
    values = draw(4, 300)
    x, places = mx.sym.var("x"), mx.sym.var("places")
    graph = mx.function([x, places], mx.sym.take(x * 2, places))
    taken = graph(mx.nd.array(values, ctx=mx.gpu(0)), mx.nd.array(order, ctx=mx.gpu(0)))
    np.testing.assert_array_equal(taken.asnumpy(), values[order] * 2)
