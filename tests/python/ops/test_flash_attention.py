"""_contrib_flash_attention beyond its samples: tiles, masks without keys, the same bits on any number of cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, autograd
from hybridnet.errors import ShapeError
from references.attention import REFERENCES

# Batch, queries, keys, sizes of queries and of values. Few queries have a kernel of their own, in ranges of 512 keys.
FEW_QUERIES = [(2, 1, 300, 128, 16), (3, 3, 1100, 24, 40), (1, 4, 512, 5, 131), (2, 2, 7, 64, 64)]
SIZES = [(3, 130, 200, 64, 64), (1, 129, 65, 80, 33), *FEW_QUERIES, (2, 64, 64, 1, 3)]


def _operands(rng: np.random.Generator, sizes: tuple[int, ...], dtype: str = "float32") -> list[np.ndarray]:
    batch, queries, keys, size, values = sizes
    shapes = (batch, queries, size), (batch, keys, size), (batch, keys, values)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def _run(operands: list[np.ndarray], head: np.ndarray, **attrs: Any) -> list[np.ndarray]:
    """Returns the output, and the gradients of query, key and value."""
    arrays = [mx.nd.array(x, dtype=x.dtype) for x in operands]
    for array in arrays[:3]:
        array.attach_grad()
    with autograd.record():
        out = mx.nd.contrib.flash_attention(*arrays, **attrs)
    out.backward(mx.nd.array(head, dtype=head.dtype))
    return [out.asnumpy(), *(array.grad.asnumpy() for array in arrays[:3])]


def _reference(operands: list[np.ndarray], attrs: dict[str, str]) -> np.ndarray:
    wide = [x.astype("float64") if x.dtype.kind == "f" else x for x in operands]
    return REFERENCES["_contrib_flash_attention"](wide, attrs)[0]


@pytest.mark.parametrize("kind", ["none", "causal", "added", "kept", "lengths"])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 2e-5), ("float64", 1e-12)])
def test_outputs_and_gradients_agree_with_the_whole_matrix_of_weights(kind, sizes, dtype, rtol, rng):
    operands = _operands(rng, sizes, dtype)
    batch, queries, keys = sizes[:3]
    masks = {
        "added": rng.normal(size=(queries, keys)).astype(dtype),
        "kept": (rng.random((batch, 1, keys)) > 0.3).astype("uint8"),
        "lengths": rng.integers(0, keys + 1, (batch, queries)).astype("int64"),
    }
    attrs = {"mask_type": kind} if kind in masks else {"causal": kind == "causal"}
    if kind in masks:
        operands.append(masks[kind])
    text = {name: str(value) for name, value in attrs.items()}
    expected = _reference(operands, text)
    head = rng.normal(size=expected.shape).astype(dtype)
    out, *grads = _run(operands, head, **attrs)
    np.testing.assert_allclose(out, expected, rtol=rtol, atol=10 * rtol)
    step = 1e-5
    for i, grad in enumerate(grads):
        direction = rng.normal(size=grad.shape)
        ends = []
        for sign in (1, -1):
            moved = [x.astype("float64") if x.dtype.kind == "f" else x for x in operands]
            moved[i] = moved[i] + sign * step * direction
            ends.append((_reference(moved, text) * head).sum())
        slope = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(
            (grad * direction).sum(), slope, rtol=max(5 * rtol, 1e-6), atol=max(1e2 * rtol, 1e-6)
        )


@pytest.mark.parametrize("kind", ["added", "kept", "lengths"])
def test_a_query_without_keys_gives_zeros_and_no_gradient(kind, rng):
    operands = _operands(rng, (2, 70, 70, 8, 8))
    masks = {
        "added": np.zeros((2, 70, 70), "float32"),
        "kept": np.ones((2, 70, 70), "uint8"),
        "lengths": np.full((2, 70), 70, "int32"),
    }
    mask = masks[kind]
    mask[1, 65] = -np.inf if kind == "added" else 0
    out, query_grad, key_grad, value_grad = _run([*operands, mask], np.ones((2, 70, 8), "float32"), mask_type=kind)
    assert (out[1, 65] == 0).all() and (query_grad[1, 65] == 0).all()
    assert np.isfinite(key_grad).all() and np.isfinite(value_grad).all() and (out[1, 64] != 0).all()


def test_nan_and_infinite_scores_spoil_their_own_query_only(rng):
    query, key, value = _operands(rng, (1, 80, 80, 8, 8))
    query[0, 3, 0], query[0, 66, 1] = np.nan, np.inf
    out = mx.nd.contrib.flash_attention(mx.nd.array(query), mx.nd.array(key), mx.nd.array(value)).asnumpy()
    spoilt = np.isnan(out).any(-1)[0]
    assert spoilt[3] and spoilt[66] and spoilt.sum() == 2


@pytest.fixture
def set_cores() -> Iterator[Any]:
    before = _core.cpu_cores()
    yield _core.set_cpu_cores
    _core.set_cpu_cores(before)


@pytest.mark.parametrize("batch", [1, 5, 20])
def test_the_bits_do_not_depend_on_the_number_of_cores(batch, set_cores, rng):
    operands = _operands(rng, (batch, 300, 200, 32, 32))
    head = rng.normal(size=(batch, 300, 32)).astype("float32")
    results = []
    for cores in (1, 2, 4):
        set_cores(cores)
        results.append(_run(operands, head, causal=True))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_mask_of_another_shape_is_named(rng):
    operands = [mx.nd.array(x) for x in _operands(rng, (2, 3, 5, 4, 4))]
    with pytest.raises(ShapeError, match=r"mask.*\(2, 3, 5\).*\(2, 3, 4\)"):
        mx.nd.contrib.flash_attention(*operands, mx.nd.zeros((2, 3, 4)), mask_type="added")


@pytest.mark.parametrize("where", [0, 700, 1099])
@pytest.mark.parametrize("operand", ["query", "key", "value"])
def test_nan_of_few_queries_reaches_the_outputs_that_depend_on_it(operand, where, rng):
    operands = _operands(rng, (2, 3, 1100, 16, 24))
    row = {"query": 1}.get(operand, where)
    operands[["query", "key", "value"].index(operand)][0, row, 5] = np.nan
    out = mx.nd.contrib.flash_attention(*[mx.nd.array(x) for x in operands]).asnumpy()
    expected = np.zeros(out.shape, bool)
    expected[(0, 1) if operand == "query" else (0,) if operand == "key" else (0, slice(None), 5)] = True
    np.testing.assert_array_equal(np.isnan(out), expected)


def test_few_queries_do_not_read_behind_the_lengths(rng):
    query, key, value = _operands(rng, (2, 1, 1300, 16, 24))
    lengths = np.array([[3], [600]], "int32")
    short = [
        mx.nd.contrib.flash_attention(
            *(mx.nd.array(x[i : i + 1, :n]) for x, n in ((query, 1), (key, lengths[i, 0]), (value, lengths[i, 0])))
        ).asnumpy()
        for i in range(2)
    ]
    for i in range(2):
        key[i, lengths[i, 0] :] = value[i, lengths[i, 0] :] = np.nan
    arrays = [mx.nd.array(x) for x in (query, key, value)]
    out = mx.nd.contrib.flash_attention(*arrays, mx.nd.array(lengths, dtype="int32"), mask_type="lengths")
    np.testing.assert_array_equal(out.asnumpy(), np.concatenate(short))


def _in_bfloat16(
    kind: str, sizes: tuple[int, ...], rng: np.random.Generator
) -> tuple[Any, np.ndarray, list[np.ndarray]]:
    """The output for operands and mask of bfloat16, the expected one, and the operands."""
    batch, queries, keys = sizes[:3]
    masks = {
        "added": rng.normal(size=(queries, keys)),
        "kept": (rng.random((batch, 1, keys)) > 0.3).astype("uint8"),
        "lengths": rng.integers(1, keys + 1, (batch, queries)).astype("int32"),
    }
    arrays = [mx.nd.array(x).astype("bfloat16") for x in _operands(rng, sizes)]
    attrs = {"mask_type": kind} if kind in masks else {"causal": kind == "causal"}
    if kind in masks:
        mask = masks[kind]
        arrays.append(mx.nd.array(mask, dtype=mask.dtype) if kind != "added" else mx.nd.array(mask).astype("bfloat16"))
    out = mx.nd.contrib.flash_attention(*arrays, **attrs)
    assert out.dtype == arrays[0].dtype
    floats = [x.astype("float32").asnumpy() if i < 3 or kind == "added" else x.asnumpy() for i, x in enumerate(arrays)]
    return (
        out.astype("float32").asnumpy(),
        _reference(floats, {name: str(value) for name, value in attrs.items()}),
        floats,
    )


@pytest.mark.parametrize("kind", ["none", "causal", "added", "kept", "lengths"])
@pytest.mark.parametrize("sizes", FEW_QUERIES)
def test_keys_and_values_of_bfloat16_are_rounded_once(kind, sizes, rng):
    out, expected, _ = _in_bfloat16(kind, sizes, rng)
    np.testing.assert_allclose(out, expected, rtol=2**-8, atol=1e-5)


# Whole and part tiles of queries and keys, and more than one block of each. On processors with AMX these run in tiles
# of bfloat16, which round weights: by 2**-9 of themselves at most, so the error is bounded by the largest value.
@pytest.mark.parametrize("kind", ["none", "causal", "added", "kept", "lengths"])
@pytest.mark.parametrize(
    "sizes", [(2, 128, 128, 64, 64), (3, 17, 33, 32, 16), (2, 65, 130, 96, 48), (2, 100, 7, 64, 80)]
)
def test_tiles_of_bfloat16_agree_with_the_whole_matrix_of_weights(kind, sizes, rng):
    out, expected, operands = _in_bfloat16(kind, sizes, rng)
    np.testing.assert_allclose(out, expected, rtol=2**-8, atol=2**-9 * np.abs(operands[2]).max())


def test_a_query_with_nan_leaves_the_others_of_its_tile_as_they_are(rng):
    query, key, value = (mx.nd.array(rng.standard_normal((2, 40, 32)), dtype="bfloat16") for _ in range(3))
    expected = mx.nd.contrib.flash_attention(query, key, value).astype("float32").asnumpy()
    query[1, 7, 3] = np.nan
    out = mx.nd.contrib.flash_attention(query, key, value).astype("float32").asnumpy()
    assert np.isnan(out[1, 7]).all()
    expected[1, 7] = np.nan
    np.testing.assert_array_equal(out, expected)
