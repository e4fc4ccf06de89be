"""Constant folding computes small results, such as 2 * 2, once, and leaves a broadcast to 1 GiB to each call."""

import hybridnet as mx
import numpy as np
from hybridnet import rewrite as rw


def test_small_results_are_computed_once_and_large_ones_in_each_call() -> None:
    two = mx.sym.full((1,), 2.0)
    graph = rw.graph(mx.sym.var("x") + two * two, {"x": (1,)})
    rw.apply(graph, "fold_constants", end=38)
    assert [node.op for node in graph.nodes if node.op] == ["elemwise_add"]
    symbol = graph.symbol()
    (out,) = symbol.bind(mx.cpu(), {"x": mx.nd.zeros((1,))}).forward()
    np.testing.assert_array_equal(out.asnumpy(), [4.0])

    large = mx.sym.broadcast_to(two * two, shape=(1 << 28,))
    graph = rw.graph(mx.sym.var("x") + large, {"x": (1 << 28,)})
    rw.apply(graph, "fold_constants", end=38)
    assert [node.op for node in graph.nodes if node.op] == ["broadcast_to", "elemwise_add"]
