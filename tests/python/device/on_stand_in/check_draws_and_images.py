"""Draws, images, boxes, triangles and bytes on gpu(0), larger than the samples of the registry: the CPU's values."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors

RNG = np.random.default_rng(5)


def results(name: str, arrays: list[np.ndarray], attrs: dict[str, Any], ctx: mx.Context) -> list[np.ndarray]:
    mx.random.seed(11)
    given = [mx.nd.array(value, dtype=value.dtype, ctx=ctx) for value in arrays]
    function = getattr(mx.nd, name, None) or getattr(mx.nd._internal, name)
    out = function(*given, **attrs if given else {**attrs, "ctx": str(ctx)})
    outputs = list(out) if isinstance(out, (list, tuple)) else [out]
    assert all(array.context == ctx for array in outputs)
    return [array.asnumpy() for array in outputs]


def check_same_bits(name: str, arrays: list[np.ndarray], **attrs: Any) -> None:
    pairs = zip(results(name, arrays, attrs, mx.gpu(0)), results(name, arrays, attrs, mx.cpu()), strict=True)
    for on_gpu, on_cpu in pairs:
        np.testing.assert_array_equal(on_gpu, on_cpu)


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("_random_gamma", {"alpha": 0.3, "beta": 2.0}),
        ("_random_poisson", {"lam": 3.5}),
        ("_random_poisson", {"lam": 60.0}),
        ("_random_negative_binomial", {"k": 4, "p": 0.3}),
        ("_random_generalized_negative_binomial", {"mu": 30.0, "alpha": 0.2}),
        ("_random_randint", {"low": -(2**62), "high": 2**62 + 5, "dtype": "int64"}),
        ("_random_randint", {"low": 3, "high": 4}),
    ],
)
def test_draws(name: str, attrs: dict[str, Any]) -> None:
    check_same_bits(name, [], shape=(7, 91), **attrs)


def test_draws_for_arrays_of_parameters() -> None:
    lam = np.array([0.0, 0.5, 9.9, 10.0, 200.0], dtype="float32")
    check_same_bits("_sample_poisson", [lam], shape=(40,), dtype="float64")
    check_same_bits("_sample_multinomial", [np.array([[0, 2, 0, 1], [0, 0, 0, 0]], dtype="float32")], shape=(50,))


def test_classes_without_repetition_into_given_arrays() -> None:
    drawn = []
    for ctx in (mx.gpu(0), mx.cpu()):
        out = [mx.nd.zeros(shape, dtype="int64", ctx=ctx) for shape in ((3, 20), (3,))]
        mx.random.seed(3)
        mx.nd._internal._sample_unique_zipfian(range_max=40, shape=(3, 20), out=out)
        drawn.append([array.asnumpy() for array in out])
    for on_gpu, on_cpu in zip(*drawn, strict=True):
        np.testing.assert_array_equal(on_gpu, on_cpu)


def test_orders_and_choices() -> None:
    check_same_bits("_shuffle", [np.arange(300, dtype="int64").reshape(100, 3)])
    weights = np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0], dtype="float32")
    check_same_bits("_npi_choice", [weights], a=6, size=(200,), weighted=True)
    check_same_bits("_npi_choice", [weights], a=6, size=(3,), weighted=True, replace=False)
    check_same_bits("_npi_multinomial", [weights], n=1000, size=(9,))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int32"])
@pytest.mark.parametrize("channels", [1, 3])
def test_colors_of_an_image(dtype: str, channels: int) -> None:
    image = RNG.integers(0, 256, (23, 31, channels)).astype(dtype)
    for name in ("brightness", "contrast", "saturation", "hue"):
        check_same_bits(f"_image_random_{name}", [image], min_factor=0.2, max_factor=1.9)
    check_same_bits("_image_random_color_jitter", [image], brightness=0.4, contrast=0.4, saturation=0.4, hue=0.2)
    check_same_bits("_image_random_lighting", [image], alpha_std=0.5)


@pytest.mark.parametrize("interp", range(5))
def test_resized_bytes(interp: int) -> None:
    image = RNG.integers(0, 256, (2, 23, 31, 3)).astype("uint8")
    for size in ((17, 40), (31, 11), (62, 46)):
        check_same_bits("_image_resize", [image], size=size, interp=interp)


def test_flips_follow_the_key() -> None:
    image = RNG.integers(0, 256, (5, 6, 3)).astype("uint8")
    for seed in range(4):
        mx.random.seed(seed)
        on_gpu = mx.nd.image.random_flip_left_right(mx.nd.array(image, dtype="uint8", ctx=mx.gpu(0)))
        mx.random.seed(seed)
        on_cpu = mx.nd.image.random_flip_left_right(mx.nd.array(image, dtype="uint8"))
        np.testing.assert_array_equal(on_gpu.asnumpy(), on_cpu.asnumpy())


def test_a_match_out_of_range_is_an_error() -> None:
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 2, 2]]], dtype="float32")
    four = np.ones(4, dtype="float32")
    arrays = [np.array([[1, 1]], dtype="float32"), np.array([[0, 7]], dtype="float32"), boxes, boxes, four, four]
    with pytest.raises(errors.IndexError, match="7"):
        results("_contrib_box_encode", arrays, {}, mx.gpu(0))
    arrays[0][0, 1] = -1  # not positive: its match is not read
    check_same_bits("_contrib_box_encode", arrays)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("rightside", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_triangular_systems(*, transpose: bool, rightside: bool, lower: bool) -> None:
    a, b = RNG.uniform(0.5, 1, (3, 9, 9)) + 9 * np.eye(9), RNG.uniform(-1, 1, (3, 9, 9))
    attrs = {"transpose": transpose, "rightside": rightside, "lower": lower, "alpha": 1.5}
    for name in ("_linalg_trsm", "_linalg_trmm"):
        on_gpu, on_cpu = (results(name, [a, b], attrs, ctx)[0] for ctx in (mx.gpu(0), mx.cpu()))
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("offset", [-3, 0, 2])
def test_parts_of_matrices(offset: int) -> None:
    matrices = RNG.uniform(-1, 1, (4, 7, 7)).astype("float32")
    check_same_bits("_linalg_extracttrian", [matrices], offset=offset)
    check_same_bits("_linalg_maketrian", [RNG.uniform(-1, 1, (2, 15)).astype("float32")], offset=offset)
    check_same_bits("_linalg_extractdiag", [matrices], offset=offset)


def test_ranges_of_many_numbers() -> None:
    numbers = RNG.normal(0, 3, 20_000).astype("float32")
    numbers[77] = np.nan
    check_same_bits("_contrib_quantize_v2", [numbers])
    check_same_bits("_contrib_quantize_asym", [numbers])
    one = np.ones(1, dtype="float32")
    check_same_bits("_contrib_requantize", [RNG.integers(-(2**31), 2**31, 9000).astype("int32"), -one, one])
    check_same_bits("_contrib_quantize_v2", [RNG.integers(-128, 128, 99).astype("int8")])


def test_search_and_comparison() -> None:
    numbers = np.sort(RNG.integers(0, 40, 301)).astype("float32")
    numbers[-2:] = np.nan
    values = np.array([-1, 0, 7, 39, 50, np.nan], dtype="float32")
    for right in (False, True):
        check_same_bits("_npi_searchsorted", [numbers, values], right=right)
    other = numbers.copy()
    check_same_bits("_contrib_allclose", [numbers, other])
    check_same_bits("_contrib_allclose", [numbers, other], equal_nan=False)
    other[200] += 1
    check_same_bits("_contrib_allclose", [numbers, other])
