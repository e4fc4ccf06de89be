"""Dense layers of floats with weights of bytes pass gradients on, so that adapters beside them can be trained."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd
from hybridnet.contrib import quantization
from hybridnet.gluon import nn

LAYERS = ["weight_only_fully_connected", "dynamic_quantized_fully_connected"]


def layer(name: str, arrays: list[nd.NDArray], **options: Any) -> nd.NDArray:
    return getattr(nd.contrib, name)(*arrays, **options)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(
    ("shape", "flatten"), [((7, 12), True), ((3, 4, 3), True), ((2, 3, 12), False), ((0, 12), True)]
)
@pytest.mark.parametrize("bias", [True, False])
def test_gradients_are_those_of_the_layer_of_floats(name, shape, flatten, bias, rng):
    bytes_ = rng.integers(-127, 128, (5, 12)).astype("int8")
    scale = rng.uniform(0.001, 0.02, 5).astype("float32")
    data = nd.array(rng.normal(size=shape).astype("float32"))
    arrays = [data, nd.array(bytes_, dtype="int8"), nd.array(scale)] + [nd.array(rng.normal(size=5))] * bias
    for i in (0, 2, 3)[: 2 + bias]:
        arrays[i].attach_grad()
    with mx.util.np_shape(True), autograd.record():
        out = layer(name, arrays, num_hidden=5, no_bias=not bias, flatten=flatten)
    head = rng.normal(size=out.shape).astype("float32")
    out.backward(nd.array(head) if out.size else nd.zeros_like(out))
    x, dy = data.asnumpy().astype("float64").reshape(-1, 12), head.astype("float64").reshape(-1, 5)
    weight = bytes_.astype("float64") * scale[:, None].astype("float64")
    expected = [(dy @ weight).reshape(shape), (dy * (x @ bytes_.T.astype("float64"))).sum(0), dy.sum(0)]
    found = [arrays[i].grad.asnumpy() for i in (0, 2, 3)[: 2 + bias]]
    for ours, wanted in zip(found, expected, strict=False):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["weights", "dynamic"])
@pytest.mark.parametrize("hybridize", [False, True])
def test_a_layer_in_front_of_a_quantized_net_learns(mode, hybridize, rng):
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu", in_units=8), nn.Dense(2, in_units=16))
    net.initialize(mx.init.Xavier())
    quantized = quantization.quantize_net(net, mode=mode, data_shapes=[(4, 8)])
    adapter = nn.Dense(8, in_units=8)
    adapter.initialize(mx.init.Xavier())
    if hybridize:
        adapter.hybridize()
        quantized.hybridize()
    trainer = mx.gluon.Trainer(adapter.collect_params(), "adam", {"learning_rate": 0.02})
    x = nd.array(rng.normal(size=(32, 8)))
    y = nd.array((x.asnumpy()[:, 0] > 0).astype("float32"))
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    losses = []
    for _ in range(60):
        with autograd.record():
            loss = loss_of(quantized(adapter(x)), y).mean()
        loss.backward()
        trainer.step(1)
        losses.append(float(loss.asscalar()))
    assert losses[-1] < 0.5 * losses[0]
