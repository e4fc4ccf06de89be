"""Peak memory of training steps of hybridized networks, as their plans report it."""

from __future__ import annotations

import re

import hybridnet as mx
from hybridnet import autograd
from hybridnet.gluon import nn


def arena_of_backward(net: nn.HybridSequential, kept: int, *shape: int) -> int:
    """Arena bytes of the backward plan for data of this shape, if at most `kept` bytes are kept for backward."""
    net.initialize()
    net.hybridize(static_alloc=True, remat=kept)
    data = mx.nd.ones(shape)
    data.attach_grad()
    with autograd.record():
        out = net(data)
    out.backward()
    mx.nd.waitall()
    return int(re.findall(r"backward: \d+ instructions, arena (\d+) bytes", net.pass_report())[0])


def sequence(*layers: nn.HybridBlock) -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def test_an_activation_made_again_for_the_weight_of_dense_is_gone_before_the_gradient_of_data():
    hidden = 4 * 1024 * 2048
    net = sequence(nn.Dense(2048), nn.GELU(), nn.Dense(16))
    assert arena_of_backward(net, hidden, 1024, 16) < 1.5 * hidden


def test_an_activation_made_again_for_the_weight_of_a_convolution_is_gone_before_the_gradient_of_data():
    hidden = 4 * 8 * 32 * 128 * 128
    net = sequence(nn.Conv2D(32, 1), nn.GELU(), nn.Conv2D(4, 1))
    assert arena_of_backward(net, hidden, 8, 4, 128, 128) < 1.5 * hidden
