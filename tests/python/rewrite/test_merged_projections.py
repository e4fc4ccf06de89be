"""The projections of attention become one product if their weights are, or can permanently become, one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn

from rewrite.graphs import Function

UNITS, HEADS = 24, 3
X = (2, 60, UNITS)


def _attention(F: Any, q: Any, k: Any, v: Any, drop: float = 0) -> Any:
    q, k, v = (x.reshape((0, 0, HEADS, -1)).transpose((0, 2, 1, 3)).reshape((-3, 0, 0)) for x in (q, k, v))
    weights = F.Dropout(F.softmax(F.batch_dot(q, k, transpose_b=True) / 8), p=drop)
    out = F.batch_dot(weights, v).reshape((-4, -1, HEADS, 0, 0)).transpose((0, 2, 1, 3))
    return out.reshape((0, 0, -3))


def _dense(F: Any, x: Any, w: Any, b: Any) -> Any:
    return F.FullyConnected(x, w, b, num_hidden=UNITS, flatten=False)


def _slices(F: Any, x: Any, w: Any, b: Any) -> Any:
    parts = [F.slice_axis(w, axis=0, begin=i * UNITS, end=(i + 1) * UNITS) for i in range(3)]
    return _attention(F, *(_dense(F, x, part, bias) for part, bias in zip(parts, F.split(b, 3, axis=0), strict=True)))


def _split(F: Any, x: Any, w: Any, b: Any) -> Any:
    return _attention(F, *(_dense(F, x, part, b) for part in F.split(w, 3, axis=0)), drop=0.2)


def _other_order(F: Any, x: Any, w: Any, b: Any) -> Any:
    return _attention(F, *(_dense(F, x, part, b) for part in list(F.split(w, 3, axis=0))[::-1]))


def _part_only(F: Any, x: Any, w: Any, b: Any) -> Any:
    return _attention(F, *(_dense(F, x, part, b) for part in list(F.split(w, 4, axis=0))[:3]))


def _trained(function: Callable[..., Any], arrays: list[mx.nd.NDArray], exclude: list[str]) -> Any:
    net = Function(function)
    net.hybridize(exclude=exclude)
    for array in arrays:
        array.attach_grad()
    mx.random.seed(3)
    with autograd.record():
        out = net(*arrays)
    out.backward(mx.nd.arange(out.size, dtype="float64").reshape(out.shape) % 7)
    return [out.asnumpy(), *(a.grad.asnumpy() for a in arrays)], net.plan_text()


def _arrays(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[mx.nd.NDArray]:
    return [mx.nd.array(rng.normal(size=shape), dtype="float64") for shape in shapes]


@pytest.mark.parametrize(
    ("function", "bias"), [(_slices, 3 * UNITS), (_split, UNITS)], ids=["slices with biases", "split with one bias"]
)
def test_rows_of_one_array_are_one_product_also_in_training(function, bias, rng):
    arrays = _arrays(rng, X, (3 * UNITS, UNITS), (bias,))
    apart, _ = _trained(function, arrays, ["qkv_merge"])
    merged, text = _trained(function, arrays, [])
    assert text.count("FullyConnected") == 1
    for a, b in zip(apart, merged, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-11 * np.abs(a).max())


@pytest.mark.parametrize(
    ("function", "rows"), [(_other_order, 3), (_part_only, 4)], ids=["in another order", "a part of the array"]
)
def test_other_rows_are_products_of_their_own(function, rows, rng):
    _, text = _trained(function, _arrays(rng, X, (rows * UNITS, UNITS), (UNITS,)), [])
    assert text.count("FullyConnected") == 3


class _Layers(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.query, self.key, self.value = (nn.Dense(UNITS, flatten=False, in_units=UNITS) for _ in range(3))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return _attention(F, self.query(x), self.key(x), self.value(x))


def test_layers_are_joined_once_in_prediction_and_never_in_training(rng):
    net = _Layers()
    net.initialize(mx.init.Normal(1))
    x = mx.nd.array(rng.normal(size=X))
    expected = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    text = net.plan_text()
    assert text.count("FullyConnected") == 1
    assert text.index("prepared once") < text.index("Concat")
    with autograd.record():
        net(x).backward()
    assert net.plan_text().split("forward:")[1].split("backward:")[0].count("FullyConnected") == 3


def test_new_weights_are_joined_anew(rng):
    net = _Layers()
    net.initialize(mx.init.Normal(1))
    net.hybridize()
    x = mx.nd.array(rng.normal(size=X))
    net(x).wait_to_read()
    net.key.weight.set_data(mx.nd.array(rng.normal(size=(UNITS, UNITS))))
    merged = net(x).asnumpy()
    net.hybridize(False)
    np.testing.assert_allclose(merged, net(x).asnumpy(), rtol=1e-4, atol=1e-5)
