"""One call of each family of kernels, at sizes beyond a block and off its boundaries: compute-sanitizer watches it."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
from hybridnet import autograd

from .outcome import Options, Outcome

__all__ = ["run_each"]

GPU = mx.gpu(0)


def run_each(options: Options) -> Outcome:
    """Runs forward and backward of each family; results are compared elsewhere."""
    rng = np.random.default_rng(0)
    rows, columns = options.size(67, 13), options.size(1031, 37)
    x = mx.nd.array(rng.normal(size=(rows, columns)), ctx=GPU)
    row = mx.nd.array(rng.normal(size=(1, columns)), ctx=GPU)
    index = mx.nd.array(rng.integers(0, rows, rows * 3), ctx=GPU)
    square = mx.nd.dot(x, x.T) * 0.01
    x.attach_grad()
    with autograd.record():
        parts = [
            mx.nd.exp(x * 0.1).sum(),
            mx.nd.broadcast_mul(x, row).mean(axis=0).sum(),
            mx.nd.transpose(x).slice_axis(axis=0, begin=1, end=columns - 1).norm(),
            mx.nd.softmax(x).max(axis=1).sum(),
            mx.nd.log_softmax(x, axis=0).min(),
            mx.nd.take(x, index).sum(),
            mx.nd.LayerNorm(x, mx.nd.ones((columns,), ctx=GPU), mx.nd.zeros((columns,), ctx=GPU)).sum(),
            mx.nd.dot(square, x).sum(),
            mx.nd.concat(x, x.flip(axis=1), dim=0).square().sum(),
            mx.nd.Pooling(x.reshape((1, 1, rows, columns)), kernel=(3, 3), pool_type="max").sum(),
            mx.nd.where(x > 0, x, x * 0.1).sum(),
        ]
        total = mx.nd.add_n(*[part.reshape((1,)) for part in parts])
    total.backward()
    _without_gradient(x)
    mx.cuda.synchronize(GPU)
    return Outcome(line=f"{len(parts)} families forward and backward, ({rows}, {columns})")


def _without_gradient(x: mx.nd.NDArray) -> None:
    for dtype in ("float16", "float64", "int32", "uint8", "bool"):
        x.astype(dtype).astype("float32").sum()
    mx.nd.random.normal(shape=x.shape, ctx=GPU)
    mx.nd.random.uniform(shape=(1000,), ctx=GPU)
    mx.nd.argmax(x, axis=1)
    mx.nd.topk(x, k=3)
    mx.nd.sort(x, axis=1)
    mx.nd.cumsum(x, axis=0)
    mx.nd.one_hot(mx.nd.arange(5, ctx=GPU), 7)
    weight, state = x.copy(), mx.nd.zeros_like(x)
    mx.nd.sgd_mom_update(weight, x.grad, state, lr=0.1, momentum=0.9, out=weight)
    mx.nd.adam_update(weight, x.grad, state, mx.nd.zeros_like(x), lr=0.1, out=weight)
