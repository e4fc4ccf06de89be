"""Tables and drawings of graphs."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import sym


def network():
    first = sym.Convolution(sym.var("data"), num_filter=8, kernel=(3, 3), name="conv")
    normal = sym.Activation(sym.BatchNorm(first, name="bn"), act_type="relu", name="act")
    pooled = [sym.Pooling(normal, kernel=(2, 2), pool_type=kind, name=kind) for kind in ("max", "avg")]
    return sym.SoftmaxOutput(sym.FullyConnected(pooled[0] + pooled[1], num_hidden=10, name="fc"), name="loss")


def test_the_summary_counts_parameters_and_names_inputs(capsys):
    mx.viz.print_summary(network(), {"data": (2, 3, 8, 8)}, line_length=100)
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split("(")[0]: line.split() for line in lines if "(" in line}
    assert rows["conv"] == ["conv(Convolution)", "8x6x6", str(8 * 3 * 9 + 8), "data"]
    assert rows["bn"] == ["bn(BatchNorm)", "8x6x6", "16", "conv"]
    assert rows["act"] == ["act(Activation)", "8x6x6", "0", "bn"]
    assert rows["fc"][1:3] == ["10", str(10 * 8 * 5 * 5 + 10)]
    assert rows["loss"] == ["loss(SoftmaxOutput)", "10", "0", "fc"]
    assert lines[lines.index(next(line for line in lines if line.startswith("_plus"))) + 1].split() == ["avg"]
    assert "Total params: 2250" in lines
    assert max(map(len, lines)) == 100


def test_a_shared_weight_counts_once(capsys):
    shared = sym.var("shared_weight")
    net = sym.var("data")
    for name in ("a", "b"):
        net = sym.FullyConnected(net, shared, num_hidden=4, no_bias=True, name=name)
    mx.viz.print_summary(net, {"data": (1, 4)})
    assert "Total params: 16" in capsys.readouterr().out


def test_without_shapes_the_summary_lists_operators(capsys):
    mx.viz.print_summary(network())
    out = capsys.readouterr().out
    assert "conv(Convolution)" in out
    assert "conv_weight" not in out
    assert "Total params: unknown" in out


def test_shapes_that_do_not_suffice_are_an_error():
    with pytest.raises(ValueError, match="do not determine"):
        mx.viz.print_summary(sym.var("a") + sym.dot(sym.var("b"), sym.var("c")), {"b": (2, 3)})
    with pytest.raises(TypeError, match="expected a Symbol, got NDArray"):
        mx.viz.print_summary(mx.nd.ones((1,)))
    with pytest.raises(mx.MXNetError, match="4 numbers"):
        mx.viz.print_summary(network(), positions=(0.5, 1.0))


def test_the_drawing_shows_operators_inputs_and_shapes_of_edges():
    pytest.importorskip("graphviz", reason="plot_network makes objects of this package")
    dot = mx.viz.plot_network(
        network(), "net", "svg", {"data": (2, 3, 8, 8)}, {"data": np.float32}, node_attrs={"fixedsize": "false"}
    )
    assert dot.name == "net"
    assert dot.format == "svg"
    assert "data -> conv" in dot.source
    assert '"3x8x8 (float32)"' in dot.source
    assert "3x3/1" in dot.source
    assert "fixedsize=false" in dot.source
    assert "conv_weight" not in dot.source
    shown = mx.viz.plot_network(network(), hide_weights=False).source
    assert "conv_weight -> conv" in shown


def test_repeated_names_warn():
    pytest.importorskip("graphviz", reason="plot_network makes objects of this package")
    inner = sym.FullyConnected(sym.var("data"), num_hidden=4, name="twice")
    with pytest.warns(UserWarning, match=r"same name.*twice"):
        mx.viz.plot_network(sym.FullyConnected(inner, num_hidden=2, name="twice"))


def test_a_layer_that_is_used_twice_is_drawn_twice():
    pytest.importorskip("graphviz", reason="plot_network makes objects of this package")
    layer = mx.gluon.nn.Dense(3, in_units=3, prefix="twice_")
    with pytest.warns(UserWarning, match=r"same name.*twice_fwd"):
        source = mx.viz.plot_network(layer(layer(sym.var("x")))).source
    edges = [line.split("[")[0].strip() for line in source.splitlines() if "->" in line]
    assert edges == ["x -> twice_fwd", "twice_fwd -> twice_fwd_1"]
