"""x[:, i] = value, with the position i as an array, writes the same slices in graphs as NumPy."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd

FULL = slice(None)
DATA = np.arange(24.0).reshape(2, 3, 4)


def sized(*shape):
    return np.random.default_rng(3).normal(size=shape)


CASES = {
    "the last axis": (lambda i: (FULL, FULL, i), [2], sized(2, 3, 1)),
    "a number": (lambda i: (FULL, FULL, i), [-1], np.array([5.0])),
    "two positions": (lambda i: (FULL, i), [1, 0], sized(2, 2, 4)),
    "one position twice": (lambda i: (FULL, i), [1, 1], sized(2, 4)),
    "slices behind it": (lambda i: (FULL, i, FULL), [2], sized(4)),
    "an ellipsis before it": (lambda i: (Ellipsis, i), [3], sized(2, 3, 1)),
    "both": (lambda i: (Ellipsis, i, FULL), [1], sized(1, 4)),
    "an ellipsis behind it": (lambda i: (i, Ellipsis), [1], sized(3, 4)),
    "the first axis": (lambda i: (i, FULL, FULL), [1, 0], sized(2, 3, 4)),
}


class Writes(gluon.HybridBlock):
    def __init__(self, key):
        super().__init__()
        self.key = key

    def forward(self, x, i, value):
        x = x * 1
        x[self.key(i)] = value
        return x


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_slices_at_positions_are_written_as_in_numpy(name, hybridized):
    key, places, value = CASES[name]
    want = DATA.copy()
    want[key(np.array(places))] = value
    block = Writes(key)
    block.hybridize(hybridized, strict=True)
    given = [nd.array(array, dtype="float64") for array in (DATA, value)]
    got = block(given[0], nd.array(places, dtype="int64"), given[1])
    np.testing.assert_array_equal(got.asnumpy(), want)
    np.testing.assert_array_equal(given[0].asnumpy(), DATA)


def test_gradients_pass_to_the_old_and_the_new_values():
    block = Writes(lambda i: (FULL, FULL, i))
    block.hybridize(strict=True)
    x, value = nd.array(DATA, dtype="float64"), nd.ones((2, 3, 1), dtype="float64")
    for array in (x, value):
        array.attach_grad()
    with autograd.record():
        made = block(x, nd.array([1], dtype="int64"), value)
    made.backward()
    want = np.ones_like(DATA)
    want[:, :, 1] = 0
    np.testing.assert_array_equal(x.grad.asnumpy(), want)
    np.testing.assert_array_equal(value.grad.asnumpy(), np.ones((2, 3, 1)))


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize(
    ("key", "shape"), [(lambda i: i, (4, 3, 4)), (lambda i: (FULL, i), (2, 4, 4)), (lambda i: (Ellipsis, i), (2, 3, 4))]
)
def test_overwritten_slices_have_no_gradient(hybridize, key, shape):
    block = Writes(key)
    block.hybridize(hybridize)
    value = nd.ones(shape)
    value.attach_grad()
    with autograd.record():
        made = block(nd.zeros((2, 3, 4)), nd.array([1, 0, 1, 0], dtype="int64"), value)
    made.backward()
    axis = {(4, 3, 4): 0, (2, 4, 4): 1, (2, 3, 4): 2}[shape]
    np.testing.assert_array_equal(np.moveaxis(value.grad.asnumpy(), axis, -1)[0, 0], [0, 0, 1, 1])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_index_copy_gives_no_gradient_to_slices_that_later_ones_overwrite(axis):
    shape = [3, 3, 3]
    shape[axis] = 5
    old, new = nd.ones((3, 3, 3)), nd.ones(shape)
    for array in (old, new):
        array.attach_grad()
    with autograd.record():
        made = nd.contrib.index_copy(old, nd.array([0, -1, 0, 2, -3]), new, axis=axis)
    made.backward()
    np.testing.assert_array_equal(np.moveaxis(new.grad.asnumpy(), axis, 0)[:, 0, 0], [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(np.moveaxis(old.grad.asnumpy(), axis, 0)[:, 0, 0], [0, 1, 0])


def test_a_position_out_of_range_is_an_error():
    block = Writes(lambda i: (FULL, i))
    block.hybridize(strict=True)
    with pytest.raises(mx.errors.IndexError):
        block(nd.array(DATA), nd.array([3], dtype="int64"), nd.ones((1,))).asnumpy()


def test_other_keys_are_named():
    block = Writes(lambda i: (slice(0, 1), i))
    block.hybridize(strict=True)
    with pytest.raises(mx.errors.TraceError, match="beside full slices"):
        block(nd.array(DATA), nd.array([1], dtype="int64"), nd.ones((1,)))
