"""Unsuitable inputs and parameters give a result or an error of the library; never a crash or another exception."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core
from sweep import OPS, Use

SHAPES = [(), (1,), (0,), (2, 3), (3, 0, 2), (2, 2, 2), (1, 5, 1, 2), (1, 1, 3, 4, 5)]
VALUES: dict[str, list[Any]] = {
    "tuple": [(), (0,), (-1,), (0, 0), (-1, -1), (7,), (3, 2, 1), (1, 1, 1, 1, 1), (-7, 3)],
    "int": [-1, 0, 1, 2, -7, 60],
    "float": [0, -1, 1e30, float("nan"), float("inf")],
    "bool": [True, False],
}


def loadable(name: str) -> bool:
    op = OPS[name]
    return not op["subgraphs"] and (not op["internal"] or name.startswith("_advanced_index"))


def array(values: np.ndarray) -> Any:
    return mx.nd.array(values, dtype=values.dtype)


def calls(use: Use) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Yields (description of the fault, inputs, attributes)."""
    dtypes = use.described["dtypes"]
    base = [array(values) for values in use.inputs("float32" if "float32" in dtypes else dtypes[0])]
    for i, good in enumerate(base):
        others = [array(np.full(shape, 1.5).astype(good.dtype)) for shape in SHAPES]
        others += [good.astype(dtype) for dtype in ("int32", "float64", "uint8", "bool", "float16")]
        others += [good * 0 + extreme for extreme in (100, -100)]
        for other in others:
            yield f"input {i}: {other.shape} {other.dtype}", [*base[:i], other, *base[i + 1 :]], use.attrs
    yield "an input less", base[:-1], use.attrs
    yield "an input more", [*base, *base[:1]], use.attrs
    for field in use.described["fields"]:
        kind = next((key for key in ("tuple", "int", "float", "bool") if key in field["kind"]), "")
        for value in VALUES.get(kind, field["choices"]):
            yield f"{field['name']}={value}", base, {**use.attrs, field["name"]: value}


@pytest.mark.parametrize("name", [name for name in OPS if loadable(name)])
def test_a_result_or_an_error(name: str):
    run = _core.op_function(name, name, "hybridnet.ndarray")
    with mx.util.np_shape(True):
        for index in range(min(len(OPS[name]["samples"]), 2)):
            use = Use(name, index)
            for what, inputs, attrs in calls(use):
                named = {} if use.described["variadic"] else dict(zip(use.use["inputs"], inputs))
                try:
                    results = run(*(() if named else inputs), **named, **attrs)
                    for result in results if isinstance(results, (list, tuple)) else [results]:
                        result.asnumpy()
                except mx.MXNetError:
                    continue
                except Exception as foreign:
                    raise AssertionError(f"{use}, {what}: {foreign!r}") from foreign


@pytest.mark.parametrize("shape", [(2**62,), (0, 2**62), (2**40, 2**40), (2**31, 0, 2**31)])
def test_an_impossible_shape_is_an_error_before_memory_is_asked_for(shape: tuple[int, ...]):
    with mx.util.np_shape(True), pytest.raises(mx.MXNetError, match=r"2\*\*56"):
        mx.nd.zeros(shape).asnumpy()


def test_an_empty_array_may_have_large_other_sizes():
    with mx.util.np_shape(True):
        empty = mx.nd.zeros((0, 2**50))
        assert empty.asnumpy().shape == (0, 2**50)
        assert mx.nd.sort(mx.nd.zeros((2**50, 0))).asnumpy().shape == (2**50, 0)


@pytest.mark.parametrize(
    "op, name",
    [("ROIAlign", "sample_ratio"), ("RROIAlign", "sampling_ratio"), ("DeformablePSROIPooling", "sample_per_part")],
)
def test_points_per_bin_are_bounded(op: str, name: str):
    attrs = {
        "ROIAlign": {"pooled_size": (2, 2), "spatial_scale": 1.0},
        "RROIAlign": {"pooled_size": (2, 2), "spatial_scale": 1.0},
        "DeformablePSROIPooling": {
            "spatial_scale": 1.0,
            "output_dim": 1,
            "group_size": 1,
            "pooled_size": 2,
            "no_trans": True,
        },
    }[op]
    regions = mx.nd.array([[0, 0, 0, 3, 3, 0][: 6 if op == "RROIAlign" else 5]])
    with pytest.raises(mx.MXNetError, match=name):
        getattr(mx.nd.contrib, op)(mx.nd.ones((1, 1, 4, 4)), regions, **{**attrs, name: 10**9})


@pytest.mark.parametrize("op", ["ROIAlign", "RROIAlign"])
@pytest.mark.parametrize("side", [1e5, 1e9, 1e30, float("inf"), float("nan")])
def test_regions_of_any_size_take_bounded_time(op: str, side: float):
    regions = mx.nd.array([[0, 2, 2, side, side, 30] if op == "RROIAlign" else [0, 0, 0, side, side]])
    pooled = getattr(mx.nd.contrib, op)(mx.nd.ones((1, 1, 4, 4)), regions, pooled_size=(1, 1), spatial_scale=1.0)
    assert pooled.shape == (1, 1, 1, 1)
    pooled.wait_to_read()


def test_indices_beyond_the_tensor_wrap_around():
    flat = mx.nd.ravel_multi_index(mx.nd.array([[2**62], [2**62]], dtype="int64"), shape=(2**40, 2**40))
    assert flat.asnumpy().tolist() == [(2**62 * 2**40 + 2**62) % 2**64]
