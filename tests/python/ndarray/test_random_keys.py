"""Random keys against NumPy: mixes of slices, numbers, None, ellipsis, index arrays and masks."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from hypothesis import assume, given, settings
from hypothesis import strategies as st

SETTINGS = settings(max_examples=300, deadline=None, derandomize=True)


@st.composite
def slices(draw: st.DrawFn, size: int) -> slice:
    bound = st.none() | st.integers(-size - 2, size + 2)
    return slice(draw(bound), draw(bound), draw(st.none() | st.integers(-3, 3).filter(bool)))


@st.composite
def index_arrays(draw: st.DrawFn, size: int, shape: tuple[int, ...]) -> np.ndarray:
    values = draw(st.lists(st.integers(-size, size - 1), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    return np.array(values, dtype=draw(st.sampled_from(["int32", "int64"]))).reshape(shape)


@st.composite
def shapes_and_keys(draw: st.DrawFn, advanced: bool = True) -> tuple[tuple[int, ...], tuple]:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    together = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 3), (1, 3)]))  # shape of all index arrays of the key
    used = draw(st.integers(0, len(shape)))
    ellipsis_at = draw(st.none() | st.integers(0, used))
    key, axis = [], 0
    for place in range(used):
        if ellipsis_at == place:
            key.append(Ellipsis)
            axis = len(shape) - (used - place)
        if draw(st.integers(0, 5)) == 0:
            key.append(None)
        kinds = ["slice", "slice", "int"] + (["array", "list", "mask"] if advanced else [])
        kind, size = draw(st.sampled_from(kinds)), shape[axis]
        if kind == "slice":
            key.append(draw(slices(size)))
        elif kind == "int":
            key.append(draw(st.integers(-size, size - 1)))
        elif kind == "mask":
            # Masks have as many true elements as the index arrays, or one, because they broadcast with them.
            wanted = together[-1] if together and together[-1] <= size else 1
            mask = np.zeros(size, bool)
            mask[draw(st.permutations(range(size)))[:wanted]] = True
            key.append(mask)
        else:
            values = draw(index_arrays(size, together or (1,)))
            key.append(values.tolist() if kind == "list" else values)
        axis += 1
    if ellipsis_at == used:
        key.append(Ellipsis)
    return shape, tuple(key)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def numpy_result(values: np.ndarray, key: tuple) -> np.ndarray | None:
    """Returns values[key], or None if NumPy refuses the key."""
    try:
        return values[key]
    except IndexError:
        return None


@SETTINGS
@given(shapes_and_keys())
def test_reading(case):
    shape, key = case
    values = numbered(shape)
    expected = numpy_result(values, key)
    with mx.util.np_shape(True):
        x = mx.nd.array(values)
        if expected is None:
            with pytest.raises(IndexError):
                x[key].asnumpy()
            return
        got = x[key]
        assert got.shape == expected.shape
        np.testing.assert_array_equal(got.asnumpy(), expected)


@SETTINGS
@given(shapes_and_keys(), st.sampled_from(["number", "same", "row", "numpy"]))
def test_writing(case, kind):
    shape, key = case
    values = numbered(shape)
    selected = numpy_result(values, key)
    if selected is None:
        with mx.util.np_shape(True), pytest.raises(IndexError):
            mx.nd.array(values)[key] = -1.5
        return
    # Each element is written only once, or with one value: the order among duplicates is undefined.
    if kind in ("same", "numpy") and np.unique(selected).size != selected.size:
        kind = "number"
    new = {
        "number": -1.5,
        "same": -np.arange(1, selected.size + 1, dtype="float32").reshape(selected.shape),
        "row": np.full(selected.shape[-1:], -3, dtype="float32"),
        "numpy": -np.arange(1, selected.size + 1, dtype="float64").reshape(selected.shape),
    }[kind]
    expected = values.copy()
    expected[key] = new
    with mx.util.np_shape(True):
        x = mx.nd.array(values)
        x[key] = mx.nd.array(new) if kind in ("same", "row") else new
        np.testing.assert_array_equal(x.asnumpy(), expected)


@SETTINGS
@given(shapes_and_keys())
def test_gradient_of_reading(case):
    shape, key = case
    values = numbered(shape)
    expected = numpy_result(values, key)
    assume(expected is not None)
    weights = np.arange(1, expected.size + 1, dtype="float32").reshape(expected.shape)
    gradient = np.zeros_like(values)
    np.add.at(gradient, key, weights)
    with mx.util.np_shape(True):
        x = mx.nd.array(values)
        x.attach_grad()
        with autograd.record():
            y = (x[key] * mx.nd.array(weights)).sum()
        y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), gradient, rtol=1e-6)


@SETTINGS
@given(shapes_and_keys(advanced=False))
def test_writing_through_views(case):
    """A basic slice of the leading axis shares memory: a write to the slice changes the array."""
    shape, _ = case
    x = mx.nd.array(numbered(shape))
    half = x[: (shape[0] + 1) // 2]
    half[:] = -1
    expected = numbered(shape)
    expected[: (shape[0] + 1) // 2] = -1
    np.testing.assert_array_equal(x.asnumpy(), expected)
