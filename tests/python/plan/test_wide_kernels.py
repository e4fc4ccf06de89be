"""Gradients of convolutions whose kernels are as wide as their data use kernels that do not sum zeros."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd

torch = pytest.importorskip("torch")
F = torch.nn.functional


class Words(mx.gluon.HybridBlock):
    """A text classifier: a convolution over whole words, then the maximum over a sentence."""

    def __init__(self, kernel, length):
        super().__init__()
        self.options = {"kernel": kernel, "num_filter": 16}
        self.pool = (length - kernel[0] + 1, 1)[: len(kernel)]

    def hybrid_forward(self, F, x, w, b):
        return F.Pooling(F.relu(F.Convolution(x, w, b, **self.options)), kernel=self.pool, pool_type="max")


@pytest.mark.parametrize(
    ("shape", "kernel"), [((8, 1, 24, 60), (3, 60)), ((8, 2, 24, 60), (5, 60)), ((9, 1, 30), (26,))]
)
def test_gradients_of_kernels_that_are_wider_than_their_results_do_not_sum_zeros(shape, kernel, rng) -> None:
    """With channels last, oneDNN sums over the whole kernel for each pixel of the data, 24 times the work here."""
    net = Words(kernel, shape[2])
    net.hybridize()
    values = [rng.normal(size=s).astype("float32") for s in (shape, (16, shape[1], *kernel), (16,))]
    arrays = [mx.nd.array(value) for value in values]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        out = net(*arrays)
    out.backward()
    backward = [line for line in net.plan_text().splitlines() if "_conv_backward_data" in line]
    assert backward and all("brg" not in line for line in backward)
    inputs = [torch.tensor(value, requires_grad=True) for value in values]
    convolution, pooling = ((F.conv1d, F.max_pool1d), (F.conv2d, F.max_pool2d))[len(kernel) - 1]
    pooling(torch.relu(convolution(*inputs)), net.pool).sum().backward()
    for array, given in zip(arrays, inputs, strict=True):
        want = given.grad.numpy()
        np.testing.assert_allclose(array.grad.asnumpy(), want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
