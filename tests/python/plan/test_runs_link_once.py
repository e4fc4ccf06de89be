"""Each instruction of a plan is linked once: a hundred runs link once."""

from __future__ import annotations

import hybridnet as mx
from hybridnet.gluon import nn


def test_a_hundred_runs_link_once():
    net, x = nn.Dense(4, in_units=3, activation="relu"), mx.sym.var("x")
    net.initialize()
    f = mx.function([x], net(x))
    assert (f._op.num_linked, f._op.num_kernels) == (0, 0)  # the sizes are unknown before the first call
    value = mx.nd.ones((2, 3))
    for _ in range(100):
        f(value)
    kernels = f._op.num_kernels
    assert (f._op.num_linked, f._op.num_layouts, f._op.num_rewritten) == (1, 1, 1)
    assert kernels > 0
    f(value)
    assert f._op.num_kernels == kernels


def test_layers_of_equal_sizes_share_a_kernel():
    x, y = mx.sym.var("x"), None
    y = x
    for k in range(6):
        y = mx.sym.softmax(
            mx.sym.FullyConnected(y, mx.shared(mx.nd.ones((8, 8)), name=f"w{k}"), no_bias=True, num_hidden=8)
        )
    f = mx.function([x], y)
    f(mx.nd.ones((4, 8)))
    assert f.plan_text().count("] FullyConnected ") == 6
    assert f._op.num_kernels <= 2
