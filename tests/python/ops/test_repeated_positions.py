"""If positions of a write repeat, the last value stays, and only it has gradients, of any order."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd

KEYS = [[0, 0, 0], [2, 0, 2], [1, 1, 3, 0, 1]]


def _written(size: int, key: list[int], values: np.ndarray) -> np.ndarray:
    out = np.zeros(size)
    out[key] = values
    return out


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("hybridize", [False, True])
def test_gradients_of_writes_to_repeated_positions(key: list[int], hybridize: bool) -> None:
    class Net(mx.gluon.HybridBlock):
        def forward(self, x, values):
            y = x * 1
            y[key] = values * values
            return y * y * y

    net = Net()
    net.hybridize(hybridize)
    x = mx.nd.arange(1, 5, dtype="float64")
    values = mx.nd.arange(2, 2 + len(key), dtype="float64")
    for array in (x, values):
        array.attach_grad()
    with autograd.record():
        out = net(x, values)
    out.backward()
    v = values.asnumpy()
    last = np.array([position not in key[i + 1 :] for i, position in enumerate(key)])
    np.testing.assert_allclose(values.grad.asnumpy(), np.where(last, 6 * v**5, 0))
    untouched = [i not in key for i in range(4)]
    np.testing.assert_allclose(x.grad.asnumpy(), np.where(untouched, 3 * x.asnumpy() ** 2, 0))


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_second_order_of_scatter_nd_with_repeated_tuples(key: list[int]) -> None:
    values = mx.nd.arange(2, 2 + len(key), dtype="float64")
    values.attach_grad()
    with autograd.record():
        out = mx.nd.scatter_nd(values * values, mx.nd.array([key]), shape=(4,))
        first = autograd.grad((out * out).sum(), [values], create_graph=True)[0]
    first.backward()
    v = values.asnumpy()
    last = np.array([position not in key[i + 1 :] for i, position in enumerate(key)])
    np.testing.assert_allclose(out.asnumpy(), _written(4, key, v**2))
    np.testing.assert_allclose(first.asnumpy(), np.where(last, 4 * v**3, 0))
    np.testing.assert_allclose(values.grad.asnumpy(), np.where(last, 12 * v**2, 0))
