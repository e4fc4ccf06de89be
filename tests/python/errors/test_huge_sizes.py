"""Sizes beyond 64 bits and too large numbers of results are errors that name them; nothing wraps around."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest

HUGE = 2**62
WRAPS = 2**64 // 3 + 1  # three times this is 2 modulo 2**64


@pytest.mark.parametrize(
    "make",
    [
        lambda x: mx.nd.empty((2**61,), dtype="float64"),
        lambda x: mx.nd.zeros((2**61,), dtype="float64"),
        lambda x: mx.nd.broadcast_to(x[:1], shape=(HUGE,)),
        lambda x: mx.nd.one_hot(x, depth=2**60),
        lambda x: mx.nd.repeat(x, repeats=HUGE),
        lambda x: mx.nd.repeat(x, repeats=HUGE, axis=0),
        lambda x: mx.nd.tile(x[:3], reps=(WRAPS,)),
        lambda x: mx.nd.Concat(mx.nd.zeros((0, HUGE)), mx.nd.zeros((0, HUGE)), dim=1),
        lambda x: mx.nd.pad(x.reshape((1, 1, 2, 2)), mode="constant", pad_width=(0, 0, 0, 0, 0, 2**63 - 1, 0, 0)),
        lambda x: mx.nd.depth_to_space(x.reshape((1, 4, 1, 1)), block_size=2**32),
        lambda x: mx.nd.space_to_depth(x.reshape((1, 1, 2, 2)), block_size=2**32),
    ],
)
def test_a_size_that_does_not_fit_is_an_error(make):
    with pytest.raises(mx.errors.ShapeError):
        make(mx.nd.ones((4,))).wait_to_read()


@pytest.mark.parametrize("field", ["kernel", "stride", "dilate", "pad"])
@pytest.mark.parametrize("op", ["Convolution", "im2col"])
def test_windows_of_absurd_sizes_are_refused(op, field):
    image, weight = mx.nd.ones((1, 1, 4, 4)), mx.nd.ones((1, 1, 2, 2))
    params = {"kernel": (2, 2), field: (HUGE, HUGE)}
    with pytest.raises(mx.errors.ParamError, match=field):
        if op == "im2col":
            mx.nd.im2col(image, **params)
        else:
            mx.nd.Convolution(image, weight, num_filter=1, no_bias=True, **params)


def test_steps_longer_than_the_axis_take_its_first_element():
    values = np.arange(4, dtype="float32")
    x = mx.nd.array(values)
    longest = 2**63 - 1
    for step in (longest, -longest, -(2**63), 5, -5):
        got = mx.nd.slice(x, begin=(None,), end=(None,), step=(step,)).asnumpy()
        np.testing.assert_array_equal(got, values[::step])
    np.testing.assert_array_equal(
        mx.nd.slice(x, begin=(-(2**63),), end=(longest,), step=(longest,)).asnumpy(), values[:1]
    )


def test_stacks_of_empty_products_are_not_walked():
    out = mx.nd.batch_dot(mx.nd.zeros((2**40, 0, 1)), mx.nd.zeros((2**40, 1, 0)))
    assert out.shape == (2**40, 0, 0)
    out.wait_to_read()


@pytest.mark.parametrize("name", ["relu", "shape_array"])
def test_more_results_than_the_operator_has_are_an_error(name):
    x = mx.nd.ones((3,))
    out = [mx.nd.ones((3,)) for _ in range(9)]
    with pytest.raises(mx.errors.ValueError, match=r"out.*expected one array, got 9"):
        getattr(mx.nd, name)(x, out=out)


def test_a_dtype_code_is_not_cut_to_32_bits():
    with pytest.raises(mx.errors.ParamError, match="dtype"):
        mx.nd.cast(mx.nd.ones((2,)), dtype=2**32)
