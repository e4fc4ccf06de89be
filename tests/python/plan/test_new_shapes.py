"""What new shapes cost a hybridized block, and what it keeps for them."""

import gc
import os
import random

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd
from hybridnet.gluon import nn

UNITS = 24


def perceptron():
    net = nn.HybridSequential()
    for _ in range(3):
        net.add(nn.Dense(UNITS, activation="relu", in_units=UNITS, flatten=False), nn.LayerNorm(in_channels=UNITS))
    net.initialize(mx.init.Normal(0.3))
    return net


def run(net, data):
    """The output, and the gradients of the data and of all parameters."""
    data.attach_grad()
    with autograd.record():
        out = net(data)
    out.backward()
    return [out.asnumpy(), data.grad.asnumpy(), *(p.grad().asnumpy() for p in net.collect_params().values())]


@pytest.mark.parametrize("static_alloc", [False, True])
def test_batches_and_lengths_in_any_order_are_rewritten_twice_and_stay_right(rng, static_alloc):
    net = perceptron()
    shapes = [(n, t, UNITS) for n, t in zip(range(2, 20), random.Random(3).sample(range(25, 60), 18), strict=True)]
    inputs = [nd.array(rng.normal(size=shape)) for shape in shapes]
    expected = [run(net, data) for data in inputs]
    net.hybridize(static_alloc=static_alloc)
    for data, arrays in zip(inputs, expected, strict=True):
        for found, wanted in zip(run(net, data), arrays, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    assert net._cached_op.num_linked == len(shapes)
    assert net._cached_op.num_rewritten == 2


def resident():
    gc.collect()
    mx.nd.waitall()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.parametrize("static_alloc", [False, True])
def test_memory_is_flat_after_the_first_500_of_5000_shapes(static_alloc):
    net = perceptron()
    net.hybridize(static_alloc=static_alloc)
    sizes = [(n, t) for n in range(2, 52) for t in range(25, 125)]
    random.Random(5).shuffle(sizes)
    assert len(sizes) == 5000
    seen = []
    for i, (n, t) in enumerate(sizes):
        net(nd.ones((n, t, UNITS))).wait_to_read()
        if i % 500 == 499:
            seen.append(resident())
    assert max(seen[1:]) < seen[0] + 8 * 2**20, [bytes_ >> 20 for bytes_ in seen]
