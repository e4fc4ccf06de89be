# ruff: noqa: E501
"""Layers that read only slices of the loop's data run once, in front of the loop."""

from __future__ import annotations

import json

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import foreach

from .blocks import Block

nd = mx.nd


def normal(*shape, seed=0):
    return nd.array(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def case(name):
    """Returns (function, its blocks, arrays, the operator that moves)."""
    nn = gluon.nn
    if name == "dense":
        layer, other = nn.Dense(4, in_units=3), nn.Dense(4, in_units=4)
        return (
            lambda x, s: foreach(lambda d, h: (h, (layer(d) + other(h)).tanh()), x, s),
            (layer, other),
            (normal(6, 2, 3), normal(2, 4)),
            "FullyConnected",
        )
    if name == "dense twice":
        layer, other = nn.Dense(4, in_units=3), nn.Dense(4, in_units=4)
        return (
            lambda x, s: foreach(lambda d, h: (other(layer(d)) * h, h + 1), x, s),
            (layer, other),
            (normal(6, 2, 3), normal(2, 4)),
            "FullyConnected",
        )
    if name == "dense of a view":
        layer = nn.Dense(4, in_units=6)
        return (
            lambda x, s: foreach(lambda d, h: (layer(d.reshape((1, -1))) + h, h), x, s),
            (layer,),
            (normal(5, 2, 3), normal(1, 4)),
            "FullyConnected",
        )
    if name == "dense of the last axis":
        layer = nn.Dense(4, in_units=3, flatten=False)
        return (
            lambda x, s: foreach(lambda d, h: (layer(d) * h, h * 0.9), x, s),
            (layer,),
            (normal(5, 2, 2, 3), normal(2, 2, 4)),
            "FullyConnected",
        )
    if name == "embedding":
        layer = nn.Embedding(7, 4)
        return (
            lambda x, s: foreach(lambda d, h: (h, (h + layer(d)).tanh()), x, s),
            (layer,),
            (nd.array([[1, 2], [0, 6], [3, 3]]), normal(2, 4)),
            "Embedding",
        )
    if name == "embedding of scalars":
        layer = nn.Embedding(7, 4)
        return (
            lambda x, s: foreach(lambda d, h: (h, (h + layer(d)).tanh()), x, s),
            (layer,),
            (nd.array([1, 0, 3]), normal(1, 4)),
            "Embedding",
        )
    if name == "convolution":
        layer = nn.Conv2D(4, 3, padding=1, in_channels=2)
        return (
            lambda x, s: foreach(lambda d, h: (h, (h + layer(d)).tanh()), x, s),
            (layer,),
            (normal(3, 2, 2, 5, 5), normal(2, 4, 5, 5)),
            "Convolution",
        )
    weight = normal(3, 4, seed=5)

    def through(d):
        return (mx.sym if isinstance(d, mx.sym.Symbol) else nd).dot(d, weight)

    return (
        lambda x, s: foreach(lambda d, h: (h, (h + through(d)).tanh()), x, s),
        (),
        (normal(6, 2, 3), normal(2, 4)),
        "dot",
    )


CASES = [
    "dense",
    "dense twice",
    "dense of a view",
    "dense of the last axis",
    "embedding",
    "embedding of scalars",
    "convolution",
    "dot",
]


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_stay(name):
    function, blocks, arrays, moved = case(name)
    block, found = Block(function, *blocks), []
    for hybridized in (False, True):
        block.hybridize(hybridized)
        for array in arrays:
            array.attach_grad()
        with mx.autograd.record():
            outs, last = block(*arrays)
            loss = (outs * outs).sum() + last.sum()
        loss.backward()
        gradients = [p.grad().asnumpy() for p in block.collect_params().values()]
        found.append([outs.asnumpy(), *(a.grad.asnumpy() for a in arrays), *gradients])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)
    with mx.autograd.predict_mode():
        block(*arrays)[0].wait_to_read()
    outside = [line for line in block._cached_op.graph_text().splitlines() if line.startswith("%")]
    assert any(moved in line or moved.lower() in line for line in outside)


def test_work_on_states_stays_inside():
    layer = gluon.nn.Dense(3, in_units=3)
    block = Block(lambda x, s: foreach(lambda d, h: (d, layer(h + d)), x, s), layer)
    block.hybridize()
    block(normal(4, 2, 3), normal(2, 3))[0].wait_to_read()
    lines = block._cached_op.graph_text().splitlines()
    assert not any("FullyConnected" in line for line in lines if line.startswith("%"))
    assert any("FullyConnected" in line or "fully_connected" in line for line in lines if line.startswith(" "))


WITH_INVARIANT_WORK = {
    "nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "null", "name": "s", "inputs": []},
        {"op": "null", "name": "w", "inputs": []},
        {
            "op": "_foreach",
            "name": "loop",
            "attrs": {"num_args": "3", "num_outputs": "2", "num_out_data": "1", "in_data_locs": "[0]", "in_state_locs": "[1]", "remain_locs": "[2]"},
            "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]],
            "subgraphs": [{
                "nodes": [
                    {"op": "null", "name": "d", "inputs": []},
                    {"op": "null", "name": "h", "inputs": []},
                    {"op": "null", "name": "v", "inputs": []},
                    {"op": "elemwise_mul", "name": "first", "inputs": [[0, 0, 0], [1, 0, 0]]},
                    {"op": "exp", "name": "e", "inputs": [[2, 0, 0]]},
                    {"op": "sin", "name": "es", "inputs": [[4, 0, 0]]},
                    {"op": "elemwise_mul", "name": "second", "inputs": [[3, 0, 0], [5, 0, 0]]},
                ],
                "arg_nodes": [0, 1, 2],
                "heads": [[6, 0, 0], [3, 0, 0]],
            }],
        },
    ],
    "arg_nodes": [0, 1, 2],
    "heads": [[3, 0, 0], [3, 1, 0]],
    "attrs": {"mxnet_version": ["int", 10901]},
}  # fmt: skip


def test_work_on_captured_values_is_done_once():
    """Files of MXNet keep work on captured values in the body. Its values for the gradient are kept once, too."""
    graph = mx.sym.load_json(json.dumps(WITH_INVARIANT_WORK))
    block = gluon.SymbolBlock(graph, [mx.sym.var(name) for name in "xsw"])
    block.hybridize()
    arrays = normal(6, 3), normal(3, seed=1), normal(3, seed=2)
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        outs, _ = block(*arrays)
        outs.sum().backward()
    x, s, w = (a.asnumpy() for a in arrays)
    before = np.cumprod(np.concatenate([s[None], x[:-1]]), axis=0)
    np.testing.assert_allclose(outs.asnumpy(), before * x * np.sin(np.exp(w)), rtol=1e-4)
    np.testing.assert_allclose(
        arrays[2].grad.asnumpy(), (before * x).sum(axis=0) * np.cos(np.exp(w)) * np.exp(w), rtol=1e-3
    )
    lines = block._cached_op.graph_text().splitlines()
    assert not any("exp(" in line or "sin(" in line for line in lines if line.startswith(" "))
    kept = int(block._cached_op.summary().split("kept for backward ")[1].split(" bytes")[0])
    assert kept <= 4 * x.nbytes + 4 * 64


def test_loops_that_run_once_are_left_alone():
    block = Block(lambda x, s: foreach(lambda d, h: (d * h, h), x, s)[0])
    block.hybridize()
    np.testing.assert_array_equal(block(nd.ones((1, 3)), nd.ones((3,))).asnumpy(), np.ones((1, 3)))
