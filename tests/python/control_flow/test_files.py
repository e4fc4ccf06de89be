"""Files with loops and branches whose attributes are wrong are refused with an error; none crashes the process."""

from __future__ import annotations

import json

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors, gluon
from hybridnet.contrib import cond, foreach, while_loop

nd = mx.nd


class Block(gluon.HybridBlock):
    def forward(self, x):
        outs, state = foreach(lambda d, s: (d * s + x.sum(), s + d), x, x[0])
        (last,) = while_loop(lambda v: v.sum() < 50, lambda v: [v * 1.5 + state], [outs], 4, has_outputs=False)
        return cond(last.sum() > 0, lambda: last * state, lambda: last + outs)


@pytest.fixture(scope="module")
def model() -> dict:
    block = Block()
    block.hybridize()
    block(nd.ones((3, 2)))
    return json.loads(block._cached_graph[1].tojson())


def controls(graph: dict) -> list[dict]:
    return [node for node in graph["nodes"] if node.get("subgraphs")]


def load(graph: dict) -> mx.sym.Symbol:
    return mx.sym.load_json(json.dumps(graph))


def changed(model: dict, which: int, name: str, value: str) -> mx.sym.Symbol:
    """Returns the model with another value of an attribute of its control node number `which`."""
    graph = json.loads(json.dumps(model))
    attrs = controls(graph)[which]["attrs"]
    assert attrs[name] != value
    attrs[name] = value
    return load(graph)


def test_the_model_itself_loads(model):
    assert load(model).list_arguments() == ["data"]
    assert json.loads(load(model).tojson()) == model


@pytest.mark.parametrize("value", ["()", "(0,)", "(0, 0, 0)", "(-1, 0)", "(99, 1)", "(0, 1, 2, 3, 4, 5)", "(None, 0)"])
@pytest.mark.parametrize("which", range(3))
def test_wrong_positions(model, which, value):
    names = [key for key in controls(model)[which]["attrs"] if key.endswith("_locs")]
    for name in names:
        graph = json.loads(json.dumps(model))
        node = controls(graph)[which]
        if node["attrs"][name] == value:
            continue
        node["attrs"][name] = value
        try:
            symbol = load(graph)
        except errors.HybridNetError:
            continue
        # The positions happen to be valid: the graph computes something else, or its shapes do not fit.
        try:
            shapes = symbol.infer_shape(data=(3, 2))[1]
            out = symbol.bind(mx.cpu(), {"data": nd.ones((3, 2))}).forward()[0]
            assert out.shape == shapes[0]
        except errors.HybridNetError:
            pass


COUNTS = [(0, "num_outputs"), (0, "num_out_data"), (1, "num_outputs"), (1, "num_out_data"), (2, "num_outputs")]


@pytest.mark.parametrize("value", ["-1", "7", "100000", "2147483647"])
@pytest.mark.parametrize(("which", "name"), COUNTS)
def test_a_wrong_count_of_outputs_is_an_error(model, which, name, value):
    with pytest.raises(errors.HybridNetError):
        changed(model, which, name, value).infer_shape(data=(3, 2))


@pytest.mark.parametrize("value", ["0", "7", "2147483647"])
@pytest.mark.parametrize("which", range(3))
def test_the_number_of_inputs_is_that_of_the_node_not_of_the_attribute(model, which, value):
    assert changed(model, which, "num_args", value).infer_shape(data=(3, 2))[1] == [(3, 2)]
    with pytest.raises(errors.HybridNetError, match="num_args"):
        changed(model, which, "num_args", "-1")


@pytest.mark.parametrize("which", range(3))
def test_missing_bodies(model, which):
    for keep in range(3):
        graph = json.loads(json.dumps(model))
        node = controls(graph)[which]
        if keep < len(node["subgraphs"]):
            node["subgraphs"] = node["subgraphs"][:keep]
            with pytest.raises(errors.HybridNetError, match="subgraphs"):
                load(graph)


def test_bodies_that_read_themselves_through_many_levels(model):
    graph = json.loads(json.dumps(model))
    node = controls(graph)[0]
    for _ in range(80):
        node = {**node, "subgraphs": [{**node["subgraphs"][0], "nodes": [*node["subgraphs"][0]["nodes"][:-1], node]}]}
    graph["nodes"][graph["nodes"].index(controls(graph)[0])] = node
    with pytest.raises(errors.FormatError):
        load(graph)


def test_numbers_survive_the_file(model):
    symbol = load(model)
    x = nd.array(np.random.default_rng(0).normal(size=(3, 2)).astype("float32"))
    want = Block()(x).asnumpy()
    np.testing.assert_allclose(symbol.bind(mx.cpu(), {"data": x}).forward()[0].asnumpy(), want, rtol=1e-5)
