"""Images of one column, or of one plane, are convolved like images of one row: the order of memory is the same."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd

PARAMS = {"stride": 2, "pad": 3, "dilate": 2}
FORMS = {  # the place of the long axis of an image, and the sizes of the image
    "column": (0, (17, 1)),
    "row": (1, (1, 17)),
    "deep column": (1, (1, 17, 1)),
    "depth": (0, (17, 1, 1)),
}


def _spread(value: int, axis: int, ndim: int, other: int) -> tuple[int, ...]:
    return tuple(value if i == axis else other for i in range(ndim))


def _results(axis: int, sizes: tuple[int, ...], groups: int, dtype: str, train: bool) -> list[Any]:
    rng = np.random.default_rng(4)
    ndim = len(sizes)
    x = nd.array(rng.normal(size=(2, 6, 17)), dtype=dtype).reshape((2, 6, *sizes))
    w = nd.array(rng.normal(size=(12, 6 // groups, 5)), dtype=dtype).reshape((12, -1, *_spread(5, axis, ndim, 1)))
    b = nd.array(rng.normal(size=12), dtype=dtype)
    arrays = [x, w, b]
    for array in arrays:
        array.attach_grad()
    attrs = {name: _spread(value, axis, ndim, int(name != "pad")) for name, value in PARAMS.items()}
    with autograd.record(train_mode=train):
        y = nd.Convolution(x, w, b, kernel=w.shape[2:], num_filter=12, num_group=groups, **attrs)
        loss = (y * y).sum()
    loss.backward()
    return [array.reshape((*array.shape[:1], -1)).asnumpy() for array in (y, x.grad, w.grad, b.grad)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("form", FORMS)
def test_one_long_axis_gives_the_results_of_one_axis(form: str, groups: int, dtype: str) -> None:
    axis, sizes = FORMS[form]
    wanted = _results(0, (17,), groups, dtype, train=True)
    tolerance = 4e-2 if dtype == "bfloat16" else 1e-5
    for got, expected in zip(_results(axis, sizes, groups, dtype, train=True), wanted, strict=True):
        scale = np.abs(expected.astype("float64")).max()
        np.testing.assert_allclose(
            got.astype("float64"), expected.astype("float64"), rtol=tolerance, atol=tolerance * scale
        )


def test_a_column_is_convolved_channels_last() -> None:
    x = nd.random.normal(shape=(2, 17, 1, 6))
    w = nd.random.normal(shape=(4, 5, 1, 6))
    got = nd.Convolution(x, w, kernel=(5, 1), num_filter=4, no_bias=True, layout="NHWC")
    plain = nd.Convolution(
        x.transpose((0, 3, 1, 2)), w.transpose((0, 3, 1, 2)), kernel=(5, 1), num_filter=4, no_bias=True
    )
    mx.test_utils.assert_almost_equal(got.transpose((0, 3, 1, 2)).asnumpy(), plain.asnumpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_one_long_axis_is_deconvolved_like_one_axis(form: str) -> None:
    axis, sizes = FORMS[form]
    rng = np.random.default_rng(5)
    x, w = nd.array(rng.normal(size=(2, 4, 17))), nd.array(rng.normal(size=(4, 3, 5)))
    wanted = nd.Deconvolution(x, w, kernel=(5,), stride=(2,), pad=(1,), num_filter=3, no_bias=True)
    got = nd.Deconvolution(
        x.reshape((2, 4, *sizes)), w.reshape((4, 3, *_spread(5, axis, len(sizes), 1))), num_filter=3, no_bias=True,
        kernel=_spread(5, axis, len(sizes), 1), stride=_spread(2, axis, len(sizes), 1),
        pad=_spread(1, axis, len(sizes), 0),
    )  # fmt: skip
    np.testing.assert_allclose(got.asnumpy().reshape(wanted.shape), wanted.asnumpy(), rtol=1e-4, atol=1e-4)
