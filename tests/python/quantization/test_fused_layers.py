"""Layers fused by MXNet's oneDNN backend: its files load, run, and are saved in the same form."""

from __future__ import annotations

import json

import hybridnet as mx
import numpy as np
import pytest

CONV = {"kernel": "(3, 3)", "num_filter": "8", "pad": "(1, 1)", "no_bias": "True"}


class GraphFile:
    """Builds symbol JSON node by node."""

    def __init__(self):
        self.nodes = []

    def add(self, op, name, inputs=(), attrs=None, subgraph=None):
        node = {"op": op, "name": name, "inputs": [[i, j, 0] for i, j in inputs]}
        if attrs:
            node["attrs"] = attrs
        if subgraph:
            node["subgraphs"] = [subgraph]
        self.nodes.append(node)
        return len(self.nodes) - 1

    def variables(self, *names):
        return [(self.add("null", name), 0) for name in names]

    def graph(self, heads):
        arg_nodes = [i for i, node in enumerate(self.nodes) if node["op"] == "null"]
        return {"nodes": self.nodes, "arg_nodes": arg_nodes, "heads": [[i, j, 0] for i, j in heads]}

    def symbol(self, heads):
        return mx.sym.load_json(json.dumps({**self.graph(heads), "attrs": {"mxnet_version": ["int", 10700]}}))


def _conv_body(norm=False, relu=False, total=False):
    body = GraphFile()
    data, weight = body.variables("data0", "weight0")
    at = body.add("Convolution", "fwd", [data, weight], CONV)
    if norm:
        at = body.add("BatchNorm", "norm", [(at, 0), *body.variables("g", "b", "m", "v")], {"fix_gamma": "False"})
    if total:
        at = body.add("elemwise_add", "plus", [*body.variables("sum0"), (at, 0)])
    if relu:
        at = body.add("Activation", "relu", [(at, 0)], {"act_type": "relu"})
    return body.graph([(at, 0)])


def _values(rng, size=6):
    return {
        "x": rng.normal(size=(2, 8, size, size)),
        "w": rng.normal(size=(8, 8, 3, 3)) / 8,
        "gamma": rng.uniform(0.5, 1.5, 8),
        "beta": rng.normal(size=8),
        "mean": rng.normal(size=8) / 4,
        "var": rng.uniform(0.5, 1.5, 8),
        "s": rng.normal(size=(2, 8, size, size)),
    }


def _run(symbol, values):
    arrays = {k: mx.nd.array(v) for k, v in values.items()}
    args = {name: arrays[name] for name in symbol.list_arguments()}
    aux = {name: arrays[name] for name in symbol.list_auxiliary_states()}
    return [out.asnumpy() for out in symbol.bind(mx.cpu(), args, aux_states=aux).forward(is_train=False)]


def _expected(v, relu, total):
    arrays = [mx.nd.array(v[name]) for name in ("x", "w")]
    out = mx.nd.Convolution(*arrays, kernel=(3, 3), pad=(1, 1), num_filter=8, no_bias=True)
    norm = [mx.nd.array(v[name]) for name in ("gamma", "beta", "mean", "var")]
    out = mx.nd.BatchNorm(out, *norm, fix_gamma=False)
    out = out + mx.nd.array(v["s"]) if total else out
    return (mx.nd.relu(out) if relu else out).asnumpy()


