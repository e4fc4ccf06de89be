"""The profiles none, fast_compile, fast_run and debug give the same values."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import nn

PROFILES = ["none", "fast_compile", "fast_run", "debug"]


def run(profile, train):
    rng = np.random.RandomState(5)
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(4, 3, in_channels=2, activation="relu"),
        nn.BatchNorm(in_channels=4),
        nn.Flatten(),
        nn.Dense(3, in_units=64),
    )
    net.initialize()
    for param in net.collect_params().values():
        param.set_data(mx.nd.array(rng.rand(*param.shape)))
    x, h = mx.sym.var("x"), mx.shared(rng.rand(3), name="h")
    logits = net(x)
    looped, last = mx.sym.contrib.foreach(lambda row, s: (mx.sym.tanh(row + s), s * 0.5 + row), logits, h)
    chosen = mx.sym.contrib.cond(mx.sym.sum(last) > 0, lambda: last * 2, lambda: last - 1)
    f = mx.function([x], [looped, chosen], updates={h: last}, passes=profile)
    data = mx.nd.array(rng.rand(6, 2, 6, 6))
    data.attach_grad()
    results = []
    for _ in range(2):
        with mx.autograd.record(train_mode=train):
            outs = f(data)
            total = outs[0].sum() + (outs[1] * outs[1]).sum()
        total.backward()
        results += [*outs, data.grad.copy(), net[0].weight.grad().copy(), h.get_value()]
        results += [outs[0].copy() for outs in [f(data)]]
    return [result.asnumpy() for result in results]


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("profile", PROFILES[1:])
def test_same_values(profile, train):
    for given, wanted in zip(run(profile, train), run("none", train), strict=True):
        np.testing.assert_allclose(given, wanted, rtol=2e-4, atol=1e-5)


def test_unknown_words_are_named():
    x = mx.sym.var("x")
    with pytest.raises(mx.MXNetError, match="fats_run"):
        mx.function([x], x + 1, passes="fats_run")


def test_rewrites_by_name():
    x = mx.sym.var("x")
    text = {}
    for passes in ("fast_run", "fast_run,-fuse_elementwise"):
        f = mx.function([x], mx.sym.tanh(x * 2 + 1), passes=passes)
        f(mx.nd.ones((4, 4)))
        text[passes] = f.plan_text()
    assert "_fused_elementwise" in text["fast_run"]
    assert "_fused_elementwise" not in text["fast_run,-fuse_elementwise"]
