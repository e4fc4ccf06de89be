"""Convolution, BatchNorm and relu are one kernel in prediction."""

import hybridnet as mx
from hybridnet.gluon import nn


def test_convolution_norm_and_relu_are_one_kernel() -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, in_channels=3), nn.BatchNorm(in_channels=8), nn.Activation("relu"))
    net.initialize()
    net.hybridize()
    data = mx.nd.ones((1, 3, 8, 8))
    net(data)
    with mx.test_utils.exec_counts() as ran:
        net(data)
    assert sum(ran.values()) == 1
    with mx.autograd.record():
        net(data)
    assert "BatchNorm" in net.plan_text()  # training needs the statistics of the batch