@pytest.mark.parametrize("total", [False, True])
def test_a_fused_layer_of_floats_becomes_its_operators(total, rng):
    file, values = GraphFile(), _values(rng)
    inputs = file.variables("x", "w", "gamma", "beta", "mean", "var", *(["s"] if total else []))
    attrs = {"with_bn": "true", "with_sum": "true", "with_postsum_act": "true"} if total else {"with_relu": "true"}
    at = file.add("_sg_mkldnn_conv", "layer", inputs, attrs, _conv_body(norm=True, relu=True, total=total))
    symbol = file.symbol([(at, 0)])
    assert "_sg_mkldnn_conv" not in symbol.tojson()
    np.testing.assert_allclose(_run(symbol, values)[0], _expected(values, True, total), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("total", [False, True])
def test_a_fused_layer_of_bytes_gives_the_floats_within_its_steps(relu, total, rng):
    file, values = GraphFile(), _values(rng)
    ends = {"min_calib_range": "0.0" if relu else "-5.0", "max_calib_range": "5.0"}
    [x] = file.variables("x")
    q = file.add("_contrib_quantize_v2", "q", [x], {"out_type": "int8"})
    weights = file.variables("w", "gamma", "beta", "mean", "var")
    ranges = [(q, 1), (q, 2)]
    if total:
        [s] = file.variables("s")
        qs = file.add("_contrib_quantize_v2", "qs", [s], {"out_type": "int8"})
        weights.append((qs, 0))
        ranges += [(qs, 1), (qs, 2)]
    attrs = {"quantized": "true", "with_bn": "true", **ends}
    if total:
        attrs["with_sum"] = "true"
    if relu:
        attrs["with_postsum_act" if total else "with_act"] = "true"
    body = _conv_body(norm=True, relu=relu, total=total)
    layer = file.add("_sg_mkldnn_conv", "layer", [(q, 0), *weights, *ranges], attrs, body)
    back = file.add("_contrib_dequantize", "back", [(layer, 0), (layer, 1), (layer, 2)])
    symbol = file.symbol([(layer, 0), (back, 0)])
    as_bytes, floats = _run(symbol, values)
    assert as_bytes.dtype == ("uint8" if relu else "int8")
    expected = _expected(values, relu, total).clip(0 if relu else -5, 5)
    assert np.abs(floats - expected).max() < 0.15
    assert np.abs(floats - expected).mean() < 0.03

    assert symbol.list_auxiliary_states() == ["mean", "var"]
    written = json.loads(symbol.tojson())
    [node] = [node for node in written["nodes"] if node["op"] == "_sg_mkldnn_conv"]
    assert {k: node["attrs"][k] for k in attrs} == attrs
    again = mx.sym.load_json(symbol.tojson())
    assert again.tojson() == symbol.tojson()
    np.testing.assert_array_equal(_run(again, values)[0], as_bytes)


@pytest.mark.parametrize("channel_wise", [False, True])
@pytest.mark.parametrize("output", ["floats", "bytes", "sums"])
def test_a_fused_dense_layer_of_bytes(channel_wise, output, rng):
    x, w, b = rng.normal(size=(5, 24)), rng.normal(size=(7, 24)), rng.normal(size=7)
    body = GraphFile()
    at = body.add("FullyConnected", "fwd", body.variables("data0", "weight0", "bias0"), {"num_hidden": "7"})
    at = body.add("Activation", "relu", [(at, 0)], {"act_type": "relu"})
    file = GraphFile()

    def quantized(name):
        return file.add("_contrib_quantize_v2", f"{name}_q", file.variables(name), {"out_type": "int8"})

    data = quantized("x")
    attrs = {"quantized": "True", "with_eltwise": "true"}
    if channel_wise:
        inputs = [(data, 0), *file.variables("w", "b"), (data, 1), (data, 2)]
        attrs["channel_wise_quantize"] = "True"
    else:
        nodes = [data, quantized("w"), quantized("b")]
        inputs = [*((node, 0) for node in nodes), *((node, end) for node in nodes for end in (1, 2))]
    if output == "floats":
        attrs["enable_float_output"] = "True"
    if output == "bytes":
        attrs |= {"min_calib_range": "0.0", "max_calib_range": "20.0"}
    layer = file.add("_sg_mkldnn_fully_connected", "layer", inputs, attrs, body.graph([(at, 0)]))
    heads = [(layer, 0)] if output == "floats" else [(layer, i) for i in range(3)]
    symbol = file.symbol(heads)
    out, *ends = _run(symbol, {"x": x, "w": w, "b": b})
    steps = {"float32": 1, "uint8": 255.5, "int32": 2**31}[str(out.dtype)]
    floats = out.astype("float64") * (max(abs(end[0]) for end in ends) if ends else 1) / steps
    assert np.abs(floats - np.maximum(x @ w.T + b, 0)).max() < 0.4
    again = mx.sym.load_json(symbol.tojson())
    assert again.tojson() == symbol.tojson()
    np.testing.assert_array_equal(_run(again, {"x": x, "w": w, "b": b})[0], out)


@pytest.mark.parametrize(
    "attrs, inputs, reason",
    [
        ({"quantized": "true"}, 2, "2 inputs of the subgraph and 2 ends of ranges"),
        ({}, 1, "one input of the node for each of the subgraph"),
        ({}, 5, "one input of the node for each of the subgraph"),
    ],
)
def test_a_layer_that_does_not_fit_its_subgraph_is_refused(attrs, inputs, reason):
    file = GraphFile()
    at = file.add("_sg_mkldnn_conv", "layer", file.variables(*"abcde"[:inputs]), attrs, _conv_body())
    with pytest.raises(mx.errors.FormatError, match=f"(?s)layer.*{reason}"):
        file.symbol([(at, 0)])


def test_a_subgraph_that_is_no_layer_is_refused():
    body = GraphFile()
    at = body.add("exp", "e", body.variables("data0"))
    file = GraphFile()
    at = file.add("_sg_mkldnn_conv", "layer", file.variables("a"), {}, body.graph([(at, 0)]))
    with pytest.raises(mx.errors.FormatError, match="operator 'exp' is no part of such a layer"):
        file.symbol([(at, 0)])
