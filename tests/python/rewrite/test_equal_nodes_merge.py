"""The merge pass makes two equal convolutions one node and leaves two dropouts two."""

import hybridnet as mx
from hybridnet import rewrite as rw


def test_equal_work_is_one_node_and_draws_stay_apart() -> None:
    x, w = mx.sym.var("x"), mx.sym.var("w")
    layers = [mx.sym.Convolution(x, w, kernel=(3, 3), num_filter=4, no_bias=True) for _ in range(2)]
    graph = rw.graph(layers[0] + layers[1], {"x": (1, 3, 8, 8)})
    rw.apply(graph, "merge")
    assert len(graph.find("Convolution")) == 1
    drops = [mx.sym.Dropout(x, p=0.5) for _ in range(2)]
    graph = rw.graph(drops[0] + drops[1], {"x": (4,)}, train=True)
    rw.apply(graph, "merge")
    assert len(graph.find("Dropout")) == 2
