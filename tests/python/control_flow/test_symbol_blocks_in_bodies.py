"""A block that was made of Symbols, such as an imported or a quantized one, is part of the body that calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd
from hybridnet.gluon import HybridBlock, SymbolBlock


def _imported() -> SymbolBlock:
    x, state, w = (mx.sym.var(name) for name in ("x", "state", "w"))
    total = mx.sym.broadcast_add(mx.sym.broadcast_mul(x, w), state)
    block = SymbolBlock(mx.sym.Group([mx.sym.tanh(total), total * 2]), [x, state])
    block.collect_params()["w"].shape = (1, 3)
    block.initialize(init=mx.init.Constant(0.5))
    return block


def _imported_single() -> SymbolBlock:
    x, w = mx.sym.var("x"), mx.sym.var("w")
    block = SymbolBlock(mx.sym.broadcast_mul(mx.sym.tanh(x), w), x)
    block.collect_params()["w"].shape = (1, 3)
    block.initialize(init=mx.init.Constant(0.5))
    return block


def _foreach(block: HybridBlock, x: Any) -> Any:
    def body(row: Any, state: Any) -> Any:
        out, state = block(row, state)
        return out.reshape(out.shape), state * 0.25  # the shapes are known while the body is traced

    return nd.contrib.foreach(body, x, nd.zeros_like(x[0]))[0]


def _while_loop(block: HybridBlock, x: Any) -> Any:
    def body(i: Any, state: Any) -> Any:
        out, state = block(x[0], state)
        return out, (i + 1, state * 0.25)

    return nd.contrib.while_loop(lambda i, _: i < 3, body, (nd.zeros((1,)), nd.zeros_like(x[0])), 4)[1][1]


def _cond(block: HybridBlock, x: Any) -> Any:
    return nd.contrib.cond(x.sum() > 0, lambda: block(x[0], x[1])[0], lambda: block(x[1], x[0])[1])


def _nested(block: HybridBlock, x: Any) -> Any:
    return nd.contrib.foreach(lambda row, state: (_foreach(block, x) + row.sum(), state), x, [])[0]


class _Net(HybridBlock):
    def __init__(self, block: HybridBlock, function: Callable[..., Any]) -> None:
        super().__init__()
        self.block, self.function = block, function

    def forward(self, x: Any) -> Any:
        return self.function(self.block, x)


def _called(block: HybridBlock, x: Any) -> Any:
    return block(x) + 1


def _single_foreach(block: HybridBlock, x: Any) -> Any:
    return nd.contrib.foreach(lambda row, state: (block(row) + state, state + 1), x, nd.zeros((1,)))[0]


CASES = {
    "foreach": (_imported, _foreach),
    "while_loop": (_imported, _while_loop),
    "cond": (_imported, _cond),
    "foreach in foreach": (_imported, _nested),
    "one output": (_imported_single, _called),
    "one output in foreach": (_imported_single, _single_foreach),
}


@pytest.mark.parametrize("case", CASES)
def test_a_symbol_block_in_a_body_gives_the_values_and_gradients_of_the_imperative_run(case, rng):
    block, function = CASES[case]
    x = nd.array(rng.normal(size=(4, 2, 3)).astype("float32"))
    net = _Net(block(), function)
    results = []
    for hybrid in (False, True):
        net.hybridize(hybrid, strict=hybrid)
        x.attach_grad()
        with autograd.record():
            out = net(x)
        out.backward()
        weight = next(iter(net.collect_params().values()))
        results.append([a.asnumpy() for a in (net(x), out, x.grad, weight.grad())])
    for imperative, hybridized in zip(*results, strict=True):
        np.testing.assert_allclose(hybridized, imperative, rtol=1e-5, atol=1e-6)
    assert np.abs(results[0][3]).max() > 0


def test_a_quantized_block_in_a_body_gives_the_values_of_the_imperative_run(rng):
    dense = mx.gluon.nn.Dense(3, in_units=3)
    dense.initialize()
    light = mx.contrib.quantization.quantize_net(dense, data_shapes=[(2, 3)], mode="weights")
    net = _Net(light, _single_foreach)
    x = nd.array(rng.normal(size=(4, 2, 3)).astype("float32"))
    expected = net(x).asnumpy()
    net.hybridize(strict=True)
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-6)
