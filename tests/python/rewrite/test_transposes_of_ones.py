"""A transpose that moves only axes of size 1 is a view: same values and gradients, no copy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hybridnet import autograd, nd

from rewrite.graphs import Function

SHAPES = [(2, 1, 3), (1, 4, 1), (1, 1, 5, 2), (2, 1, 3, 1), (1, 1, 1), (0, 1, 3), (1, 3), (2, 3, 1)]
CASES = [(shape, axes) for shape in SHAPES for axes in itertools.permutations(range(len(shape)))]


def _moves_only_ones(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    others = [axis for axis in axes if shape[axis] != 1]
    return others == sorted(others)


@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_values_gradients_and_plans(shape, axes, rng):
    def run(F: Any, x: Any) -> Any:
        return F.transpose(x * 2, axes=axes) * 3

    x = nd.array(rng.normal(size=shape).astype("float32"))
    x.attach_grad()
    net = Function(run)
    net.hybridize()
    expected = (x.asnumpy() * 2).transpose(axes) * 3
    np.testing.assert_array_equal(net(x).asnumpy(), expected)
    if _moves_only_ones(shape, axes) and any(size != 1 for size in shape):
        assert "] transpose " not in net.plan_text()
    head = rng.normal(size=expected.shape).astype("float32")
    with autograd.record():
        out = net(x)
    out.backward(nd.array(head))
    np.testing.assert_allclose(x.grad.asnumpy(), head.transpose(np.argsort(axes)) * 6, rtol=1e-6)


@pytest.mark.parametrize("as_output", [False, True])
def test_swapped_axes_of_an_argument(as_output, rng):
    net = Function((lambda F, x: F.swapaxes(x, 1, 2)) if as_output else (lambda F, x: F.swapaxes(x, 1, 2) + 1))
    net.hybridize()
    for shape in [(2, 1, 3), (2, 4, 3), (5, 1, 3), (2, 1, 1), (2, 3, 1)]:
        x = nd.array(rng.normal(size=shape).astype("float32"))
        expected = x.asnumpy().swapaxes(1, 2) + (0 if as_output else 1)
        out = net(x)
        np.testing.assert_array_equal(out.asnumpy(), expected)
        out[:] = 7  # the result has memory of its own
        assert not (x.asnumpy() == 7).any()
