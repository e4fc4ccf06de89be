"""Convolutions in prediction equal float64 sums for every kernel, and kernels run where they pay."""

import os
import subprocess
import sys
from pathlib import Path

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import nd
from hybridnet.gluon import nn

ACTIVATIONS = {
    "none": lambda y: y,
    "relu": lambda y: np.maximum(y, 0),
    "relu6": lambda y: np.clip(y, 0, 6),
    "tanh": np.tanh,
    "sigmoid": lambda y: 1 / (1 + np.exp(-y)),
    "elu": lambda y: np.where(y > 0, y, np.expm1(y)),
}


def convolution(x, w, b, stride, pad, groups):
    """Computes a convolution in float64, tap by tap."""
    n, _, h, width = x.shape
    o, per_group, kh, kw = w.shape
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = (h + 2 * pad - kh) // stride + 1, (width + 2 * pad - kw) // stride + 1
    x, w = (
        x.reshape(n, groups, per_group, *x.shape[2:]),
        w.astype("float64").reshape(groups, o // groups, per_group, kh, kw),
    )
    y = np.zeros((n, groups, o // groups, rows, columns))
    for i in range(kh):
        for j in range(kw):
            part = x[:, :, :, i : i + rows * stride : stride, j : j + columns * stride : stride]
            y += np.einsum("ngchw,goc->ngohw", part, w[:, :, :, i, j])
    return y.reshape(n, o, rows, columns) + b.astype("float64").reshape(1, -1, 1, 1)


class Chain(nn.HybridBlock):
    """The tested convolution between two others, so that a plan makes all of them channels-last."""

    def __init__(self, channels, filters, activation, residual, **options):
        super().__init__()
        self._activation, self._residual = activation, residual
        with self.name_scope():
            self.before = nn.Conv2D(channels, 3, padding=1, in_channels=4)
            self.middle = nn.Conv2D(filters, in_channels=channels, **options)
            self.after = nn.Conv2D(8, 1, in_channels=filters)

    def hybrid_forward(self, F, x):
        x = self.before(x)
        y = self.middle(x)
        if self._residual:
            y = y + x
        if self._activation == "relu6":
            y = F.clip(y, 0, 6)
        elif self._activation == "elu":
            y = F.LeakyReLU(y, act_type="elu", slope=1.0)
        elif self._activation != "none":
            y = F.Activation(y, act_type=self._activation)
        return self.after(y)


def check(
    rng, size, channels, filters, activation="relu", residual=False, batch=2, stride=1, padding=0, groups=1, **options
):
    net = Chain(channels, filters, activation, residual, strides=stride, padding=padding, groups=groups, **options)
    net.initialize(mx.init.Normal(0.2))
    for name, param in net.collect_params().items():
        if name.endswith("bias"):
            param.set_data(nd.array(rng.normal(size=param.shape)))
    net.hybridize()
    x = rng.normal(size=(batch, 4, *size)).astype("float32")
    found = [net(nd.array(x)).asnumpy() for _ in range(2)]  # the second reads packed weights
    value = lambda layer, kind: getattr(layer, kind).data().asnumpy()  # noqa: E731
    before = convolution(x, value(net.before, "weight"), value(net.before, "bias"), 1, 1, 1)
    y = convolution(before, value(net.middle, "weight"), value(net.middle, "bias"), stride, padding, groups)
    y = ACTIVATIONS[activation](y + before if residual else y)
    expected = convolution(y, value(net.after, "weight"), value(net.after, "bias"), 1, 0, 1)
    for result in found:
        np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())
    return net


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (14, 14)])
def test_convolutions_of_single_pixels(rng, activation, residual, size):
    check(rng, size, 64, 64, activation, residual, kernel_size=1)


@pytest.mark.parametrize("channels, filters", [(40, 33), (32, 200), (300, 32)])
@pytest.mark.parametrize("batch, size", [(1, (7, 7)), (3, (9, 4)), (2, (20, 20))])
def test_convolutions_of_single_pixels_of_any_number_of_channels(rng, channels, filters, batch, size):
    check(rng, size, channels, filters, batch=batch, kernel_size=1)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("residual", [False, True])
def test_depthwise_convolutions(rng, activation, residual):
    check(rng, (9, 7), 24, 24, activation, residual, kernel_size=3, padding=1, groups=24)


@pytest.mark.parametrize("stride, padding", [(1, 0), (2, 1), (3, 2)])
@pytest.mark.parametrize("channels", [1, 13, 40])
def test_depthwise_convolutions_of_any_form(rng, stride, padding, channels):
    check(rng, (11, 8), channels, channels, kernel_size=3, stride=stride, padding=padding, groups=channels)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("residual", [False, True])
def test_convolutions_end_with_any_activation(rng, activation, residual):
    check(rng, (6, 5), 8, 8, activation, residual, kernel_size=5, padding=2)


# Runs in a separate process, in which kernels are chosen for AVX2.
CHOICE = """
import hybridnet as mx
from hybridnet import nd
from hybridnet.gluon.model_zoo import vision
net = vision.mobilenet1_0(classes=10)
net.initialize()
net.hybridize()
net(nd.ones((1, 3, 64, 64))).wait_to_read()
text = net.plan_text()
print(text.count("packed product"), text.count("depthwise"))
"""


def test_a_mobilenet_predicts_by_packed_products_and_depthwise_kernels():
    environment = {
        **os.environ,
        "HYBRIDNET_MAX_ISA": "avx2",
        "PYTHONPATH": str(Path(mx.__file__).resolve().parents[1]),
    }
    done = subprocess.run([sys.executable, "-c", CHOICE], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    packed, depthwise = map(int, done.stdout.split())
    if "avx2" not in mx.runtime.isa() and (packed, depthwise) == (0, 0):
        pytest.skip("the machine has no AVX2")
    assert packed >= 9  # the layers with images of at most 512 pixels
    assert depthwise == 13
