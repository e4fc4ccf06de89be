"""Gradients at points where formulas that divide by the input, or take its logarithm, would give NaN or zeros.

Products with zeros, powers with zeros in base and exponent: first, second and third derivatives against PyTorch in
float64, on arrays and hybridized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd

torch = pytest.importorskip("torch")

np_ = mx.np


class Net(mx.gluon.HybridBlock):
    """A block that calls a function of one array."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def weights(shape: Any, low: float) -> np.ndarray:
    return np.linspace(low, 1.5, int(np.prod(shape, dtype=int))).reshape(shape)


def derivative(function: Callable[[Any], Any], x: np.ndarray, order: int, hybrid: bool, dtype: str) -> np.ndarray:
    net = Net(function)
    if hybrid:
        net.hybridize()
    a = nd.array(x, dtype=dtype)
    a.attach_grad()
    with autograd.record():
        y = net(a)
        y = (y * nd.array(weights(y.shape, 0.5), dtype=dtype)).sum()
        for _ in range(order - 1):
            (g,) = autograd.grad(y, [a], create_graph=True, retain_graph=True)
            y = (g * nd.array(weights(x.shape, 0.7), dtype=dtype)).sum()
    y.backward()
    return a.grad.asnumpy()


def expected(function: Callable[[Any], Any], x: np.ndarray, order: int) -> np.ndarray:
    a = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y = function(a)
    y = (y * torch.tensor(weights(tuple(y.shape), 0.5))).sum()
    for _ in range(order - 1):
        if not y.requires_grad:
            return np.zeros_like(x)
        (g,) = torch.autograd.grad(y, a, create_graph=True)
        y = (g * torch.tensor(weights(x.shape, 0.7))).sum()
    if not y.requires_grad:
        return np.zeros_like(x)
    (g,) = torch.autograd.grad(y, a, allow_unused=True)
    return np.zeros_like(x) if g is None else (g + torch.zeros_like(a)).detach().numpy()


def as_np(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x.as_np_ndarray()).as_nd_ndarray()


ISSUE = np.array([2.0, 0, 5])
ROWS = np.array([[2.0, 0, 5, 1, -1], [0, 0, 3, 2, 1], [1, 2, 3, 4, 5], [0, 0, 0, 1, 2]])
CUBE = np.where(np.arange(60).reshape(3, 4, 5) % 7 == 3, 0.0, np.linspace(-1, 2, 60).reshape(3, 4, 5))

PRODUCTS = {
    "all": (ISSUE, lambda x: x.prod(), lambda x: x.prod()),
    "two_zeros": (np.array([0.0, 3, 0, 2]), lambda x: x.prod(), lambda x: x.prod()),
    "one": (np.array([0.0]), lambda x: x.prod(), lambda x: x.prod()),
    "axis": (ROWS, lambda x: x.prod(axis=1), lambda x: x.prod(1)),
    "first_axis": (ROWS, lambda x: x.prod(axis=0), lambda x: x.prod(0)),
    "keepdims": (CUBE, lambda x: nd.prod(x, axis=1, keepdims=True), lambda x: x.prod(1, keepdim=True)),
    "two_axes": (CUBE, lambda x: nd.prod(x, axis=(0, 2)), lambda x: x.prod(2).prod(0)),
    "exclude": (CUBE, lambda x: nd.prod(x, axis=1, exclude=True), lambda x: x.prod(2).prod(0)),
    "no_zero": (ROWS + 3, lambda x: x.prod(axis=1), lambda x: x.prod(1)),
    "nanprod": (ROWS, lambda x: nd.nanprod(x, axis=1), lambda x: x.prod(1)),
    "np": (ROWS, as_np(lambda x: np_.prod(x, axis=1)), lambda x: x.prod(1)),
    "np_all": (ISSUE, as_np(lambda x: np_.prod(x).reshape((1,))), lambda x: x.prod().reshape(1)),
}
BASES = np.array([0.0, 1, 2, 0, 3, 0.5])
POWERS = {
    "square": (BASES - 1, lambda x: x**2, lambda x: x**2),
    "cube": (BASES - 1, lambda x: x**3, lambda x: x**3),
    "first": (BASES, lambda x: x**1, lambda x: x**1),
    "none": (BASES, lambda x: x**0, lambda x: x**0),
    "array": (BASES, lambda x: nd.broadcast_power(x, nd.array([0, 0, 1, 1, 2, 3], dtype=x.dtype)),
              lambda x: x ** torch.tensor([0.0, 0, 1, 1, 2, 3])),
    "equal_shapes": (BASES, lambda x: nd.power(x, nd.zeros_like(x)), lambda x: x ** torch.zeros_like(x)),
    "of_zero": (BASES + 2, lambda x: nd.broadcast_power(nd.zeros_like(x), x), lambda x: torch.zeros_like(x) ** x),
    "of_number_zero": (BASES + 2, lambda x: 0.0**x, lambda x: torch.zeros_like(x) ** x),
    "with_itself": (BASES + 0.5, lambda x: nd.power(x, x), lambda x: x**x),
}  # fmt: skip


@pytest.mark.parametrize("hybrid", [False, True], ids=["arrays", "hybrid"])
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_zeros(name: str, order: int, hybrid: bool) -> None:
    x, ours, theirs = PRODUCTS[name]
    want = expected(theirs, x, order)
    np.testing.assert_allclose(derivative(ours, x, order, hybrid, "float64"), want, rtol=1e-9, atol=1e-9)
    scale = max(np.abs(want).max(), 1)
    np.testing.assert_allclose(derivative(ours, x, order, hybrid, "float32"), want, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("hybrid", [False, True], ids=["arrays", "hybrid"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", POWERS)
def test_powers_with_zeros(name: str, order: int, hybrid: bool) -> None:
    x, ours, theirs = POWERS[name]
    want = np.nan_to_num(expected(theirs, x, order), nan=0.0)  # 0 where PyTorch gives NaN
    np.testing.assert_allclose(derivative(ours, x, order, hybrid, "float64"), want, rtol=1e-9, atol=1e-9)


def test_nan_counts_as_one_in_every_derivative() -> None:
    x = np.array([2.0, np.nan, 0, 5])
    got = derivative(lambda a: nd.nanprod(a), x, 1, False, "float64")
    np.testing.assert_array_equal(got, [0, 0, 5.0, 0])
    a = nd.array(x, dtype="float64")
    a.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(nd.nanprod(a), [a], create_graph=True, retain_graph=True)
        loss = g.sum()
    loss.backward()
    np.testing.assert_array_equal(a.grad.asnumpy(), [5, 0, 7, 2])


@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0, 3), 0), ((3, 0), 1), ((3, 0), 0)])
def test_products_of_nothing_have_gradients_of_their_shape(shape: tuple[int, ...], axis: int | None) -> None:
    x = nd.zeros(shape)
    x.attach_grad()
    with autograd.record():
        y = x.prod() if axis is None else x.prod(axis=axis)
    y.backward()
    assert x.grad.shape == shape
