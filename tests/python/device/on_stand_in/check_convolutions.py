"""Convolutions on gpu(0): shapes beyond the samples, so that products have several tiles, groups and parts of depth."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from operator_sweep import difference

TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3}
CASES: dict[str, tuple[str, list[tuple[int, ...]], dict[str, Any]]] = {
    "tiles": ("Convolution", [(3, 20, 17, 15), (70, 20, 3, 3), (70,)], {"kernel": (3, 3), "pad": (1, 1)}),
    "groups, stride and dilation": (
        "Convolution",
        [(3, 24, 17, 15), (36, 8, 3, 2), (36,)],
        {"kernel": (3, 2), "pad": (2, 1), "stride": (2, 3), "dilate": (2, 1), "num_group": 3},
    ),
    "depthwise": (
        "Convolution",
        [(3, 24, 17, 15), (24, 1, 3, 3), (24,)],
        {"kernel": (3, 3), "pad": (1, 1), "stride": (2, 2), "num_group": 24},
    ),
    "two filters for each channel": (
        "Convolution",
        [(3, 12, 17, 15), (24, 1, 5, 5)],
        {"kernel": (5, 5), "pad": (1, 1), "num_group": 12, "no_bias": True},
    ),
    "channels last": (
        "Convolution",
        [(3, 17, 15, 20), (20, 3, 3, 5), (20,)],
        {"kernel": (3, 3), "stride": (2, 1), "num_group": 4, "layout": "NHWC"},
    ),
    "three axes": (
        "Convolution",
        [(2, 6, 5, 9, 8), (10, 6, 2, 3, 3), (10,)],
        {"kernel": (2, 3, 3), "pad": (1, 0, 2), "stride": (1, 2, 2)},
    ),
    "one axis": ("Convolution", [(40, 6, 41), (10, 6, 5), (10,)], {"kernel": (5,), "pad": (2,), "stride": (2,)}),
    "transposed": (
        "Deconvolution",
        [(2, 20, 7, 8), (20, 3, 4, 3), (12,)],
        {"kernel": (4, 3), "stride": (2, 3), "pad": (1, 1), "adj": (1, 2), "num_group": 4, "no_bias": False},
    ),
}


def results(case: str, dtype: str, ctx: mx.Context) -> list[np.ndarray]:
    """The output and the gradients of all inputs."""
    name, shapes, attrs = CASES[case]
    rng = np.random.default_rng(1)
    arrays = [mx.nd.array(rng.normal(size=shape).astype(dtype), dtype=dtype, ctx=ctx) for shape in shapes]
    for array in arrays:
        array.attach_grad()
    filters = shapes[-1][0] if len(shapes) == 3 else shapes[1][0]
    with autograd.record():
        out = getattr(mx.nd, name)(*arrays, num_filter=filters, **attrs)
        loss = (out * out * 0.01).sum()
    loss.backward()
    return [out.asnumpy(), *(array.grad.asnumpy() for array in arrays)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_convolutions_and_their_gradients_are_those_of_the_cpu(case: str, dtype: str) -> None:
    pairs = zip(results(case, dtype, mx.gpu(0)), results(case, dtype, mx.cpu()), strict=True)
    assert max(difference(got, want) for got, want in pairs) <= TOLERANCE[dtype]
