"""Reading and writing x[key] agree with NumPy for every kind of key."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest

SHAPE = (4, 3, 5)
BASIC = [
    0,
    -1,
    np.int64(2),
    slice(None),
    slice(1, 3),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(2, 2),
    Ellipsis,
    (0, 1),
    (0, 1, 2),
    (slice(None), 1),
    (slice(1, 3), slice(None), 2),
    (Ellipsis, 0),
    (0, Ellipsis, slice(1, 4)),
    (1, slice(0, 2)),
    (1, 2, slice(1, 4)),
    (slice(0, 1), 2),
    (slice(0, 1), slice(1, 2), slice(2, 5)),
    (slice(None), slice(None, None, -1), slice(4, None, -3)),
    None,
    (None, 1),
    (1, None),
    (slice(None), None, 0),
    (Ellipsis, None),
    (slice(10, 20),),
    (slice(-2, None), slice(-100, 100)),
]
ADVANCED = [
    [0, 2],
    [[0, 1], [2, 3]],
    np.array([3, -1, 0]),
    np.array([], dtype=int),
    (slice(None), [0, 2]),
    (0, [0, 2]),
    ([0, 1], [1, 2]),
    ([0, 1], slice(None), [1, 2]),
    ([[0], [3]], [0, 2]),
    (slice(1, 3), [0, 2], slice(None, None, 2)),
    (Ellipsis, [1, 1, 4]),
    (None, [0, 1]),
    ([0, 1], None, [2, 2]),
    np.arange(4) % 2 == 0,
    np.arange(60).reshape(SHAPE) % 7 == 0,
    (slice(None), np.array([True, False, True])),
    (np.arange(12).reshape(4, 3) > 5, 2),
    np.zeros(4, dtype=bool),
    ([1], 2, 3),
]


def values() -> np.ndarray:
    return np.arange(60, dtype=np.float32).reshape(SHAPE)


def classic(expected: np.ndarray) -> np.ndarray:
    """A single element has shape (1,) without NumPy shape semantics."""
    return np.reshape(expected, (1,)) if np.ndim(expected) == 0 else expected


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
def test_reading_agrees_with_numpy(key):
    expected = classic(values()[key])
    given = mx.nd.array(values())[key]
    assert given.shape == expected.shape
    assert given.dtype == np.float32
    np.testing.assert_array_equal(given.asnumpy(), expected)


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
@pytest.mark.parametrize("kind", ["number", "array", "numpy", "broadcast"])
def test_writing_agrees_with_numpy(key, kind):
    expected = values()
    region = np.shape(expected[key])
    if kind == "number":
        value, given = 7.5, 7.5
    else:
        shape = region if kind != "broadcast" else (1,) * min(1, len(region)) + region[1:]
        value = -np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32).reshape(shape)
        if value.ndim == 0:
            value = value.reshape(1)
        given = value if kind == "numpy" else mx.nd.array(value)
    expected[key] = value.reshape(()) if kind != "number" and region == () else value
    x = mx.nd.array(values())
    x[key] = given
    np.testing.assert_array_equal(x.asnumpy(), expected)


@pytest.mark.parametrize(
    "key", [0, -1, slice(1, 3), (1, slice(0, 2)), (1, 2), (slice(0, 1), 2), (2, None), Ellipsis], ids=repr
)
def test_slices_in_one_piece_of_memory_write_through(key):
    x = mx.nd.array(values())
    expected = values()
    x[key][:] = -1
    expected[key] = -1
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_other_slices_are_copies():
    x = mx.nd.array(values())
    x[:, 1][:] = -1
    np.testing.assert_array_equal(x.asnumpy(), values())


@pytest.mark.parametrize(
    "key",
    [mx.nd.array([2, 0]), mx.nd.array([2, -1], dtype="int32"), mx.nd.array([[0, 1], [2, 3]], dtype="int64")],
    ids=["float32", "int32", "int64"],
)
def test_arrays_as_keys(key):
    expected = values()[key.asnumpy().astype(int)]
    np.testing.assert_array_equal(mx.nd.array(values())[key].asnumpy(), expected)
    x = mx.nd.array(values())
    x[key] = 1
    written = values()
    written[key.asnumpy().astype(int)] = 1
    np.testing.assert_array_equal(x.asnumpy(), written)


def test_boolean_arrays_as_keys():
    mask = mx.nd.array(np.arange(4) % 2, dtype=bool)
    np.testing.assert_array_equal(mx.nd.array(values())[mask].asnumpy(), values()[1::2])


@pytest.mark.parametrize("key", [4, -5, (0, 3), (slice(None), slice(None), 5), [0, 4], ([0], [-4])], ids=repr)
def test_out_of_bounds_names_index_axis_and_size(key):
    x = mx.nd.array(values())
    with pytest.raises(IndexError, match="out of bounds"):
        x[key]
    with pytest.raises(IndexError, match="out of bounds"):
        x[key] = 0


@pytest.mark.parametrize("key", [(0, 0, 0, 0), (Ellipsis, Ellipsis)], ids=repr)
def test_too_many_indices(key):
    with pytest.raises(IndexError):
        mx.nd.array(values())[key]


@pytest.mark.parametrize("key", ["a", 1.5, {}, [1.5]], ids=repr)
def test_keys_of_a_wrong_type(key):
    with pytest.raises(TypeError, match="index"):
        mx.nd.array(values())[key]


def test_values_that_do_not_broadcast():
    x = mx.nd.array(values())
    with pytest.raises(mx.errors.ShapeError, match=r"\(4, 3\).*\(2, 3\)"):
        x[:, :, 0] = mx.nd.ones((2, 3))
    with pytest.raises(mx.errors.ShapeError):
        x[0] = np.ones((2, 5))


def test_numpy_shape_semantics_give_scalars():
    with mx.np_shape():
        x = mx.nd.array([1.0, 2.0])
        assert x[0].shape == ()
        assert mx.nd.array(values())[0, 1, 2].shape == ()
    assert mx.nd.array([1.0, 2.0])[0].shape == (1,)


def test_casting_on_assignment():
    x = mx.nd.zeros((3,), dtype="int32")
    x[:] = mx.nd.array([1.7, 2.2, 3.9])
    np.testing.assert_array_equal(x.asnumpy(), [1, 2, 3])
    x[1:] = np.array([8.0, 9.0])
    np.testing.assert_array_equal(x.asnumpy(), [1, 8, 9])


def test_zero_size_arrays():
    x = mx.nd.zeros((0, 3))
    assert x[:].shape == (0, 3)
    assert x[0:0].shape == (0, 3)
    assert x[:, 1].shape == (0,)
    x[:] = 1
    assert x.asnumpy().shape == (0, 3)


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
def test_gradient_of_reading(key):
    x = mx.nd.array(values())
    x.attach_grad()
    with mx.autograd.record():
        y = x[key]
        z = (y * y).sum()
    z.backward()
    expected = np.zeros(SHAPE, dtype=np.float32)
    np.add.at(expected, key, 2 * values()[key])
    np.testing.assert_allclose(x.grad.asnumpy(), expected)


@pytest.mark.parametrize(
    "key", [slice(1, 3), (slice(None), 1), [0, 2], (slice(None, None, 2), slice(None), [1, 0])], ids=repr
)
def test_gradient_of_writing_a_recorded_value(key):
    v = mx.nd.array(np.ones_like(values()[key]))
    v.attach_grad()
    weights = mx.nd.array(values())
    with mx.autograd.record():
        x = mx.nd.zeros(SHAPE)
        x[key] = v * 2
        z = (x * weights).sum()
    z.backward()
    written = np.zeros(SHAPE, dtype=np.float32)
    written[key] = 2
    np.testing.assert_allclose(x.asnumpy(), written)
    np.testing.assert_allclose(v.grad.asnumpy(), 2 * values()[key])


def test_iteration_len_and_membership():
    x = mx.nd.array(values())
    rows = list(x)
    assert len(x) == len(rows) == 4
    np.testing.assert_array_equal(rows[2].asnumpy(), values()[2])
    assert 59.0 in x
    assert 60.0 not in x


@pytest.mark.parametrize("value", [2**53 + 1, -(2**60) - 1, np.int64(2**62 + 1), np.asarray(2**55 + 1)])
@pytest.mark.parametrize("key", [slice(None), 1, slice(None, None, 2), np.array([0, 2])], ids=str)
def test_large_integers_are_written_exactly(key, value):
    array = mx.nd.zeros((3,), dtype="int64")
    expected = np.zeros(3, dtype="int64")
    array[key] = value
    expected[key] = value
    np.testing.assert_array_equal(array.asnumpy(), expected)
